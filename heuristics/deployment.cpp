// Cuts the tables of both projections to the deployment's rows and keeps the first of equal
// kernels.
#include "heuristics/deployment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "chord/fields.h"
#include "chord/model.h"
#include "heuristics/solver.h"
#include "heuristics/validate.h"

namespace chord::heuristics {
namespace {

Error wrong(std::string found, std::string help) {
  return Error{ErrorCode::invalid_argument, "expanding a deployment", std::move(found),
               std::move(help)};
}

Status check(const Deployment& deployment) {
  if (deployment.archs.empty()) return wrong("no architecture", "name at least one");
  if (deployment.roles.empty()) return wrong("no role", "name at least one");
  if (deployment.families.empty()) return wrong("no family", "name at least one");
  if (deployment.min_rows < 1 || deployment.max_rows < deployment.min_rows ||
      deployment.max_rows > kMaxTableRows)
    return wrong(fmt::format("rows {}..{}", deployment.min_rows, deployment.max_rows),
                 fmt::format("1 <= min_rows <= max_rows <= {}", kMaxTableRows));
  return {};
}

// An override's fields are part of its key, so that two of them are two cubins even where the
// kernel is the same. Empty when no override spoke.
std::vector<int> overridden_fields(Origin origin, const PublishedSchedule& schedule) {
  std::vector<int> values;
  if (origin == Origin::override_value)
    for_each_pinnable_field(schedule, [&](const char*, int value) { values.push_back(value); });
  return values;
}

// One layer of the deployment: its tables, cut to the range of rows.
class LayerExpansion {
 public:
  LayerExpansion(const Deployment& deployment, const Overrides& overrides, Policy policy,
                 std::vector<Decision>& decisions)
      : deployment_(deployment), overrides_(overrides), policy_(policy), decisions_(decisions) {}

  Status add(const Projections& pair) {
    CHORD_TRY(const ScheduleTable gate_up, tabulate(pair.gate_up, overrides_, policy_));
    for (const TableRow& row : gate_up.rows) {
      CHORD_TRY(add_row(pair.gate_up, row, row));
    }
    // Down takes gate/up's block_m: one table of down per block_m, cut to the rows that have it.
    std::map<std::optional<int>, ScheduleTable> down_tables;
    for (const TableRow& row : gate_up.rows) {
      if (!in_range(row, row)) continue;
      GemmDescriptor down = pair.down;
      if (down_takes_block_m(overrides_, row.origin)) down.block_m = row.schedule.block_m;
      auto found = down_tables.find(down.block_m);
      if (found == down_tables.end()) {
        CHORD_TRY(ScheduleTable table, tabulate(down, overrides_, policy_));
        found = down_tables.emplace(down.block_m, std::move(table)).first;
      }
      for (const TableRow& down_row : found->second.rows) {
        CHORD_TRY(add_row(down, down_row, row));
      }
    }
    return {};
  }

 private:
  std::int64_t first_size(const TableRow& row, const TableRow& within) const {
    return std::max({row.min_rows + 1, within.min_rows + 1, deployment_.min_rows});
  }

  bool in_range(const TableRow& row, const TableRow& within) const {
    return first_size(row, within) <=
           std::min({row.max_rows, within.max_rows, deployment_.max_rows});
  }

  Status add_row(const GemmDescriptor& descriptor, const TableRow& row, const TableRow& within) {
    if (!in_range(row, within)) return {};
    const auto is_known = [&](const Decision& known) {
      return known.descriptor.arch == descriptor.arch &&
             known.descriptor.family == descriptor.family && known.descriptor.n == descriptor.n &&
             known.descriptor.k == descriptor.k && known.kernel == row.kernel &&
             overridden_fields(known.origin, known.schedule) ==
                 overridden_fields(row.origin, row.schedule);
    };
    if (std::any_of(decisions_.begin(), decisions_.end(), is_known)) return {};
    CHORD_TRY(Decision decision,
              solve(with_axis_value(descriptor, first_size(row, within)), overrides_, policy_));
    decisions_.push_back(std::move(decision));
    return {};
  }

  const Deployment& deployment_;
  const Overrides& overrides_;
  Policy policy_;
  std::vector<Decision>& decisions_;
};

}  // namespace

Result<std::vector<Decision>> expand(const Deployment& deployment, const Overrides& overrides,
                                     Policy policy) {
  CHORD_TRY(check(deployment));
  const Result<ProfileSet>& profiles = published_profiles();
  if (!profiles.ok()) return profiles.error();
  CHORD_TRY(LayerDescriptor layer, shard_layer(deployment.model, deployment.shard));
  layer.num_sms = deployment.num_sms;
  layer.gate_up_epilogue = deployment.gate_up_epilogue;
  layer.down_epilogue = deployment.down_epilogue;
  std::vector<Decision> decisions;
  LayerExpansion expansion(deployment, overrides, policy, decisions);
  for (const Architecture arch : deployment.archs) {
    for (const Role role : deployment.roles) {
      for (const Family family : deployment.families) {
        layer.arch = arch;
        layer.role = role;
        layer.family = family;
        layer.max_m = family == Family::grouped_masked ? kDeploymentMaxM : 0;
        CHORD_TRY(const Projections pair, projections(*profiles, layer));
        CHORD_TRY(expansion.add(pair));
      }
    }
  }
  return decisions;
}

}  // namespace chord::heuristics
