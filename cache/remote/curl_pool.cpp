// See curl_pool.h.
#include "cache/remote/curl_pool.h"

#include "cache/remote/sigpipe_guard.h"

namespace chord::cache {
namespace {

// Every idle handle is a connection that the server has to keep.
constexpr std::size_t kMaxIdle = 16;

// Never undone: the program around this library may use libcurl, too.
void start_libcurl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)started;  // without it curl_easy_init tries again and answers for itself
}

}  // namespace

CurlPool::CurlPool() { start_libcurl(); }

CurlPool::Shelf::~Shelf() {
  const SigpipeGuard guard;  // the end of a TLS session is written
  for (CURL* handle : idle) curl_easy_cleanup(handle);
}

CurlPool::Loan CurlPool::borrow() {
  Shelf& shelf = shelf_.get();
  {
    std::lock_guard lock(shelf.mutex);
    if (!shelf.idle.empty()) {
      CURL* handle = shelf.idle.back();
      shelf.idle.pop_back();
      return {shelf, handle};
    }
  }
  return {shelf, curl_easy_init()};
}

CurlPool::Loan::~Loan() {
  if (handle_ == nullptr) return;
  {
    std::lock_guard lock(shelf_.mutex);
    if (shelf_.idle.size() < kMaxIdle) {
      shelf_.idle.push_back(handle_);
      return;
    }
  }
  curl_easy_cleanup(handle_);
}

}  // namespace chord::cache
