// Field by field, in the order in which a reader would look: sizes, block_m, profile. Must not know
// any rule.
#include "heuristics/validate.h"

#include <fmt/format.h>

#include "chord/abi/problem.h"
#include "chord/schedule.h"

namespace chord::heuristics {
namespace {

Error wrong(const GemmDescriptor& d, std::string found, std::string help) {
  return Error{ErrorCode::invalid_argument, "plan of " + label(d), std::move(found),
               std::move(help)};
}

Status check_range(const GemmDescriptor& d, const char* field, std::int64_t value,
                   std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return {};
  return wrong(d, fmt::format("{} is {}", field, value),
               fmt::format("{} has to be in {}..{}", field, least, most));
}

Status check_unused(const GemmDescriptor& d, const char* field, std::int64_t value) {
  if (value == 0) return {};
  return wrong(d, fmt::format("{} is {}", field, value),
               fmt::format("{} plans have no {}; leave it 0", name(d.family), field));
}

Status check_multiple_of_64(const GemmDescriptor& d, const char* field, std::int64_t value) {
  CHORD_TRY(check_range(d, field, value, 1, INT32_MAX));
  if (value % 64 == 0) return {};
  return wrong(d, fmt::format("{} is {} = 64 * {} + {}", field, value, value / 64, value % 64),
               fmt::format("{} has to be a multiple of 64", field));
}

Status check_sizes(const GemmDescriptor& d, RowsField rows) {
  CHORD_TRY(check_multiple_of_64(d, "n", d.n));
  CHORD_TRY(check_multiple_of_64(d, "k", d.k));
  CHORD_TRY(check_range(d, "experts", d.experts, 1, kMaxExpertsPerGpu));
  CHORD_TRY(check_range(d, "num_sms", d.num_sms, 1, kMaxSms));
  const bool one_size = rows == RowsField::one_size;
  if (d.family == Family::grouped_masked) {
    CHORD_TRY(check_range(d, "max_m", d.max_m, 1, kMaxTableRows));
    if (one_size) {
      CHORD_TRY(check_range(d, "expected_m", d.expected_m, 1, kMaxTableRows));
    }
    return check_unused(d, "rows", d.rows);
  }
  if (one_size) {
    CHORD_TRY(check_range(d, "rows", d.rows, 1, kMaxTableRows));
  }
  CHORD_TRY(check_unused(d, "max_m", d.max_m));
  return check_unused(d, "expected_m", d.expected_m);
}

Status check_block_m(const GemmDescriptor& d) {
  if (!d.block_m || (*d.block_m >= 8 && *d.block_m <= 256 && *d.block_m % 8 == 0)) return {};
  return wrong(d, fmt::format("block_m is {}", *d.block_m),
               "block_m has to be a multiple of 8 in 8..256");
}

Status check_epilogue(const GemmDescriptor& d) {
  if (d.epilogue == Epilogue::none || d.epilogue == Epilogue::swiglu ||
      d.epilogue == Epilogue::weighted)
    return {};
  return wrong(d, fmt::format("epilogue is {}", static_cast<int>(d.epilogue)),
               "none, swiglu or weighted");
}

std::string arch_names(const Profile& profile) {
  std::string all;
  for (const Architecture arch : profile.archs)
    all += (all.empty() ? "" : ", ") + std::string(name(arch));
  return all;
}

Status check_profile(const ProfileSet& profiles, const GemmDescriptor& d) {
  if (d.family != Family::indexed) {
    if (d.profile.empty() && !d.role) return {};
    return wrong(d,
                 fmt::format("{} is '{}'", d.profile.empty() ? "role" : "profile",
                             d.profile.empty() ? name(*d.role) : d.profile),
                 fmt::format("{} plans follow one heuristic; leave it out", name(d.family)));
  }
  const auto known = [&] { return "one of: " + profiles.indexed_names(); };
  if (d.profile.empty()) return wrong(d, "no profile is given", known());
  const Profile* profile = profiles.indexed(d.profile);
  if (!profile) return wrong(d, fmt::format("no profile '{}'", d.profile.substr(0, 64)), known());
  if (profile->serves(d.arch)) return {};
  return wrong(d, fmt::format("profile {} is not for {}", d.profile, name(d.arch)),
               fmt::format("it is for {}", arch_names(*profile)));
}

bool is_known(Family family) {
  return family == Family::indexed || family == Family::grouped_contiguous ||
         family == Family::grouped_masked;
}

bool is_known(Architecture arch) {
  return arch == Architecture::sm_90a || arch == Architecture::sm_100a ||
         arch == Architecture::sm_103a;
}

}  // namespace

std::string label(const GemmDescriptor& d) {
  const bool masked = d.family == Family::grouped_masked;
  return fmt::format("{} {}x{}, {} experts, {} {}", name(d.family), d.n, d.k, d.experts,
                     masked ? d.expected_m : d.rows, masked ? "rows expected" : "rows");
}

std::int64_t axis_value(const GemmDescriptor& d) {
  return d.family == Family::grouped_masked ? d.expected_m : d.rows;
}

GemmDescriptor with_axis_value(GemmDescriptor d, std::int64_t value) {
  (d.family == Family::grouped_masked ? d.expected_m : d.rows) = value;
  return d;
}

Result<GemmDescriptor> completed(const ProfileSet& profiles, const GemmDescriptor& descriptor,
                                 RowsField rows) {
  GemmDescriptor d = descriptor;
  if (!is_known(d.family)) return wrong(d, "the family is none of the three", "see chord::Family");
  if (!is_known(d.arch))
    return wrong(d, "the architecture is none of the three", "sm_90a, sm_100a, sm_103a");
  if (d.num_sms == 0) d.num_sms = default_num_sms(d.arch);
  if (rows == RowsField::whole_axis) d = with_axis_value(std::move(d), 0);
  CHORD_TRY(check_sizes(d, rows));
  CHORD_TRY(check_block_m(d));
  CHORD_TRY(check_epilogue(d));
  CHORD_TRY(check_profile(profiles, d));
  return d;
}

}  // namespace chord::heuristics
