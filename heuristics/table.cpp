// Pieces by family: the limits of data rows, then the steps of the arithmetic rules, each found by
// bisection on a key that is monotone there.
#include "heuristics/table.h"

#include <algorithm>
#include <tuple>

#include "heuristics/grouped.h"
#include "heuristics/sampled_routing.h"
#include "heuristics/validate.h"

namespace chord::heuristics {
namespace {

constexpr std::int64_t kMaxUnsettled = 1 << 16;

void insert(Pieces& pieces, std::int64_t first) {
  if (first > 1 && first <= kMaxTableRows) pieces.push_back(first);
}

void sort(Pieces& pieces) {
  std::sort(pieces.begin(), pieces.end());
  pieces.erase(std::unique(pieces.begin(), pieces.end()), pieces.end());
}

Pieces indexed_pieces(const Situation& s, const GemmDescriptor& d, Pieces pieces) {
  const Profile& profile = *s.profiles.indexed(d.profile);
  const ProfileShape* shape = profile.shape(d.n, d.k, d.experts);
  if (!shape) return pieces;
  const BlockMRule rule = shape->block_m_rule;
  if (rule == BlockMRule::sampled_routing_then_even_blocks ||
      rule == BlockMRule::sampled_routing_then_nearest_block)
    for (const Bracket& bracket : sampled_brackets(d.experts)) insert(pieces, bracket.first_rows);
  sort(pieces);
  return cut(pieces, [&](std::int64_t rows) { return block_m_phase(rule, d.experts, rows); });
}

// Tiles at some rows, and the first error met on the way.
class TilesAlong {
 public:
  TilesAlong(const Situation& s, const GemmDescriptor& d) : s_(s), d_(d) {}

  GroupedTiles operator()(std::int64_t m) {
    Trace trace(Trace::Keep::nothing);
    const GemmDescriptor here = with_axis_value(d_, m);
    Result<GroupedTiles> tiles =
        grouped_tiles(grouped_problem(here), d_.block_m, pins_at(s_, here), trace);
    if (tiles.ok()) return *tiles;
    if (status.ok()) status = std::move(tiles).error();
    return {};
  }

  Status status;

 private:
  const Situation& s_;
  const GemmDescriptor& d_;
};

// While tiles stay the same the cluster follows from the number of row blocks: by the count itself
// as long as the floors of the cost model matter, by nothing any more from there on.
std::int64_t cluster_key(GroupedProblem problem, const GroupedTiles& tiles, std::int64_t m) {
  problem.m = m;
  const std::int64_t row_blocks = abi::ceil_div(m, tiles.block_m);
  return std::min(row_blocks, settled_row_blocks(problem, tiles.block_m, tiles.block_n));
}

int wave_key(GroupedProblem problem, const GroupedTiles& tiles, std::int64_t m) {
  problem.m = m;
  const bool fits_one_block = problem.masked && m <= tiles.block_m;
  return int{is_one_wave(problem, tiles.block_m, tiles.block_n)} + 2 * int{fits_one_block};
}

// Override tiles are another piecewise function than plain ones, and an answer compares the two.
Result<Pieces> cut_grouped(const Situation& s, const GemmDescriptor& d, const Pieces& pieces) {
  TilesAlong tiles(s, d);
  const GroupedProblem problem = grouped_problem(d);
  const auto cut_by = [&](const Pieces& coarse, auto key) {
    return cut(coarse, [&](std::int64_t m) {
      const GroupedTiles here = tiles(m);
      return here.block_m == 0 ? std::int64_t{-1} : std::int64_t{key(here, m)};
    });
  };
  Pieces finer = cut(pieces, [&](std::int64_t m) {
    const GroupedTiles t = tiles(m);
    return std::tuple(t.block_m, t.block_n, t.block_k, t.num_stages);
  });
  if (!tiles.status.ok()) return tiles.status.error();
  finer =
      cut_by(finer, [&](const GroupedTiles& t, std::int64_t m) { return wave_key(problem, t, m); });
  for (const std::int64_t first : finer) {
    const GroupedTiles t = tiles(first);
    if (settled_row_blocks(problem, t.block_m, t.block_n) > kMaxUnsettled)
      return Error{ErrorCode::unsupported, "table of " + label(d),
                   fmt::format("the costs of two clusters differ by less than one part in {}",
                               kMaxUnsettled),
                   "pin CHORD_W4A16_CM and CHORD_W4A16_CN, or plan single sizes"};
  }
  return cut_by(finer,
                [&](const GroupedTiles& t, std::int64_t m) { return cluster_key(problem, t, m); });
}

}  // namespace

Result<Pieces> monotone_pieces(const Situation& s, const GemmDescriptor& d) {
  Pieces pieces{1};
  for (const std::int64_t limit : data_limits(s, d)) insert(pieces, limit + 1);
  sort(pieces);
  if (d.family == Family::indexed) return indexed_pieces(s, d, std::move(pieces));
  static const Overrides kNone;
  const Situation plain{s.profiles, kNone, s.policy};
  CHORD_TRY(pieces, cut_grouped(plain, d, pieces));
  if (!(s.overrides == kNone)) {
    CHORD_TRY(pieces, cut_grouped(s, d, pieces));
  }
  return pieces;
}

Result<ScheduleTable> table(const Situation& s, const GemmDescriptor& d) {
  CHORD_TRY(Pieces pieces, monotone_pieces(s, d));
  Trace trace(Trace::Keep::nothing);
  Status status;
  const auto answer_at = [&](std::int64_t rows) {
    Result<Answer> found = answer(s, with_axis_value(d, rows), trace);
    if (found.ok()) return *found;
    if (status.ok()) status = std::move(found).error();
    return Answer{};
  };
  pieces = cut(pieces, answer_at);
  ScheduleTable table;
  table.descriptor = d;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Answer here = answer_at(pieces[i]);
    const std::int64_t last = last_of_piece(pieces, i);
    std::vector<TableRow>& rows = table.rows;
    const bool merges = !rows.empty() && here == Answer{rows.back().schedule, rows.back().kernel,
                                                        rows.back().origin};
    if (merges)
      rows.back().max_rows = last;
    else
      rows.push_back({pieces[i] - 1, last, here.schedule, here.kernel, here.origin});
  }
  if (!status.ok()) return status.error();
  return table;
}

}  // namespace chord::heuristics
