// chord-cache-bench: what the cubin cache costs on this machine, without GPU and compiler: hits
// from memory, disk and a remote store, a folder with many entries, and a storm of cold processes.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "cache/key.h"
#include "cache/tiered_cache.h"
#include "src/base/posix_file_system.h"
#include "src/base/system_clock.h"
#include "tools/cli.h"
#include "tools/cli_remote.h"
#if CHORD_HAS_REMOTE
#include "cache/remote/remote_tier.h"
#include "cache/remote/remote_url.h"
#endif

namespace chord::tools {
namespace {

using Json = nlohmann::ordered_json;
using cache::Entry;
using cache::TieredCache;

struct Flags {
  std::string folder, remote;
  std::int64_t entries = 200, bytes = 100000, many = 20000;
  std::int64_t storm = 0, keys = 8, folders = 1, compile_ms = 50;
  bool json = false;
};

constexpr const char* kExamples =
    "  chord-cache-bench --folder /tmp/cache-bench\n"
    "  chord-cache-bench --folder /tmp/cache-bench --remote redis://127.0.0.1 --json\n"
    "  chord-cache-bench --folder /tmp/cache-bench --storm 32 --keys 8 --folders 4";

// As long as the key of a GEMM kernel: its source is most of it.
constexpr std::size_t kSourceBytes = 20000;

CacheKey key_of(std::int64_t number) {
  std::string source = fmt::format("// kernel {}\n", number);
  source.resize(kSourceBytes, 'x');
  return cache::KeyBuilder().field("arch", "sm_90a").field("source", source).finish();
}

// Half of it random, half repeated: a cubin packs to about half its size.
Entry entry_of(const CacheKey& key, std::int64_t bytes) {
  Entry entry;
  entry.key = key;
  entry.kernel_name = "chord_kernel";
  entry.arch = "sm_90a";
  entry.compiler = "a bench";
  std::mt19937_64 random(std::hash<std::string>{}(key.name));
  while (entry.cubin.size() < static_cast<std::size_t>(bytes)) {
    const std::uint64_t word = random();
    entry.cubin.append(reinterpret_cast<const char*>(&word), sizeof word);
    entry.cubin.append(8, '\0');
  }
  entry.cubin.resize(static_cast<std::size_t>(bytes));
  return entry;
}

double now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

Json summary_of(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  return Json{{"median_us", us[us.size() / 2]},
              {"p95_us", us[us.size() * 95 / 100]},
              {"sum_ms", std::accumulate(us.begin(), us.end(), 0.0) / 1000},
              {"count", us.size()}};
}

// One machine: its folder, and the store that it shares.
class Bench {
 public:
  explicit Bench(const Flags& flags) : flags_(flags) {
    cache::TrustedKeys trusted;
    trusted.add(key_.signer(), "bench");
    signatures_ = cache::Signatures(SignaturePolicy::accept_local, trusted, key_);
  }

  Result<std::unique_ptr<TieredCache>> open(const std::string& folder, bool with_remote) {
    cache::CacheSettings settings;
    settings.writable_dir = flags_.folder + "/" + folder;
    settings.signatures = signatures_;
    settings.max_files = 100000;
    settings.max_bytes = std::uint64_t{64} << 30;
    if (with_remote) {
      CHORD_TRY(add_remote(settings));
    }
    return TieredCache::open(std::move(settings), files_, clock_, {});
  }

  Status fill(TieredCache& cache, std::int64_t first, std::int64_t count, std::int64_t bytes,
              std::vector<double>* us = nullptr) {
    for (std::int64_t i = first; i < first + count; ++i) {
      const CacheKey key = key_of(i);
      Entry entry = entry_of(key, bytes);
      const double begin = now_us();
      CHORD_TRY(cache.get_or_make(key, [&]() -> Result<Entry> { return std::move(entry); }));
      if (us != nullptr) us->push_back(now_us() - begin);
    }
    return {};
  }

  Result<std::vector<double>> find_all(TieredCache& cache, std::int64_t count, bool fetch) {
    std::vector<CacheKey> keys;
    for (std::int64_t i = 0; i < count; ++i) keys.push_back(key_of(i));
    std::vector<double> us;
    for (const CacheKey& key : keys) {
      const double begin = now_us();
      const cache::SharedEntry entry = fetch ? cache.fetch(key) : cache.find(key);
      us.push_back(now_us() - begin);
      if (!entry)
        return Error{ErrorCode::internal, "a bench of hits", "a miss", "empty the folder"};
    }
    return us;
  }

