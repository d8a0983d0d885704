// See single_flight.h.
#include "cache/single_flight.h"

#include <chrono>
#include <exception>

namespace chord::cache {
namespace {

// The work calls a function of the caller; whatever it throws must not leave the others waiting.
SingleFlight::Answer answer_of(const SingleFlight::Work& work) {
  std::string what = "an exception of an unknown type";
  try {
    return work();
  } catch (const std::exception& exception) {
    what = exception.what();
  } catch (...) {
  }
  return Error{ErrorCode::internal, "make a cache entry", "exception: " + what, ""};
}

}  // namespace

SingleFlight::Answer SingleFlight::run(const CacheKey& key, std::int64_t wait_ms, const Work& work,
                                       bool& joined) {
  std::promise<Answer> promise;
  std::shared_future<Answer> other;
  {
    std::lock_guard lock(mutex_);
    const auto [flight, is_first] = flights_.try_emplace(key.text, promise.get_future().share());
    joined = !is_first;
    if (joined) other = flight->second;
  }
  if (joined) {
    const bool has_landed =
        other.wait_for(std::chrono::milliseconds(wait_ms)) == std::future_status::ready;
    return has_landed ? other.get() : answer_of(work);
  }
  Answer answer = answer_of(work);
  promise.set_value(answer);
  std::lock_guard lock(mutex_);
  flights_.erase(key.text);
  return answer;
}

}  // namespace chord::cache
