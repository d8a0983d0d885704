// A real nginx as a child process, with a folder of its own and a port of its own on 127.0.0.1: a
// store that GET, HEAD, PUT and DELETE work on. It ends with its object, and with its test.
//
//   if (const std::string why = NginxServer::why_not(); !why.empty()) GTEST_SKIP() << why;
//   NginxServer server({.token = "secret"});
//   ASSERT_TRUE(server.is_up()) << server.error_log();
//
// The object of /a/b is the file a/b of objects(). `more` adds lines to the server block, such as
// "location /full { return 507; }".
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace chord::testing {

struct NginxOptions {
  std::string token{};  // empty: nobody is asked for one
  bool tls = false;     // with a self-signed certificate of 127.0.0.1
  std::string more{};
};

class NginxServer {
 public:
  static std::string why_not();      // empty where nginx is installed
  static std::string why_not_tls();  // empty where a certificate can be made, too
  static bool available() { return why_not().empty(); }

  explicit NginxServer(NginxOptions options = {});
  NginxServer(const NginxServer&) = delete;
  NginxServer& operator=(const NginxServer&) = delete;
  ~NginxServer() { stop(); }

  bool is_up() const { return process_ > 0; }
  int port() const { return port_; }
  void stop();
  void start();  // again, on the same port

  std::string objects() const { return folder_ / "www"; }  // what it serves
  std::string ca_file() const { return folder_ / "certificate.pem"; }
  std::string error_log() const;

  struct Access {
    std::string connection;  // number of the connection that it came on
    std::string method;
    std::string path;
    std::string status;
    std::size_t body_bytes = 0;  // sent
  };
  // nginx writes a line after the client has its answer: waits until there are so many.
  std::vector<Access> accesses(std::size_t at_least) const;
  // The connections that these came on.
  std::size_t connections(std::size_t accesses_at_least) const;

 private:
  void write_configuration() const;
  bool wait_until_up() const;
  std::vector<Access> accesses_now() const;

  const NginxOptions options_;
  TemporaryFolder folder_;
  int port_ = 0;
  pid_t process_ = -1;
};

// Makes `folder`/certificate.pem and key.pem for 127.0.0.1, each its own CA; false: openssl failed.
bool make_certificate(const std::string& folder);

}  // namespace chord::testing
