// Natural loops: a branch back to a header that every way to the branch passes.
#include "src/sass/loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace chord::sass {
namespace {

using Marks = std::vector<char>;  // by instruction
using Edges = std::vector<std::vector<std::size_t>>;

struct Flow {
  Edges next, previous;
};

Flow flow_of(const Listing& listing) {
  Flow flow{Edges(listing.size()), Edges(listing.size())};
  const auto connect = [&](std::size_t from, std::size_t to) {
    flow.next[from].push_back(to);
    flow.previous[to].push_back(from);
  };
  for (std::size_t i = 0; i < listing.size(); ++i) {
    if (listing[i].target) connect(i, *listing[i].target);
    if (listing[i].falls_through && i + 1 < listing.size()) connect(i, i + 1);
  }
  return flow;
}

// What is reached from `start` without a step past `wall`.
Marks reached(const Edges& edges, std::size_t start, std::size_t wall) {
  Marks marks(edges.size(), 0);
  std::vector<std::size_t> open{start};
  marks[start] = 1;
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    if (at == wall) continue;
    for (const std::size_t to : edges[at]) {
      if (marks[to]) continue;
      marks[to] = 1;
      open.push_back(to);
    }
  }
  return marks;
}

struct Loop {
  std::size_t header = 0, latch = 0;
  Marks members;
};

// Joins the branches back to one header.
std::vector<Loop> natural_loops(const Listing& listing, const Flow& flow) {
  const Marks live = reached(flow.next, 0, listing.size());
  std::map<std::size_t, Loop> by_header;
  for (std::size_t i = 0; i < listing.size(); ++i) {
    const auto& target = listing[i].target;
    if (!target || *target > i || !live[i]) continue;
    // i is behind the wall only if every way to it leads through the header.
    if (*target != i && reached(flow.next, 0, *target)[i]) continue;
    Marks members = reached(flow.previous, i, *target);
    auto [known, is_new] = by_header.try_emplace(*target, Loop{*target, i, members});
    if (is_new) continue;
    known->second.latch = std::max(known->second.latch, i);
    for (std::size_t m = 0; m < members.size(); ++m) known->second.members[m] |= members[m];
  }
  std::vector<Loop> loops;
  for (auto& [header, loop] : by_header) loops.push_back(std::move(loop));
  return loops;
}

bool is_tensor(const Instruction& instruction) {
  return instruction.opcode == "HMMA" || instruction.opcode == "HGMMA";
}

std::string full_name(const Instruction& instruction) {
  return instruction.modifiers.empty() ? instruction.opcode
                                       : instruction.opcode + "." + instruction.modifiers;
}

bool has_tensor(const Listing& listing, const Loop& loop) {
  for (std::size_t i = 0; i < listing.size(); ++i)
    if (loop.members[i] && is_tensor(listing[i])) return true;
  return false;
}

// Natural loops of two headers are apart or one within the other.
bool is_inside(const Loop& inner, const Loop& outer) {
  return inner.header != outer.header && outer.members[inner.header];
}

// Nothing if its tensor instructions differ.
std::optional<TensorLoop> counted(const Listing& listing, const Loop& loop) {
  TensorLoop made;
  made.first = loop.header;
  made.last = loop.latch;
  for (std::size_t i = loop.header; i <= loop.latch; ++i) {
    if (!loop.members[i]) continue;
    ++made.opcodes[listing[i].opcode];
    if (!is_tensor(listing[i])) continue;
    if (!made.tensor.empty() && made.tensor != full_name(listing[i])) return std::nullopt;
    made.tensor = full_name(listing[i]);
  }
  return made;
}

}  // namespace

int TensorLoop::instructions() const {
  return std::accumulate(opcodes.begin(), opcodes.end(), 0,
                         [](int sum, const auto& one) { return sum + one.second; });
}

Result<std::vector<TensorLoop>> tensor_loops(const Listing& listing) {
  const auto refuse = [](std::string found) {
    return Error{ErrorCode::unsupported, "count the loops over K", std::move(found),
                 "only GEMM kernels have such loops"};
  };
  const auto all = std::count_if(listing.begin(), listing.end(), is_tensor);
  if (all == 0) return refuse("the code has no HMMA or HGMMA instruction");
  std::vector<Loop> loops = natural_loops(listing, flow_of(listing));
  std::erase_if(loops, [&](const Loop& loop) { return !has_tensor(listing, loop); });

  std::vector<TensorLoop> innermost;
  std::ptrdiff_t inside = 0;
  for (const Loop& loop : loops) {
    if (std::any_of(loops.begin(), loops.end(),
                    [&](const Loop& other) { return is_inside(other, loop); }))
      continue;
    std::optional<TensorLoop> made = counted(listing, loop);
    if (!made) return refuse("a loop has tensor instructions of several shapes");
    inside += made->tensor_count();
    innermost.push_back(std::move(*made));
  }
  if (inside != all)
    return refuse(
        fmt::format("{} of {} tensor instructions lie outside of the straight bodies of {} "
                    "innermost loops",
                    all - inside, all, innermost.size()));
  return innermost;
}

}  // namespace chord::sass
