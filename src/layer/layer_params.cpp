// Checks, kernel after kernel.
#include "src/layer/layer_params.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/layer/layer_source.h"

namespace chord::layer {
namespace {

constexpr std::int64_t kMost = 0x7fffffff;
constexpr int kMostSlots = 64;
constexpr int kColumnsOfThread = 8;

// A field that is checked against a range.
struct Bounded {
  const char* field;
  std::int64_t value, least, most;
};
// A pointer that has to be aligned, and to be there unless it is optional.
struct Pointer {
  const char* field;
  const void* address;
  std::uintptr_t alignment;
  bool is_optional = false;
};
constexpr bool kOptional = true;

Error refuse(const char* asked, std::string found, std::string help) {
  return Error{ErrorCode::invalid_argument, asked, std::move(found), std::move(help)};
}

template <std::size_t Count>
Status check_ranges(const char* asked, const Bounded (&fields)[Count]) {
  for (const Bounded& f : fields)
    if (f.value < f.least || f.value > f.most)
      return refuse(asked, fmt::format("{} is {}", f.field, f.value),
                    fmt::format("{} to {}", f.least, f.most));
  return {};
}

template <std::size_t Count>
Status check_pointers(const char* asked, const Pointer (&pointers)[Count]) {
  for (const Pointer& p : pointers) {
    if (p.address == nullptr && p.is_optional) continue;
    if (p.address == nullptr)
      return refuse(asked, fmt::format("{} is a null pointer", p.field), "pass device memory");
    if (reinterpret_cast<std::uintptr_t>(p.address) % p.alignment != 0)
      return refuse(
          asked,
          fmt::format("{} is at {}, not aligned to {} bytes", p.field, p.address, p.alignment),
          "allocate it aligned; sub-views may break alignment");
  }
  return {};
}

Status check_filter(const char* asked, const RowFilter& filter, abi::RowFilter& params) {
  if (filter.ids == nullptr && filter.expert_map != nullptr)
    return refuse(asked, "filter.expert_map without filter.ids", "give the id of every row");
  if (filter.ids != nullptr) {
    CHORD_TRY(check_ranges(asked, {{"filter.experts", filter.experts, 1, kMost}}));
  }
  params = {filter.ids, filter.expert_map, filter.experts, 0};
  return {};
}

// Threads that make eight columns each.
Result<unsigned> piece_blocks(const char* asked, std::int64_t rows, int columns, int threads) {
  if (columns % kColumnsOfThread != 0)
    return refuse(asked, fmt::format("columns is {}", columns), "a multiple of 8");
  const std::int64_t pieces = rows * (columns / kColumnsOfThread);
  if (pieces > kMost)
    return refuse(asked, fmt::format("{} rows of {} columns", rows, columns),
                  "rows * columns below 2^34");
  return static_cast<unsigned>(abi::ceil_div(pieces, threads));
}

}  // namespace

Result<unsigned> fill_params(const GateArguments& a, abi::GateParams& params) {
  constexpr const char* kAsked = "launch of gate";
  CHORD_TRY(check_ranges(kAsked, {{"tokens", a.tokens, 0, kMost},
                                  {"experts", a.experts, 1, abi::kMaxAlignedExperts},
                                  {"top_k", a.top_k, 1, std::min(kMaxTopK, a.experts)},
                                  {"logit_type", static_cast<int>(a.logit_type), 0, 1},
                                  {"scoring", static_cast<int>(a.scoring), 0, 1}}));
  if (!std::isfinite(a.scale) || a.scale == 0)
    return refuse(kAsked, fmt::format("scale is {}", a.scale), "finite and not 0; 1 for none");
  const std::uintptr_t width = a.logit_type == LogitType::f32 ? 4 : 2;
  if (a.tokens > 0)
    CHORD_TRY(check_pointers(kAsked, {{"logits", a.logits, width},
                                      {"correction_bias", a.correction_bias, 4, kOptional},
                                      {"ids", a.ids, 4},
                                      {"weights", a.weights, 4}}));
  params = {a.logits,
            a.correction_bias,
            a.ids,
            a.weights,
            a.tokens,
            a.experts,
            a.top_k,
            a.top_k + (a.shared_slot ? 1 : 0),
            a.logit_type,
            a.scoring,
            a.renormalise ? 1 : 0,
            a.scale};
  return static_cast<unsigned>(abi::ceil_div(a.tokens, abi::kGateWarps));
}

Result<unsigned> fill_params(const AlignArguments& a, abi::AlignParams& params) {
  constexpr const char* kAsked = "launch of align";
  CHORD_TRY(check_ranges(kAsked, {{"num_ids", a.num_ids, 0, kMost},
                                  {"experts", a.experts, 1, abi::kMaxAlignedExperts},
                                  {"block_m", a.block_m, 8, 256},
                                  {"foreign", static_cast<int>(a.foreign), 0, 1}}));
  if (a.block_m % 8 != 0)
    return refuse(kAsked, fmt::format("block_m is {}", a.block_m), "a multiple of 8 in 8..256");
  const std::int64_t capacity = align_capacity(a.num_ids, a.experts, a.block_m);
  if (capacity > kMost)
    return refuse(kAsked,
                  fmt::format("{} ids, {} with padding (align_capacity)", a.num_ids, capacity),
                  "ids and padding together at most 2^31 - 1");
  if (a.capacity < capacity)
    return refuse(kAsked, fmt::format("sorted_ids has a capacity of {}", a.capacity),
                  fmt::format("{} ids are needed (align_capacity)", capacity));
  CHORD_TRY(check_pointers(kAsked, {{"num_tokens_padded", a.num_tokens_padded, 4},
                                    {"expert_map", a.expert_map, 4, kOptional}}));
  if (a.num_ids > 0)
    CHORD_TRY(check_pointers(
        kAsked,
        {{"ids", a.ids, 4}, {"sorted_ids", a.sorted_ids, 16}, {"expert_ids", a.expert_ids, 4}}));
  const std::size_t workspace = align_workspace_bytes(a.num_ids, a.experts);
  if (a.workspace_bytes < workspace)
    return refuse(kAsked, fmt::format("workspace of {} bytes", a.workspace_bytes),
                  fmt::format("{} bytes are needed (align_workspace_bytes)", workspace));
  if (workspace > 0) CHORD_TRY(check_pointers(kAsked, {{"workspace", a.workspace, 16}}));
  const std::int64_t chunks = abi::align_chunks(a.num_ids);
  params = {a.ids,
            a.expert_map,
            a.sorted_ids,
            a.expert_ids,
            a.num_tokens_padded,
            static_cast<abi::i32*>(a.workspace),
            a.num_ids,
            a.experts,
            a.block_m,
            static_cast<abi::i32>(chunks),
            a.foreign,
            abi::AlignPass::place,
            0};
  return static_cast<unsigned>(chunks);
}

Result<unsigned> fill_params(const SwigluArguments& a, abi::SwigluParams& params) {
  constexpr const char* kAsked = "launch of swiglu";
  CHORD_TRY(
      check_ranges(kAsked, {{"rows", a.rows, 0, kMost}, {"columns", a.columns, 8, kMost / 2}}));
  CHORD_TRY(check_filter(kAsked, a.filter, params.filter));
  CHORD_TRY(const unsigned blocks,
            piece_blocks(kAsked, a.rows, a.columns, layer_kernel_threads(LayerKernel::swiglu)));
  if (blocks > 0)
    CHORD_TRY(check_pointers(kAsked, {{"gate_up", a.gate_up, 16},
                                      {"output", a.output, 16},
                                      {"filter.ids", a.filter.ids, 4, kOptional},
                                      {"filter.expert_map", a.filter.expert_map, 4, kOptional}}));
  params.gate_up = a.gate_up;
  params.output = a.output;
  params.rows = a.rows;
  params.columns = a.columns;
  return blocks;
}

Result<unsigned> fill_params(const CombineArguments& a, abi::CombineParams& params) {
  constexpr const char* kAsked = "launch of combine";
  CHORD_TRY(check_ranges(kAsked, {{"tokens", a.tokens, 0, kMost},
                                  {"slots", a.slots, 1, kMostSlots},
                                  {"columns", a.columns, 8, kMost}}));
  CHORD_TRY(check_filter(kAsked, a.filter, params.filter));
  CHORD_TRY(const unsigned blocks,
            piece_blocks(kAsked, a.tokens, a.columns, layer_kernel_threads(LayerKernel::combine)));
  if (blocks > 0)
    CHORD_TRY(check_pointers(kAsked, {{"rows", a.rows, 16},
                                      {"weights", a.weights, 4, kOptional},
                                      {"output", a.output, 16},
                                      {"filter.ids", a.filter.ids, 4, kOptional},
                                      {"filter.expert_map", a.filter.expert_map, 4, kOptional}}));
  params.rows = a.rows;
  params.weights = a.weights;
  params.output = a.output;
  params.tokens = a.tokens;
  params.slots = a.slots;
  params.columns = a.columns;
  return blocks;
}

}  // namespace chord::layer

namespace chord {

std::int64_t align_capacity(std::int64_t num_ids, int experts, int block_m) {
  if (num_ids <= 0 || experts <= 0 || block_m <= 0) return 0;
  return num_ids + abi::min_of(num_ids, experts) * (block_m - 1);
}

std::size_t align_workspace_bytes(std::int64_t num_ids, int experts) {
  const std::int64_t chunks = abi::align_chunks(num_ids);
  return chunks <= 1 ? 0 : static_cast<std::size_t>(chunks) * std::max(experts, 0) * 4;
}

}  // namespace chord
