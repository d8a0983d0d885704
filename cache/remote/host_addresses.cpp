// See host_addresses.h.
#include "cache/remote/host_addresses.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace chord::cache {

struct HostAddresses::Question {
  std::mutex mutex;
  std::condition_variable answered;
  bool is_answered = false;
  int error = 0;  // EAI_...
  std::vector<std::string> addresses;
};

namespace {

int look_up(const std::string& host, int flags, std::vector<std::string>& addresses) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* first = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &first)) return error;
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST))
      continue;
    if (std::find(addresses.begin(), addresses.end(), text) == addresses.end())
      addresses.emplace_back(text);
  }
  ::freeaddrinfo(first);
  return addresses.empty() ? EAI_NONAME : 0;
}

Error not_found(const std::string& host, std::string found) {
  return Error{ErrorCode::unavailable, fmt::format("the address of {}", host), std::move(found),
               "check the host name and the resolver of this machine"};
}

}  // namespace

std::shared_ptr<HostAddresses::Question> HostAddresses::ask(const std::string& host) {
  std::lock_guard lock(mutex_);
  if (open_) {
    std::lock_guard lock_answer(open_->mutex);
    if (!open_->is_answered) return open_;
  }
  auto question = std::make_shared<Question>();
  std::thread([question, host] {
    std::vector<std::string> addresses;
    int error = EAI_MEMORY;
    try {
      error = look_up(host, 0, addresses);
    } catch (const std::bad_alloc&) {  // would end the process from a thread
    }
    std::lock_guard lock_answer(question->mutex);
    question->error = error;
    question->addresses = std::move(addresses);
    question->is_answered = true;
    question->answered.notify_all();
  }).detach();
  return open_ = question;
}

Result<std::vector<std::string>> HostAddresses::find(const std::string& host,
                                                     const Deadline& deadline) {
  std::vector<std::string> numeric;
  if (look_up(host, AI_NUMERICHOST, numeric) == 0) return numeric;
  std::shared_ptr<Question> question;
  try {
    question = ask(host);
  } catch (const std::system_error& problem) {
    return not_found(host, fmt::format("no thread to look it up: {}", problem.what()));
  }
  std::unique_lock lock(question->mutex);
  const bool is_in_time =
      question->answered.wait_until(lock, deadline.end(), [&] { return question->is_answered; });
  if (!is_in_time) return not_found(host, fmt::format("no answer in {} ms", deadline.ms()));
  if (question->error != 0) return not_found(host, ::gai_strerror(question->error));
  return question->addresses;
}

}  // namespace chord::cache
