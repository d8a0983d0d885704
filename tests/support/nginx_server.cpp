// nginx runs in one process, without a master: nothing is left when it is killed, and as root it
// stays root, which may write the folder.
#include "tests/support/nginx_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "tests/support/free_port.h"

namespace chord::testing {
namespace {

namespace fs = std::filesystem;

// A plain user's PATH often leaves out the folders where nginx is.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string(path == nullptr ? "" : path) +
                             ":/usr/sbin:/usr/local/sbin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string program = folder + "/" + name;
    if (!folder.empty() && ::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

// What the program says goes to the end of `log`. It dies with this process.
pid_t start_program(std::vector<std::string> words, const std::string& log) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(::open("/dev/null", O_RDONLY), 0);
  ::dup2(out, 1);
  ::dup2(out, 2);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string text_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

constexpr const char* kConfiguration = R"(daemon off;
master_process off;
error_log {folder}/error.log;
pid {folder}/pid;
events {{ worker_connections 256; }}
http {{
  log_format lines '$connection $request_method $uri $status $body_bytes_sent';
  access_log {folder}/access.log lines;
  client_body_temp_path {folder}/temporary/body;
  proxy_temp_path {folder}/temporary/proxy;
  fastcgi_temp_path {folder}/temporary/fastcgi;
  uwsgi_temp_path {folder}/temporary/uwsgi;
  scgi_temp_path {folder}/temporary/scgi;
  client_max_body_size 0;
  server {{
    listen 127.0.0.1:{port}{tls};
    root {folder}/www;
    {certificate}
    {token}
    location / {{
      dav_methods PUT DELETE;
      create_full_put_path on;
    }}
    {more}
  }}
}}
)";

}  // namespace

bool make_certificate(const std::string& folder) {
  fs::create_directories(folder);
  const pid_t child =
      start_program({find_program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                     "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                     folder + "/key.pem", "-out", folder + "/certificate.pem"},
                    folder + "/openssl.log");
  return wait_for(child) == 0;
}

std::string NginxServer::why_not() {
  return find_program("nginx").empty() ? "nginx is not installed" : "";
}

std::string NginxServer::why_not_tls() {
  if (!available()) return why_not();
  return find_program("openssl").empty() ? "the openssl command is not installed" : "";
}

NginxServer::NginxServer(NginxOptions options) : options_(std::move(options)) {
  fs::create_directories(objects());
  fs::create_directories(folder_ / "temporary");
  if (options_.tls && !make_certificate(folder_.path())) return;
  for (int attempt = 0; attempt < 5 && !is_up(); ++attempt) {
    port_ = free_port();  // somebody else may take it before nginx does
    start();
  }
}

void NginxServer::write_configuration() const {
  const std::string token =
      fmt::format("if ($http_authorization != \"Bearer {}\") {{ return 401; }}", options_.token);
  const std::string certificate = fmt::format(
      "ssl_certificate {0}/certificate.pem; ssl_certificate_key {0}/key.pem;", folder_.path());
  std::ofstream(folder_ / "nginx.conf") << fmt::format(
      fmt::runtime(kConfiguration), fmt::arg("folder", folder_.path()), fmt::arg("port", port_),
      fmt::arg("tls", options_.tls ? " ssl" : ""),
      fmt::arg("certificate", options_.tls ? certificate : ""),
      fmt::arg("token", options_.token.empty() ? "" : token), fmt::arg("more", options_.more));
}

void NginxServer::start() {
  stop();
  write_configuration();
  process_ =
      start_program({find_program("nginx"), "-p", folder_.path(), "-c", folder_ / "nginx.conf"},
                    folder_ / "error.log");
  if (!wait_until_up()) stop();
}

// nginx writes its number after it has begun to listen.
bool NginxServer::wait_until_up() const {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < limit) {
    if (text_of(folder_ / "pid") == std::to_string(process_) + "\n") return true;
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (ended.si_pid != 0) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

void NginxServer::stop() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  (void)wait_for(std::exchange(process_, -1));
  std::error_code ignored;
  fs::remove(folder_ / "pid", ignored);
}

std::string NginxServer::error_log() const { return text_of(folder_ / "error.log"); }

std::vector<NginxServer::Access> NginxServer::accesses_now() const {
  std::istringstream lines(text_of(folder_ / "access.log"));
  std::vector<Access> accesses;
  for (Access access; lines >> access.connection >> access.method >> access.path >> access.status >>
                      access.body_bytes;)
    accesses.push_back(access);
  return accesses;
}

std::vector<NginxServer::Access> NginxServer::accesses(std::size_t at_least) const {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  std::vector<Access> accesses = accesses_now();
  while (accesses.size() < at_least && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    accesses = accesses_now();
  }
  return accesses;
}

std::size_t NginxServer::connections(std::size_t accesses_at_least) const {
  std::set<std::string> numbers;
  for (const Access& access : accesses(accesses_at_least)) numbers.insert(access.connection);
  return numbers.size();
}

}  // namespace chord::testing
