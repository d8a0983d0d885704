// What the processes of a FaultWorld do, and what happens to their folder meanwhile.
#include <fmt/format.h>

#include <stdexcept>

#include "cache/pins.h"
#include "tests/cache/fault_world.h"

namespace chord::cache {
namespace {

constexpr std::int64_t kLongPauseS = 3600;

std::string file_of(const std::string& root, std::size_t key) {
  return Layout{root}.entry(known()[key].key.name);
}

}  // namespace

void FaultWorld::step() {
  const std::size_t process = below(processes_.size());
  const std::size_t key = below(kKeys);
  TieredCache& cache = *processes_[process];
  const std::uint32_t kind = below(100);
  if (kind < 60) return get_or_make(process, key, 0);
  if (kind < 70) {
    if (const auto entry = cache.find(known()[key].key)) check(entry, key, "find");
  } else if (kind < 75) {
    (void)cache.prune();
  } else if (kind < 82) {
    open(process);  // a new process: its memory is empty
  } else if (kind < 88) {
    record();
  } else {
    disturb();
  }
}

void FaultWorld::get_or_make(std::size_t process, std::size_t key, std::size_t depth) {
  ++makes_;
  std::string expected;
  const Answer answer = processes_[process]->get_or_make(
      known()[key].key, [&] { return make(process, key, depth, expected); });
  if (!answer.ok()) {
    ++counts_.failed_makers;
    const std::string message = answer.error().message();
    if (expected.empty()) return fail("an error that the maker did not give: " + message);
    if (message.find(expected) == std::string::npos)
      fail(fmt::format("'{}' instead of '{}'", message, expected));
    return;
  }
  if (!expected.empty()) return fail("a failed maker gave an entry");
  check(*answer, key, "get_or_make");
}

// `expected` is a part of the error that must come out.
Result<Entry> FaultWorld::make(std::size_t process, std::size_t key, std::size_t depth,
                               std::string& expected) {
  ++counts_.compiles;
  const std::uint32_t kind = below(100);
  if (kind < 10) {
    expected = fmt::format("kernel.cu({}): error", below(1000));
    return Error{ErrorCode::compile_failed, "compile", expected, ""};
  }
  if (kind < 13) {
    expected = "another key";
    return known()[(key + 1) % kKeys].entry;
  }
  if (kind < 16) {
    expected = "the maker threw";
    throw std::runtime_error(expected);
  }
  // While this process makes the key, another does the same or something else. Never one that is
  // making already: it would wait for itself.
  if (kind < 40 && depth + 1 < processes_.size())
    get_or_make((process + 1) % processes_.size(), chance(70) ? key : below(kKeys), depth + 1);
  if (kind < 50) disturb();
  return known()[key].entry;
}

// Somebody else does something to the folder, or time passes.
void FaultWorld::disturb() {
  const std::string& root = roots_[chance(10)];
  const Layout layout{root};
  const std::size_t key = below(kKeys);
  const std::string file = file_of(root, key);
  switch (below(7)) {
    case 0:
      return clock_.advance_s(chance(50) ? 2 : kLongPauseS);
    case 1:
      return change_mode_(file, 0666);
    case 2:
      return change_mode_(chance(50) ? root : layout.shard(known()[key].key.name), 0777);
    case 3:
      (void)disk_.touch(file, chance(50) ? 946'684'800'000'000'000 : 4 * clock_.now_ns());
      return;
    case 4: {
      std::string bytes;
      if (disk_.read(file, bytes) || bytes.empty()) return;
      bytes.resize(below(static_cast<std::uint32_t>(bytes.size())));
      (void)disk_.overwrite(file, bytes);
      return;
    }
    case 5:
      (void)disk_.rename(file, file_of(root, (key + 1) % kKeys));
      return;
    default:
      (void)disk_.remove(file);
  }
}

// What is kept beside the entries: no fault of it may fail more than itself.
void FaultWorld::record() {
  TieredCache& cache = *processes_[below(processes_.size())];
  const CacheKey& key = known()[below(kKeys)].key;
  Manifest manifest{.label = "pinned", .compiler = "NVRTC 13.0.88"};
  manifest.keys.push_back({key.name, "k", "sm_90a", {}, 0});
  switch (below(6)) {
    case 0:
      (void)cache.write_manifest(manifest);
      return;
    case 1:
      (void)unpin(Layout{*cache.writable_dir()}, "pinned", files_);
      return;
    case 2:
      return cache.record_compiler("NVRTC 13.0.88");
    case 3:
      for (const std::string& identity : cache.compiler_identities())
        if (identity != "NVRTC 13.0.88") fail("a compiler that nobody recorded: " + identity);
      return;
    case 4:
      (void)cache.is_stored(key);
      (void)cache.nearest(key);
      return;
    default:
      (void)cache.verify();
  }
}

void FaultWorld::check(const std::shared_ptr<const Entry>& entry, std::size_t key, const char* by) {
  ++counts_.served;
  const Entry& right = known()[key].entry;
  if (entry == nullptr) return fail(fmt::format("{} gave nothing for key {}", by, key));
  if (entry->cubin != right.cubin || entry->key.text != right.key.text ||
      entry->threads != right.threads || entry->kernel_name != right.kernel_name)
    fail(fmt::format("{} served a wrong entry for key {}", by, key));
}

}  // namespace chord::cache
