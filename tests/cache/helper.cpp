// See helper.h.
#include "tests/cache/helper.h"

#include <fcntl.h>
#include <unistd.h>

#include "src/base/system_clock.h"
#include "tests/cache/cache_fixture.h"
#include "tests/support/child_process.h"

namespace chord::cache {
namespace {

// One write of O_APPEND: lines of several processes do not mix.
void append_line(const std::string& path, const std::string& line) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string text = line + "\n";
  if (::write(fd, text.data(), text.size()) < 0) ::_exit(90);
  ::close(fd);
}

HelperJob parse(const std::vector<std::string>& words) {
  HelperJob job{.root = words.at(0), .compile_log = words.at(1), .message_log = words.at(2)};
  int* numbers[] = {&job.barrier_fd, &job.keys,          &job.first_key,
                    &job.compile_ms, &job.slow_write_ms, &job.wait_ms};
  for (std::size_t i = 0; i < std::size(numbers); ++i) *numbers[i] = std::stoi(words.at(3 + i));
  return job;
}

}  // namespace

std::vector<std::string> HelperJob::arguments() const {
  std::vector<std::string> words{kHelperFlag, root, compile_log, message_log};
  for (const int number : {barrier_fd, keys, first_key, compile_ms, slow_write_ms, wait_ms})
    words.push_back(std::to_string(number));
  return words;
}

std::string helper_source(int key) { return "kernel " + std::to_string(key); }

int run_helper(const std::vector<std::string>& arguments) {
  const HelperJob job = parse(arguments);
  base::PosixFileSystem real;
  base::SystemClock clock;
  testing::FaultFileSystem files(real);
  if (job.slow_write_ms > 0) files.slow_writes(job.slow_write_ms, clock);
  const LogSink log = [&](LogLevel level, std::string_view message) {
    if (level >= LogLevel::info) append_line(job.message_log, std::string(message));
  };
  if (job.barrier_fd >= 0) testing::Barrier::wait(job.barrier_fd);
  CacheSettings settings;
  settings.writable_dir = job.root;
  settings.wait_ms = job.wait_ms;
  auto cache = TieredCache::open(settings, files, clock, log);
  if (!cache) return 2;
  for (int i = 0; i < job.keys; ++i) {
    const int number = (job.first_key + i) % job.keys;
    const CacheKey key = make_key(helper_source(number));
    const auto entry = (*cache)->get_or_make(key, [&]() -> Result<Entry> {
      append_line(job.compile_log, std::to_string(number));
      clock.sleep_ms(job.compile_ms);
      return make_entry(key, 20000);
    });
    if (!entry || (*entry)->cubin != make_entry(key, 20000).cubin) return 3;
  }
  const CacheCounters counters = (*cache)->counters();
  return counters.bad_entries == 0 && counters.write_failures == 0 ? 0 : 4;
}

}  // namespace chord::cache

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == chord::cache::kHelperFlag)
    return chord::cache::run_helper({argv + 2, argv + argc});
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
