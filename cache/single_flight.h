// One maker per key among the threads of a process: the first that asks works, the others share its
// answer, be it an entry or an error.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "cache/entry.h"

namespace chord::cache {

class SingleFlight {
 public:
  using Answer = Result<std::shared_ptr<const Entry>>;
  using Work = std::function<Answer()>;

  // `joined` tells whether another thread's work was waited for. The wait is bounded: after wait_ms
  // the thread works itself (its leader may be gone, as in the child of a fork).
  Answer run(const CacheKey& key, std::int64_t wait_ms, const Work& work, bool& joined);

 private:
  std::mutex mutex_;
  // By text: two keys of one name are two flights.
  std::unordered_map<std::string, std::shared_future<Answer>> flights_;
};

}  // namespace chord::cache
