// fork, exec and kill of redis-server; redis-cli for what a test wants to ask it.
#include "tests/support/redis_server.h"

#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "tests/support/free_port.h"

namespace chord::testing {
namespace {

constexpr auto kStartLimit = std::chrono::seconds(10);

bool is_on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

// The child's output goes to `output`; -1: to nowhere. The password is for redis-cli, by way of the
// environment.
pid_t spawn(const std::vector<std::string>& words, const std::string& folder, int output,
            const std::string& password = {}) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  // Also when the test is killed, nothing stays behind. (It is the end of the starting thread that
  // counts.)
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent || ::chdir(folder.c_str()) != 0) ::_exit(127);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, 0);
  ::dup2(output >= 0 ? output : nothing, 1);
  ::dup2(nothing, 2);
  if (!password.empty()) ::setenv("REDISCLI_AUTH", password.c_str(), 1);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

int reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

bool RedisServer::available() {
  static const bool is_there = is_on_path("redis-server") && is_on_path("redis-cli");
  return is_there;
}

RedisServer::RedisServer(RedisServerOptions options)
    : options_(std::move(options)), socket_(folder_ / "redis.sock") {
  for (int attempt = 0; attempt < 5 && !is_running(); ++attempt) {
    port_ = free_port();
    (void)start();
  }
}

RedisServer::~RedisServer() { stop(); }

std::vector<std::string> RedisServer::command_line() const {
  // Secrets go into a file: a command line is for everybody to read.
  const std::string file = folder_ / "redis.conf";
  std::ofstream config(file);
  config << "bind 127.0.0.1\nport " << port_ << "\nunixsocket " << socket_ << "\nunixsocketperm 700"
         << "\nsave \"\"\nappendonly no\nenable-debug-command yes\nio-threads 1\ndatabases 16\n";
  if (!options_.password.empty()) config << "requirepass " << options_.password << "\n";
  if (!options_.user.empty())
    config << "user " << options_.user << " on >" << options_.user_password << " ~* &* +@all\n";
  std::vector<std::string> words{"redis-server", file};
  words.insert(words.end(), options_.more.begin(), options_.more.end());
  return words;
}

bool RedisServer::start() {
  if (is_running()) return true;
  ::unlink(socket_.c_str());
  pid_ = spawn(command_line(), folder_.path(), -1);
  const auto limit = std::chrono::steady_clock::now() + kStartLimit;
  while (std::chrono::steady_clock::now() < limit) {
    if (accepts()) return true;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  stop();
  return false;
}

void RedisServer::stop() {
  if (!is_running()) return;
  ::kill(pid_, SIGKILL);
  ::kill(pid_, SIGCONT);  // where a test has stopped it
  reap(std::exchange(pid_, -1));
}

// By the socket, which is made after the port is bound: nobody else's server answers there.
bool RedisServer::accepts() const {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_.copy(address.sun_path, sizeof address.sun_path - 1);
  const int failed = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  ::close(fd);
  return failed == 0;
}

std::string RedisServer::command(const std::vector<std::string>& words) const {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "(no pipe)";
  std::vector<std::string> line{"redis-cli", "-s", socket_};
  line.insert(line.end(), words.begin(), words.end());
  const pid_t pid = spawn(line, folder_.path(), ends[1], options_.password);
  ::close(ends[1]);
  std::string answer;
  char bytes[4096];
  for (ssize_t got; (got = ::read(ends[0], bytes, sizeof bytes)) > 0;)
    answer.append(bytes, static_cast<std::size_t>(got));
  ::close(ends[0]);
  reap(pid);
  if (answer.ends_with('\n')) answer.pop_back();
  return answer;
}

}  // namespace chord::testing
