// A real redis-server of a test's own: a child process with its folder, its unix socket and a free
// TCP port, killed at the end. Keeps nothing on disk, so that a restart is empty.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace chord::testing {

struct RedisServerOptions {
  std::string password = {};  // of the default user, if not empty
  std::string user = {};      // one more user, with user_password; may do everything
  std::string user_password = {};
  std::vector<std::string> more = {};  // words of the command line: {"--maxclients", "4"}
};

class RedisServer {
 public:
  // Whether redis-server is installed. A test skips by name without it:
  //   if (!RedisServer::available()) GTEST_SKIP() << RedisServer::kMissing;
  static bool available();
  static constexpr const char* kMissing = "redis-server is not installed";

  explicit RedisServer(RedisServerOptions options = {});  // started; see is_running()
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer();

  bool start();  // on the same port and socket; waits until it accepts. False: it does not
  void stop();   // killed and reaped; the data is gone
  bool is_running() const { return pid_ > 0; }
  void flush() const { (void)command({"FLUSHALL"}); }
  // By redis-cli; the answer as it prints it, without the last newline.
  std::string command(const std::vector<std::string>& words) const;

  int port() const { return port_; }
  const std::string& socket() const { return socket_; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
  pid_t pid() const { return pid_; }

 private:
  std::vector<std::string> command_line() const;
  bool accepts() const;

  RedisServerOptions options_;
  TemporaryFolder folder_;
  std::string socket_;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace chord::testing
