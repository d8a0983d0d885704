// The addresses of a host, by a deadline. The resolver of the C library knows none, so a thread of
// its own asks it; while it hangs, later calls wait for the same answer and start no more threads.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cache/remote/deadline.h"
#include "chord/status.h"

namespace chord::cache {

class HostAddresses {
 public:
  // Numeric, in the order in which they are to be tried. The same host at every call.
  Result<std::vector<std::string>> find(const std::string& host, const Deadline& deadline);

 private:
  struct Question;
  std::shared_ptr<Question> ask(const std::string& host);

  std::mutex mutex_;
  std::shared_ptr<Question> open_;
};

}  // namespace chord::cache
