// One thread that polls the listener and both ends of every connection. Sockets are shut down
// before they are closed: a child of a fork may hold a copy, which would keep them open.
#include "tests/support/fault_proxy.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace chord::testing {
namespace {

constexpr std::size_t kMostBuffered = std::size_t{1} << 20;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

int port_of(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

// Bound, so that the port is ours, with leave for a second socket of ours to listen on it.
int bound_socket(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
  const sockaddr_in address = loopback(port);
  ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return fd;
}

void set_nonblocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

void close_socket(int& fd) {
  if (fd < 0) return;
  ::shutdown(fd, SHUT_RDWR);
  ::close(std::exchange(fd, -1));
}

// With RST in place of FIN.
void reset_socket(int& fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(std::exchange(fd, -1));
}

enum class Flow { goes_on, ended };

Flow receive(int fd, std::string& buffer) {
  char bytes[65536];
  const ssize_t got = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
  if (got > 0) buffer.append(bytes, static_cast<std::size_t>(got));
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return Flow::goes_on;
  return Flow::ended;
}

// Sends at most `most` bytes and takes them off the buffer.
Flow send_some(int fd, std::string& buffer, std::size_t most, std::size_t& sent) {
  const std::size_t size = std::min(buffer.size(), most);
  const ssize_t put = ::send(fd, buffer.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
  sent = put > 0 ? static_cast<std::size_t>(put) : 0;
  buffer.erase(0, sent);
  return put >= 0 || errno == EAGAIN || errno == EINTR ? Flow::goes_on : Flow::ended;
}

}  // namespace

FaultProxy::FaultProxy(int upstream_port) : upstream_port_(upstream_port) { start(); }

FaultProxy::FaultProxy(std::string upstream_socket) : upstream_socket_(std::move(upstream_socket)) {
  start();
}

FaultProxy::~FaultProxy() {
  order([this] { ends_ = true; });
  thread_.join();
  close_connections();
  close_listener();
  ::close(reserved_);
  for (const int fd : wake_) ::close(fd);
}

int FaultProxy::connections() const {
  std::lock_guard lock(mutex_);
  return accepted_;
}

void FaultProxy::pass() { order_mode({}); }

void FaultProxy::refuse() {
  order([this] {
    mode_ = {};
    close_listener();
    close_connections();
  });
}

void FaultProxy::hang() { order_mode({.hangs = true}); }

void FaultProxy::reset_mid_reply(int reply_bytes) { order_mode({.reply_limit = reply_bytes}); }

void FaultProxy::trickle(int ms_per_byte) { order_mode({.ms_per_byte = ms_per_byte}); }

void FaultProxy::wrong_bytes(std::string reply) {
  order_mode({.answers = true, .answer = std::move(reply)});
}

void FaultProxy::cut() {
  order([this] { close_connections(); });
}

void FaultProxy::start() {
  reserved_ = bound_socket(0);
  port_ = port_of(reserved_);
  if (::pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) wake_[0] = wake_[1] = -1;
  open_listener();
  thread_ = std::thread([this] { loop(); });
}

void FaultProxy::order(std::function<void()> change) {
  std::unique_lock lock(mutex_);
  orders_.push_back(std::move(change));
  const std::size_t mine = ++ordered_;
  (void)!::write(wake_[1], "!", 1);
  applied_.wait(lock, [&] { return done_ >= mine; });
}

void FaultProxy::order_mode(Mode mode) {
  order([this, mode = std::move(mode)] {
    mode_ = mode;
    for (Connection& connection : connections_) {
      connection.reply_left = mode_.reply_limit;
      connection.next_byte = {};
    }
    open_listener();
  });
}

bool FaultProxy::take_orders() {
  char bytes[64];
  while (::read(wake_[0], bytes, sizeof bytes) > 0) {
  }
  std::lock_guard lock(mutex_);
  for (const auto& change : orders_) change();
  orders_.clear();
  done_ = ordered_;
  applied_.notify_all();
  return !ends_;
}

void FaultProxy::open_listener() {
  if (listener_ >= 0) return;
  listener_ = bound_socket(port_);
  set_nonblocking(listener_);
  ::listen(listener_, 128);
}

void FaultProxy::close_listener() { close_socket(listener_); }

void FaultProxy::close_connections() {
  for (Connection& connection : connections_) {
    close_socket(connection.client);
    close_socket(connection.server);
  }
  connections_.clear();
}

void FaultProxy::loop() {
  std::vector<pollfd> polled;
  do {
    polled = {{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Connection& connection : connections_) {
      // A descriptor of -1 is passed over: POLLHUP, which is always asked for, would spin here.
      const bool is_deaf = mode_.hangs || connection.server_ended;
      polled.push_back({connection.client, client_events(connection), 0});
      polled.push_back({is_deaf ? -1 : connection.server, server_events(connection), 0});
    }
    ::poll(polled.data(), polled.size(), poll_timeout());
    std::size_t at = 2;
    for (auto connection = connections_.begin(); connection != connections_.end(); at += 2) {
      const auto served = connection++;
      if (serve(*served, polled[at].revents, polled[at + 1].revents)) continue;
      close_socket(served->client);
      close_socket(served->server);
      connections_.erase(served);
    }
    if ((polled[1].revents & POLLIN) != 0) accept_one();
  } while (take_orders());
}

void FaultProxy::accept_one() {
  Connection connection;
  connection.client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection.client < 0) return;
  connection.reply_left = mode_.reply_limit;
  connections_.push_back(std::move(connection));
  std::lock_guard lock(mutex_);
  ++accepted_;
}

bool FaultProxy::is_time(const Connection& connection) const {
  return std::chrono::steady_clock::now() >= connection.next_byte;
}

int FaultProxy::poll_timeout() const {
  Time first = Time::max();
  for (const Connection& connection : connections_)
    if (!connection.to_client.empty() && !is_time(connection))
      first = std::min(first, connection.next_byte);
  if (first == Time::max()) return -1;
  const auto left = first - std::chrono::steady_clock::now();
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return std::max(0, static_cast<int>(ms));
}

short FaultProxy::client_events(const Connection& connection) const {
  if (mode_.hangs) return 0;
  short events = connection.to_server.size() < kMostBuffered ? POLLIN : 0;
  if (!connection.to_client.empty() && is_time(connection)) events |= POLLOUT;
  return events;
}

short FaultProxy::server_events(const Connection& connection) const {
  short events = connection.to_client.size() < kMostBuffered ? POLLIN : 0;
  if (!connection.to_server.empty()) events |= POLLOUT;
  return events;
}

bool FaultProxy::serve(Connection& connection, short client, short server) {
  constexpr short kBroken = POLLERR | POLLHUP;
  if (mode_.hangs) return (client & kBroken) == 0;
  if ((client & (POLLIN | kBroken)) != 0 && !take_request(connection)) return false;
  if ((server & (POLLIN | kBroken)) != 0 && !take_reply(connection)) return false;
  if ((client & POLLOUT) != 0 && !give_reply(connection)) return false;
  if ((server & POLLOUT) != 0 && !give_request(connection)) return false;
  return !(connection.server_ended && connection.to_client.empty());
}

bool FaultProxy::take_request(Connection& connection) {
  if (receive(connection.client, connection.to_server) == Flow::ended) return false;
  if (mode_.answers) {
    connection.to_server.clear();
    connection.to_client += mode_.answer;
    return true;
  }
  if (connection.server < 0) connection.server = connect_upstream();
  return connection.server >= 0 || (reset_socket(connection.client), false);
}

bool FaultProxy::take_reply(Connection& connection) {
  if (connection.server_ended) return true;
  if (receive(connection.server, connection.to_client) == Flow::ended)
    connection.server_ended = true;
  return true;
}

bool FaultProxy::give_request(Connection& connection) {
  std::size_t sent = 0;
  return send_some(connection.server, connection.to_server, kMostBuffered, sent) == Flow::goes_on;
}

bool FaultProxy::give_reply(Connection& connection) {
  std::size_t most = static_cast<std::size_t>(connection.reply_left);
  if (mode_.ms_per_byte > 0) most = std::min<std::size_t>(most, 1);
  std::size_t sent = 0;
  if (send_some(connection.client, connection.to_client, most, sent) == Flow::ended) return false;
  if (mode_.ms_per_byte > 0)
    connection.next_byte =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(mode_.ms_per_byte);
  if (connection.reply_left == kUnlimited) return true;
  connection.reply_left -= static_cast<int>(sent);
  return connection.reply_left > 0 || (reset_socket(connection.client), false);
}

int FaultProxy::connect_upstream() const {
  const bool is_unix = !upstream_socket_.empty();
  int fd = ::socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un unix_address{};
  unix_address.sun_family = AF_UNIX;
  upstream_socket_.copy(unix_address.sun_path, sizeof unix_address.sun_path - 1);
  const sockaddr_in address = loopback(upstream_port_);
  const int failed =
      is_unix ? ::connect(fd, reinterpret_cast<sockaddr*>(&unix_address), sizeof unix_address)
              : ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (failed != 0) close_socket(fd);
  return fd;
}

}  // namespace chord::testing
