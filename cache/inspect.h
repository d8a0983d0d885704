// What lies in a cache folder, for people: every entry in a few words, one entry as a whole, the
// folder as a sum. Only reads: makes, stamps, locks and moves nothing, so that it serves folders
// which this process may not write. Believes what a read-only folder may hold: files of this user
// and of root.
//
//   CHORD_TRY(const Inspector inspector, Inspector::open(root, files, clock));
//   CHORD_TRY(inspector.for_each([&](const EntrySummary& summary, const Entry*) {
//     bytes += summary.bytes;
//     return true;
//   }));
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/compilers.h"
#include "cache/entry.h"
#include "cache/layout.h"
#include "cache/pruner.h"
#include "chord/cache_events.h"
#include "chord/platform.h"
#include "chord/status.h"

namespace chord::cache {

struct EntrySummary {
  std::string key;  // its name
  std::string path;
  std::uint64_t bytes = 0;  // of the file
  std::int64_t last_use_ns = 0;
  MissReason problem = MissReason::none;  // why a look-up would not take it
  std::string problem_text;

  // Of a good entry only.
  std::string kernel_name;
  std::string arch;
  std::string compiler;
  std::string signer;
  double compile_ms = 0;

  bool is_good() const { return problem == MissReason::none; }
};

struct InspectedEntry {
  EntrySummary summary;
  std::optional<Entry> entry;  // empty when there is a problem
};

struct SchemaUsage {
  int schema = 0;
  Usage usage;
};

struct LockFile {
  std::string path;
  std::string key;
  std::string owner;  // as the holder has recorded itself; a dead one leaves it behind
};

struct FolderSummary {
  std::vector<SchemaUsage> schemas;  // in ascending order; this library's own only if it is there
  Usage entries;                     // of this library's schema
  std::uint64_t problems = 0;        // entries among them that no look-up would take
  Usage bad;                         // set aside
  Usage temporaries;                 // writes in progress, or what a killed process left
  std::vector<LockFile> locks;
  std::vector<RecordedCompiler> recorded;
  std::optional<std::int64_t> oldest_use_ns;
  std::optional<std::int64_t> newest_use_ns;
  std::map<std::string, Usage> by_arch;
  std::map<std::string, Usage> by_compiler;
};

class Inspector {
 public:
  static constexpr std::size_t kShortestPrefix = 6;

  // Refuses a folder that is missing (not_found) or not trusted.
  static Result<Inspector> open(const std::string& root, FileSystem& files, const Clock& clock);

  const Layout& layout() const { return layout_; }

  // Every entry of this library's schema by name, read one after the other, until `visit` answers
  // false. The entry lives as long as the call, and is null when it has a problem.
  using Visit = std::function<bool(const EntrySummary& summary, const Entry* entry)>;
  Status for_each(const Visit& visit) const;

  // One entry by its whole name; cache_miss when there is none.
  Result<InspectedEntry> read(const std::string& name) const;

  // The one entry whose name starts so. cache_miss: none; invalid_argument: several, which the
  // error lists, or no prefix at all.
  Result<std::string> resolve_prefix(std::string_view prefix) const;

  Result<FolderSummary> summary() const;

 private:
  Inspector(Layout layout, FileSystem& files, const Clock& clock);

  Result<std::vector<std::string>> names_in(const std::string& folder) const;
  InspectedEntry inspect(const std::string& shard, const std::string& name) const;
  Usage usage_of(const std::string& folder, std::string_view prefix) const;
  Status add_schemas(FolderSummary& summary) const;
  Status add_entries(FolderSummary& summary) const;
  Status add_locks(FolderSummary& summary) const;

  Layout layout_;
  FileSystem* files_;
  const Clock* clock_;
};

// True for what `resolve_prefix` takes: 6 to 32 lower-case hex digits.
bool is_key_prefix(std::string_view text);

}  // namespace chord::cache
