// A process of its own that uses the cache: what a rank of a job does. Started by process_test.cpp
// from this very binary.
#pragma once

#include <string>
#include <vector>

namespace chord::cache {

struct HelperJob {
  std::string root;
  std::string compile_log;  // one line per compile
  std::string message_log;  // warnings and infos
  int barrier_fd = -1;
  int keys = 1;
  int first_key = 0;  // starts there and goes round
  int compile_ms = 0;
  int slow_write_ms = 0;
  int wait_ms = 20000;

  std::vector<std::string> arguments() const;
};

inline constexpr const char* kHelperFlag = "--cache-helper";

// Exit code 0 when every key gave the right cubin.
int run_helper(const std::vector<std::string>& arguments);

std::string helper_source(int key);

}  // namespace chord::cache
