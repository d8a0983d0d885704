// Profiles: one serving regime per file of heuristics/profiles. A profile has rows for the shapes
// it was tuned for, a fallback for every other shape, and measured rows that override a rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chord/descriptor.h"
#include "chord/overrides.h"
#include "chord/schedule.h"
#include "heuristics/embedded.h"
#include "heuristics/indexed.h"

namespace chord::heuristics {

// Applies to rows in (min_rows, max_rows] and block_m in [min_block_m, max_block_m]; of several
// rows the first that applies is taken.
struct ProfileRow {
  std::int64_t min_rows = 0;
  std::int64_t max_rows = kMaxTableRows;
  int min_block_m = 8;
  int max_block_m = 256;
  PublishedSchedule schedule;  // block_m is 0 unless the shape's rule is by_row
  std::string why;

  bool applies(std::int64_t rows, int block_m) const {
    return rows > min_rows && rows <= max_rows && block_m >= min_block_m && block_m <= max_block_m;
  }
};

struct ProfileShape {
  std::string projection;  // "gate_up" or "down"
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::optional<std::int64_t> experts;  // any if empty
  BlockMRule block_m_rule = BlockMRule::by_row;
  std::vector<ProfileRow> rows;
};

struct Evidence {
  std::string gpu;
  std::string driver;
  std::string kernel_digest;
  double median_us = 0;
  std::string date;
};

// Pins the fields that it states, as an override would; the rules answer the rest.
struct MeasuredRow {
  Architecture arch = Architecture::sm_90a;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::optional<std::int64_t> experts;
  std::int64_t min_rows = 0;  // rows, or expected_m, in (min_rows, max_rows]
  std::int64_t max_rows = kMaxTableRows;
  Overrides pins;
  std::optional<int> ctas_per_sm;
  std::optional<bool> swap_ab;
  std::optional<bool> stream_k;
  std::string why;
  Evidence evidence;
};

struct Profile {
  std::string file;
  std::string name;
  Family family = Family::indexed;
  std::vector<Architecture> archs;
  std::vector<MeasuredRow> measured;
  std::string why;

  // Indexed only; the rules of the grouped families are code.
  ShardAxis axis = ShardAxis::expert;
  std::vector<Role> roles;
  PublishedSchedule fallback;  // block_n is 0: it follows from N
  std::vector<ProfileShape> shapes;

  bool serves(Architecture arch) const;
  bool serves(Role role) const;
  const ProfileShape* shape(std::int64_t n, std::int64_t k, std::int64_t experts) const;
};

struct ProfileSet {
  std::vector<Profile> profiles;

  const Profile* indexed(std::string_view name) const;
  const Profile* grouped(Family family) const;
  std::string indexed_names() const;  // "a, b, c"
};

// `file` is the name relative to heuristics/profiles; it names the profile: "h200_tp8.json".
Result<Profile> parse_profile(std::string_view text, std::string_view file);

Result<ProfileSet> parse_profiles(const EmbeddedFile* files, std::size_t count);

// The embedded profiles, parsed at first use.
const Result<ProfileSet>& published_profiles();

}  // namespace chord::heuristics
