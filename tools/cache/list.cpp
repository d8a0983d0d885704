// chord-cache ls: one line per entry.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "chord/descriptor.h"
#include "tools/cache/folder.h"
#include "tools/cache/text.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

using cache::EntrySummary;

constexpr std::int64_t kDayNs = std::int64_t{86400} * 1'000'000'000;

struct Flags {
  std::string arch, compiler, sort = "name";
  std::int64_t unused_days = 0;
};

struct Listing {
  std::vector<EntrySummary> entries;
  std::map<std::string, std::string> labels;
  std::int64_t now_ns = 0;

  std::string label(const EntrySummary& entry) const {
    const auto found = labels.find(entry.key);
    return found == labels.end() ? entry.kernel_name : found->second;
  }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const EntrySummary& entry : entries) sum += entry.bytes;
    return sum;
  }
};

// What is asked of the arch or compiler of a damaged entry has no answer: such a list leaves it
// out.
bool is_wanted(const EntrySummary& entry, const Flags& flags, std::int64_t now_ns) {
  if (!flags.arch.empty() && entry.arch != flags.arch) return false;
  if (entry.compiler.find(flags.compiler) == entry.compiler.npos) return false;
  return now_ns - entry.last_use_ns >= flags.unused_days * kDayNs || flags.unused_days == 0;
}

// The entries come by name; the oldest or the largest stand first.
void sort(std::vector<EntrySummary>& entries, const std::string& by) {
  if (by == "name") return;
  std::stable_sort(entries.begin(), entries.end(),
                   [&](const EntrySummary& a, const EntrySummary& b) {
                     return by == "size" ? a.bytes > b.bytes : a.last_use_ns < b.last_use_ns;
                   });
}

Json json_of(const Listing& listing, const Folder& folder) {
  Json entries = Json::array();
  for (const EntrySummary& entry : listing.entries) {
    entries.push_back(tools::json_of(entry, listing.now_ns));
    entries.back()["label"] = json_or_null(listing.label(entry));
  }
  return Json{{"cache_dir", folder.layout().root},
              {"count", listing.entries.size()},
              {"bytes", listing.bytes()},
              {"entries", std::move(entries)}};
}

std::vector<std::string> row_of(const EntrySummary& entry, const Listing& listing) {
  std::vector<std::string> row{entry.key, "-", std::to_string(entry.bytes),
                               age_text(entry.last_use_ns, listing.now_ns)};
  if (!entry.is_good()) {
    row.insert(row.end(), {"-", "-"});
    row.push_back(one_line(fmt::format("{}: {}", name(entry.problem), entry.problem_text)));
    return row;
  }
  row[1] = one_line(entry.arch);
  row.push_back(fmt::format("{:.0f} ms", entry.compile_ms));
  row.push_back(entry.signer.empty() ? "-" : one_line(entry.signer));
  row.push_back(one_line(listing.label(entry)));
  return row;
}

std::string text_of(const Listing& listing) {
  std::vector<std::vector<std::string>> rows{
      {"KEY", "ARCH", "BYTES", "UNUSED FOR", "COMPILE", "SIGNED BY", "LABEL"}};
  for (const EntrySummary& entry : listing.entries) rows.push_back(row_of(entry, listing));
  const std::string table = listing.entries.empty() ? std::string() : table_text(rows);
  return table +
         fmt::format("{} entries, {}\n", listing.entries.size(), size_text(listing.bytes()));
}

Result<int> run(const Flags& flags, const Common& common) {
  if (!flags.arch.empty()) {
    CHORD_TRY(const Architecture known, parse_architecture(flags.arch));
    (void)known;
  }
  CHORD_TRY(const Folder folder, open_folder(common, Purpose::read));
  Listing listing{{}, labels_of(folder), clock().now_ns()};
  CHORD_TRY(folder.inspector.for_each([&](const EntrySummary& entry, const cache::Entry*) {
    if (is_wanted(entry, flags, listing.now_ns)) listing.entries.push_back(entry);
    return true;
  }));
  sort(listing.entries, flags.sort);
  if (common.json) return print_json(json_of(listing, folder));
  return print_text(text_of(listing));
}

Action prepare(CLI::App& app) {
  const auto flags = std::make_shared<Flags>();
  app.add_option("--arch", flags->arch, "only those of an architecture: sm_90a, ...")
      ->type_name("NAME")
      ->check(flag_text());
  app.add_option("--compiler", flags->compiler, "only those whose compiler has this text")
      ->type_name("TEXT")
      ->check(flag_text());
  app.add_option("--unused-days", flags->unused_days, "only those that nobody used for so long")
      ->type_name("DAYS")
      ->transform(whole_number(0, 36500));
  app.add_option("--sort", flags->sort, "name (default), used (oldest first) or size")
      ->type_name("ORDER")
      ->check(CLI::IsMember({"name", "used", "size"}));
  return [flags](const Common& common) { return run(*flags, common); };
}

}  // namespace

const Command kListCommand{"ls", "list the entries, one a line",
                           "  chord-cache ls --sort used\n"
                           "  chord-cache ls --arch sm_90a --unused-days 30 --json\n"
                           "  chord-cache ls --compiler 'NVRTC 13.0' --cache-dir /image/chord",
                           prepare};

}  // namespace chord::tools
