// A TCP proxy on 127.0.0.1, in a thread of the test, in front of any server: misbehaves as told.
// Knows no protocol: a request is what comes from the client, a reply what comes from the server.
//
//   FaultProxy proxy(server_port);
//   proxy.hang();
//   ... a client of proxy.port() ends at its deadline ...
//   proxy.pass();
//
// A call has taken effect when it returns, for connections that are open as well as for new ones.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <limits>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace chord::testing {

class FaultProxy {
 public:
  explicit FaultProxy(int upstream_port);            // of 127.0.0.1
  explicit FaultProxy(std::string upstream_socket);  // path of a unix socket
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;
  ~FaultProxy();

  int port() const { return port_; }  // stays the same; nobody else gets it
  int connections() const;            // accepted so far

  void pass();
  void refuse();  // nothing listens, and open connections are closed: the server has died
  void hang();    // connections are accepted; nothing is read or answered
  void reset_mid_reply(int reply_bytes);  // so many bytes of reply per connection, then RST
  void trickle(int ms_per_byte = 1000);   // replies, one byte at a time
  void wrong_bytes(std::string reply);    // the server is not asked; every request gets this
  void cut();  // closes the open connections once, as a restart does; the mode stays

 private:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr int kUnlimited = std::numeric_limits<int>::max();

  struct Mode {
    bool hangs = false;
    int reply_limit = kUnlimited;
    int ms_per_byte = 0;
    bool answers = false;  // with `answer`, in place of the server
    std::string answer{};
  };
  struct Connection {
    int client = -1;
    int server = -1;  // connected when the first request is there
    std::string to_server;
    std::string to_client;
    int reply_left = kUnlimited;
    Time next_byte{};
    bool server_ended = false;
  };

  void start();
  void loop();
  void order(std::function<void()> change);  // runs it in the thread, and waits for it
  void order_mode(Mode mode);
  bool take_orders();  // false: end
  void open_listener();
  void close_listener();
  void close_connections();
  void accept_one();
  int poll_timeout() const;
  short client_events(const Connection& connection) const;
  short server_events(const Connection& connection) const;
  bool is_time(const Connection& connection) const;
  bool serve(Connection& connection, short client, short server);  // false: it has ended
  bool take_request(Connection& connection);
  bool take_reply(Connection& connection);
  bool give_request(Connection& connection);
  bool give_reply(Connection& connection);
  int connect_upstream() const;

  const int upstream_port_ = 0;
  const std::string upstream_socket_;
  int port_ = 0;
  int reserved_ = -1;  // keeps the port while nothing listens
  int wake_[2] = {-1, -1};

  mutable std::mutex mutex_;
  std::condition_variable applied_;
  std::vector<std::function<void()>> orders_;
  std::size_t ordered_ = 0;
  std::size_t done_ = 0;
  int accepted_ = 0;
  bool ends_ = false;

  // Of the thread alone.
  Mode mode_;
  int listener_ = -1;
  std::list<Connection> connections_;
  std::thread thread_;
};

}  // namespace chord::testing