  double memory_hit_us(TieredCache& cache) {
    const CacheKey key = key_of(0);
    (void)cache.find(key);
    std::vector<double> us;
    for (int batch = 0; batch < 101; ++batch) {
      const double begin = now_us();
      for (int i = 0; i < 1000; ++i) (void)cache.find(key);
      us.push_back((now_us() - begin) / 1000);
    }
    std::nth_element(us.begin(), us.begin() + 50, us.end());
    return us[50];
  }

  const Flags& flags() const { return flags_; }

 private:
#if CHORD_HAS_REMOTE
  Status add_remote(cache::CacheSettings& settings) {
    cache::RemoteSettings remote;
    CHORD_TRY(remote.url, cache::parse_remote_url(flags_.remote));
    CHORD_TRY(const auto backend, cache::make_backend(remote));
    settings.remote_tiers = {std::make_shared<cache::RemoteTier>(backend, true)};
    settings.leases = backend->leases();
    return {};
  }
#else
  static Status add_remote(cache::CacheSettings&) {
    return Error{ErrorCode::unsupported, "--remote", "this build has no remote back-ends", ""};
  }
#endif

  const Flags& flags_;
  const cache::SigningKey key_ = cache::SigningKey::generate();
  cache::Signatures signatures_;
  base::PosixFileSystem files_;
  base::SystemClock clock_;
};

Result<Json> measure_hits(Bench& bench) {
  const Flags& flags = bench.flags();
  const bool has_remote = !flags.remote.empty();
  std::vector<double> publish_us;
  {
    CHORD_TRY(const auto cache, bench.open("disk", has_remote));
    CHORD_TRY(bench.fill(*cache, 0, flags.entries, flags.bytes, &publish_us));
  }
  Json json{{"entries", flags.entries}, {"cubin_bytes", flags.bytes}};
  json["publish"] = summary_of(publish_us);
  CHORD_TRY(const auto cache, bench.open("disk", false));
  CHORD_TRY(std::vector<double> disk_us, bench.find_all(*cache, flags.entries, false));
  json["disk_hit"] = summary_of(std::move(disk_us));
  json["memory_hit_us"] = bench.memory_hit_us(*cache);
  const std::string bytes = cache::serialize(entry_of(key_of(0), flags.bytes));
  std::vector<double> parse_us;
  for (int i = 0; i < 501; ++i) {
    const double begin = now_us();
    const Result<Entry> parsed = cache::parse_entry(bytes);
    parse_us.push_back(now_us() - begin);
    if (!parsed) return parsed.error();
  }
  json["parse"] = summary_of(std::move(parse_us));
  if (!has_remote) return json;
  CHORD_TRY(const auto remote, bench.open("remote", true));
  CHORD_TRY(std::vector<double> remote_us, bench.find_all(*remote, flags.entries, false));
  json["remote_hit"] = summary_of(std::move(remote_us));
  CHORD_TRY(const auto kept, bench.open("kept", true));
  CHORD_TRY(std::vector<double> kept_us, bench.find_all(*kept, flags.entries, true));
  json["remote_hit_kept_on_disk"] = summary_of(std::move(kept_us));
  return json;
}

Result<Json> measure_many(Bench& bench) {
  constexpr std::int64_t kLooked = 200;
  Json json;
  std::int64_t filled = 0;
  for (const std::int64_t count : {kLooked, bench.flags().many}) {
    {
      CHORD_TRY(const auto cache, bench.open("many", false));
      CHORD_TRY(bench.fill(*cache, filled, count - filled, 1000));
    }
    filled = count;
    CHORD_TRY(const auto cache, bench.open("many", false));
    CHORD_TRY(std::vector<double> us, bench.find_all(*cache, kLooked, false));
    json[std::to_string(count)] = summary_of(std::move(us));
  }
  return json;
}

// Every process wants every key, from a place of its own in the list; all start at once.
int storm_process(Bench& bench, int number, int start_fd, const std::string& made_path) {
  const Flags& flags = bench.flags();
  char byte;
  while (::read(start_fd, &byte, 1) < 0) {
  }
  auto cache = bench.open(fmt::format("storm{}", number % flags.folders), !flags.remote.empty());
  if (!cache) return 1;
  for (std::int64_t i = 0; i < flags.keys; ++i) {
    const CacheKey key = key_of((number + i) % flags.keys);
    const auto entry = (*cache)->get_or_make(key, [&]() -> Result<Entry> {
      ::usleep(static_cast<useconds_t>(flags.compile_ms * 1000));
      const int fd = ::open(made_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
      if (::write(fd, "x", 1) != 1) return Error{ErrorCode::io_error, "count", made_path, ""};
      ::close(fd);
      return entry_of(key, flags.bytes);
    });
    if (!entry) return 1;
  }
  return 0;
}

Result<Json> measure_storm(Bench& bench) {
  const Flags& flags = bench.flags();
  const std::string made_path = flags.folder + "/made";
  int ends[2];
  if (::pipe(ends) != 0) return Error{ErrorCode::io_error, "a storm", "no pipe", ""};
  std::vector<pid_t> children;
  for (int i = 0; i < flags.storm; ++i) {
    const pid_t child = ::fork();
    if (child < 0) return Error{ErrorCode::io_error, "a storm", "fork failed", "fewer processes"};
    if (child == 0) {
      ::close(ends[1]);
      ::_exit(storm_process(bench, i, ends[0], made_path));
    }
    children.push_back(child);
  }
  const double begin = now_us();
  ::close(ends[1]);
  bool all_right = true;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    all_right = all_right && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  const double wall_ms = (now_us() - begin) / 1000;
  ::close(ends[0]);
  if (!all_right)
    return Error{ErrorCode::internal, "a storm", "a process did not get its kernels", ""};
  std::error_code none;
  const auto made = std::filesystem::file_size(made_path, none);
  return Json{{"processes", flags.storm},    {"keys", flags.keys},
              {"folders", flags.folders},    {"compile_ms", flags.compile_ms},
              {"compiles", none ? 0 : made}, {"wall_ms", wall_ms}};
}

Result<int> run(const Flags& flags) {
  Options checked;
  CHORD_TRY(apply(RemoteFlags{flags.remote}, checked));
  std::error_code problem;
  if (!std::filesystem::create_directory(flags.folder, problem))
    return bad_flags(fmt::format("--folder {}", flags.folder),
                     problem ? problem.message() : "it is there already",
                     "name a folder that this bench can make, fill and remove");
  Bench bench(flags);
  const auto measure = [&]() -> Result<Json> {
    if (flags.storm > 0) return measure_storm(bench);
    CHORD_TRY(Json json, measure_hits(bench));
    if (flags.many > 0) {
      CHORD_TRY(json["folder_of"], measure_many(bench));
    }
    return json;
  };
  const Result<Json> json = measure();
  std::filesystem::remove_all(flags.folder, problem);
  if (!json) return json.error();
  if (flags.json) return print_json(*json);
  return print_text(json->dump(1) + "\n");
}

}  // namespace
}  // namespace chord::tools

int main(int argc, char** argv) {
  using namespace chord::tools;
  CLI::App app{"Measures what the cubin cache costs on this machine.", "chord-cache-bench"};
  Flags flags;
  app.add_option("--folder", flags.folder, "folder to make, fill and remove")
      ->type_name("FOLDER")
      ->check(flag_text())
      ->required();
  app.add_option("--remote", flags.remote, "store to measure, too; it keeps the entries")
      ->type_name("URL")
      ->check(flag_text());
  const auto count = [&](const char* flag, std::int64_t& value, const char* help,
                         std::int64_t first = 1) {
    app.add_option(flag, value, help)
        ->type_name("COUNT")
        ->transform(whole_number(first, 100'000'000));
  };
  count("--entries", flags.entries, "entries that hits are measured with; default 200");
  count("--bytes", flags.bytes, "bytes of a cubin; default 100000");
  count("--many", flags.many, "entries of a large folder; default 20000, 0: leave that out", 0);
  count("--storm", flags.storm, "instead: so many cold processes at once", 0);
  count("--keys", flags.keys, "keys that each of them wants; default 8");
  count("--folders", flags.folders, "cache folders they share; default 1");
  count("--compile-ms", flags.compile_ms, "what a compile takes; default 50");
  app.add_flag("--json", flags.json, "one JSON object on standard output");
  app.footer(help_footer(kExamples));
  if (const auto code = parse_flags(app, argc, argv)) return *code;
  const auto done = run(flags);
  return done ? *done : report(done.error(), flags.json);
}
