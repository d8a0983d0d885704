// The table of a layer: two projections under one routing. Declared in explain.h.
#include <algorithm>
#include <map>
#include <optional>

#include "heuristics/solver.h"
#include "src/explain.h"

namespace chord {
namespace {

bool same_answer(const TableRow& a, const TableRow& b) {
  return a.schedule == b.schedule && a.kernel == b.kernel && a.origin == b.origin;
}

// The part of `source` inside (min_rows, max_rows], joined to what is there already.
void append_clipped(std::vector<TableRow>& rows, const ScheduleTable& source, std::int64_t min_rows,
                    std::int64_t max_rows) {
  for (TableRow row : source.rows) {
    row.min_rows = std::max(row.min_rows, min_rows);
    row.max_rows = std::min(row.max_rows, max_rows);
    if (row.min_rows >= row.max_rows) continue;
    if (!rows.empty() && same_answer(rows.back(), row))
      rows.back().max_rows = row.max_rows;
    else
      rows.push_back(row);
  }
}

}  // namespace

Result<LayerTable> layer_table(const Engine& engine, const LayerDescriptor& layer) {
  CHORD_TRY(const LayerPlan plan, engine.plan_layer(layer));
  GemmDescriptor gate_up = plan.gate_up.descriptor;
  gate_up.block_m = layer.block_m;
  LayerTable table;
  CHORD_TRY(table.gate_up, engine.schedule_table(gate_up));

  table.down.descriptor = plan.down.descriptor;
  const Overrides overrides = engine.options().overrides.value_or(Overrides{});
  std::map<std::optional<int>, ScheduleTable> down_by_block_m;
  for (const TableRow& row : table.gate_up.rows) {
    GemmDescriptor down = plan.down.descriptor;
    down.block_m.reset();
    if (heuristics::down_takes_block_m(overrides, row.origin)) down.block_m = row.schedule.block_m;
    auto known = down_by_block_m.find(down.block_m);
    if (known == down_by_block_m.end()) {
      CHORD_TRY(ScheduleTable made, engine.schedule_table(down));
      known = down_by_block_m.emplace(down.block_m, std::move(made)).first;
    }
    append_clipped(table.down.rows, known->second, row.min_rows, row.max_rows);
  }
  return table;
}

}  // namespace chord
