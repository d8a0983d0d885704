// Names, completeness and forms of a layer's tensors, and reading of their parts.
#include "tools/examples/kimi_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "tools/examples/bf16.h"

namespace chord::examples {
namespace {

constexpr std::int64_t kMaxConfigBytes = 16 << 20;
constexpr const char* kPrefix = "language_model.";
constexpr const char* kSuffixes[] = {"weight_packed", "weight_scale", "weight_shape"};

bool starts_with(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

// The names of one expert, or of the shared one.
std::vector<std::string> names_of(const std::string& expert) {
  std::vector<std::string> names;
  for (const Projection projection : kProjections)
    for (const char* suffix : kSuffixes)
      names.push_back(fmt::format("{}.{}.{}", expert, name(projection), suffix));
  return names;
}

std::string expert_name(const std::string& mlp, std::int64_t expert) {
  return fmt::format("{}experts.{}", mlp, expert);
}

// Numbers as ranges: "0..5, 7".
std::string ranges(const std::vector<std::int64_t>& numbers) {
  constexpr int kMostRanges = 8;
  std::string text;
  int shown_ranges = 0;
  for (std::size_t i = 0; i < numbers.size(); ++shown_ranges) {
    if (shown_ranges == kMostRanges) return text + ", ...";
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += text.empty() ? "" : ", ";
    text += last == i ? fmt::format("{}", numbers[i])
                      : fmt::format("{}..{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text.empty() ? "none" : text;
}

// Experts that the config does not know mean that it is another model's.
Status check_no_more(const Checkpoint& checkpoint, const std::string& mlp, std::int64_t experts) {
  const std::string start = mlp + "experts.";
  std::vector<std::int64_t> extra;
  for (auto at = checkpoint.names().lower_bound(start);
       at != checkpoint.names().end() && starts_with(at->first, start); ++at) {
    std::int64_t expert = -1;
    const char* const first = at->first.data() + start.size();
    const char* const end = at->first.data() + at->first.size();
    const auto [stop, error] = std::from_chars(first, end, expert);
    const bool is_number = error == std::errc() && stop != first && stop != end && *stop == '.';
    if (!is_number)
      return Error{ErrorCode::invalid_argument,
                   fmt::format("tensor '{}' of {}", at->first, at->second),
                   "no expert's number behind 'experts.'", ""};
    if (expert >= experts || expert < 0) extra.push_back(expert);
  }
  if (extra.empty()) return {};
  std::sort(extra.begin(), extra.end());
  extra.erase(std::unique(extra.begin(), extra.end()), extra.end());
  return Error{ErrorCode::invalid_argument, fmt::format("{}* of {}", start, checkpoint.path()),
               fmt::format("experts {} beyond the {} of the config", ranges(extra), experts),
               "config and tensors are of different models"};
}

// All names of the layer, also those of other ranks: a download that stopped half way is found out
// on every rank.
Status check_names(const Checkpoint& checkpoint, const std::string& mlp, std::int64_t experts) {
  std::vector<std::string> missing;
  std::vector<std::int64_t> whole, half, absent;
  for (std::int64_t e = 0; e < experts; ++e) {
    std::size_t lacks = missing.size();
    const std::vector<std::string> names = names_of(expert_name(mlp, e));
    for (const std::string& one : names)
      if (!checkpoint.has(one)) missing.push_back(one);
    lacks = missing.size() - lacks;
    (lacks == 0 ? whole : lacks == names.size() ? absent : half).push_back(e);
  }
  for (const char* router : {"gate.weight", "gate.e_score_correction_bias"})
    if (!checkpoint.has(mlp + router)) missing.push_back(mlp + router);
  if (missing.empty()) return {};
  return Error{ErrorCode::not_found, fmt::format("{}* of {}", mlp, checkpoint.path()),
               fmt::format("{} tensors are missing: {}; of {} experts whole: {}, half: {}, "
                           "absent: {}",
                           missing.size(), first_few(missing), experts, ranges(whole), ranges(half),
                           ranges(absent)),
               "the checkpoint is not complete, or the config is of another model"};
}

// A NaN here would make every choice of experts a matter of chance.
template <class Value, class ToFloat>
Status check_finite(const TensorInfo& info, const std::vector<Value>& values,
                    const ToFloat& to_float) {
  const auto bad = std::find_if(values.begin(), values.end(),
                                [&](Value value) { return !std::isfinite(to_float(value)); });
  if (bad == values.end()) return {};
  return Error{ErrorCode::corrupt, info.label(),
               fmt::format("element {} is {}", bad - values.begin(), to_float(*bad)),
               "a router's weights and bias have to be finite"};
}

// The shared expert of Kimi's own checkpoints is BF16 and belongs to a dense product beside.
Status check_shared(const Checkpoint& checkpoint, const std::string& shared) {
  const std::string dense = shared + ".gate_proj.weight";
  if (!checkpoint.has(dense)) return {};
  return Error{ErrorCode::unsupported, "a slot for the shared expert",
               fmt::format("'{}' is not INT4", dense),
               "leave the slot out and run the shared expert as a dense layer"};
}

}  // namespace

Result<MoeConfig> read_checkpoint_config(const Checkpoint& checkpoint) {
  const std::string path = (std::filesystem::path(checkpoint.folder()) / "config.json").string();
  CHORD_TRY(const std::string text, read_text(path, kMaxConfigBytes));
  return read_moe_config(text, path);
}

Result<std::string> find_prefix(const Checkpoint& checkpoint) {
  const std::string bare = "model.layers.";
  const std::string prefixed = kPrefix + bare;
  const auto first_of = [&](const std::string& start) {
    const auto at = checkpoint.names().lower_bound(start);
    const bool found = at != checkpoint.names().end() && starts_with(at->first, start);
    return found ? at->first : std::string();
  };
  const std::string with = first_of(prefixed), without = first_of(bare);
  if (!with.empty() && !without.empty())
    return Error{ErrorCode::invalid_argument, "names in " + checkpoint.path(),
                 fmt::format("'{}' beside '{}'", with, without),
                 "all layers have to have one prefix"};
  if (with.empty() && without.empty())
    return Error{ErrorCode::not_found, "names in " + checkpoint.path(),
                 fmt::format("none of its {} tensors is a '[{}]{}*'", checkpoint.names().size(),
                             kPrefix, bare),
                 "it has to be a checkpoint of the Kimi K2 line"};
  return with.empty() ? "" : std::string(kPrefix);
}

Result<std::unique_ptr<KimiLayer>> KimiLayer::open(const Checkpoint& checkpoint,
                                                   const MoeConfig& config, std::int64_t layer,
                                                   const ShardChoice& choice) {
  CHORD_TRY(const LayerShape shape, shard_shape(config, choice));
  CHORD_TRY(check_layer(config, layer));
  CHORD_TRY(const std::string prefix, find_prefix(checkpoint));
  const std::string mlp = fmt::format("{}model.layers.{}.mlp.", prefix, layer);
  CHORD_TRY(check_no_more(checkpoint, mlp, shape.all_experts));
  CHORD_TRY(check_names(checkpoint, mlp, shape.all_experts));
  if (shape.shared_slot) CHORD_TRY(check_shared(checkpoint, mlp + "shared_experts"));
  std::unique_ptr<KimiLayer> made(new KimiLayer(shape, checkpoint));
  CHORD_TRY(made->locate(mlp));
  return made;
}

Status KimiLayer::locate(const std::string& mlp) {
  std::vector<std::string> names{mlp + "gate.weight", mlp + "gate.e_score_correction_bias"};
  for (std::int64_t slot = 0; slot < shape().slots(); ++slot) {
    const bool is_shared = slot == shape().routed;
    const std::string expert =
        is_shared ? mlp + "shared_experts" : expert_name(mlp, shape().first_expert + slot);
    for (std::string& one : names_of(expert)) names.push_back(std::move(one));
  }
  CHORD_TRY(const std::vector<TensorInfo> found, checkpoint_.locate(names));

  gate_ = found[0];
  bias_ = found[1];
  CHORD_TRY(check_form(gate_, "BF16", {shape().all_experts, shape().hidden}));
  CHORD_TRY(check_form(bias_, bias_.dtype == "BF16" ? "BF16" : "F32", {shape().all_experts}));
  slots_.resize(static_cast<std::size_t>(shape().slots()));
  std::size_t next = 2;
  for (std::array<Tensors, 3>& slot : slots_)
    for (const Projection projection : kProjections) {
      Tensors& tensors = slot[static_cast<std::size_t>(projection)];
      tensors = {found[next], found[next + 1], found[next + 2]};
      next += 3;
      const bool is_down = projection == Projection::down;
      const std::int64_t n = is_down ? shape().hidden : shape().full_intermediate;
      const std::int64_t k = is_down ? shape().full_intermediate : shape().hidden;
      CHORD_TRY(check(tensors, n, k));
    }
  return {};
}

Status KimiLayer::check(const Tensors& tensors, std::int64_t n, std::int64_t k) const {
  CHORD_TRY(check_form(tensors.packed, "I32", {n, k / kCodesInWord}));
  CHORD_TRY(check_form(tensors.scale, "BF16", {n, k / kGroup}));
  const bool is_wide = tensors.shape.dtype == "I64";
  CHORD_TRY(check_form(tensors.shape, is_wide ? "I64" : "I32", {2}));
  std::int64_t wide[2] = {};
  std::int32_t narrow[2] = {};
  void* const to = is_wide ? static_cast<void*>(wide) : narrow;
  CHORD_TRY(checkpoint_.read(tensors.shape, 0, tensors.shape.bytes(), to));
  if (!is_wide) std::copy_n(narrow, 2, wide);
  if (wide[0] == n && wide[1] == k) return {};
  return Error{ErrorCode::invalid_argument, tensors.shape.label(),
               fmt::format("it says {} x {}", wide[0], wide[1]),
               fmt::format("the config means {} x {}", n, k)};
}

Status KimiLayer::read(std::int64_t slot, Projection projection, const Part& part,
                       std::uint32_t* words, std::uint16_t* scales) const {
  if (slot < 0 || slot >= shape().slots())
    return Error{ErrorCode::invalid_argument, fmt::format("expert slot {}", slot),
                 fmt::format("this GPU has {}", shape().slots()), ""};
  const auto& tensors =
      slots_[static_cast<std::size_t>(slot)][static_cast<std::size_t>(projection)];
  const std::int64_t k =
      projection == Projection::down ? shape().full_intermediate : shape().hidden;
  CHORD_TRY(read_part(tensors.packed, part, k, words));
  return read_part(tensors.scale, part, k, scales);
}

// Rows are read whole, because a file is read by pages: columns are cut out here.
Status KimiLayer::read_part(const TensorInfo& info, const Part& part, std::int64_t k,
                            void* to) const {
  const std::int64_t row_bytes = info.bytes() / info.shape[0];
  const std::int64_t offset = part.first_row * row_bytes;
  if (part.columns == k) return checkpoint_.read(info, offset, part.rows * row_bytes, to);
  std::vector<char> rows(static_cast<std::size_t>(part.rows * row_bytes));
  CHORD_TRY(checkpoint_.read(info, offset, part.rows * row_bytes, rows.data()));
  const std::int64_t first = part.first_column * row_bytes / k;
  const std::int64_t bytes = part.columns * row_bytes / k;
  for (std::int64_t row = 0; row < part.rows; ++row)
    std::memcpy(static_cast<char*>(to) + row * bytes, rows.data() + row * row_bytes + first,
                static_cast<std::size_t>(bytes));
  return {};
}

Result<Router> KimiLayer::router() const {
  Router router;
  router.gate.resize(static_cast<std::size_t>(gate_.bytes() / 2));
  CHORD_TRY(checkpoint_.read(gate_, 0, gate_.bytes(), router.gate.data()));
  CHORD_TRY(check_finite(gate_, router.gate, float_of_bf16));
  router.bias.resize(static_cast<std::size_t>(shape().all_experts));
  if (bias_.dtype == "F32") {
    CHORD_TRY(checkpoint_.read(bias_, 0, bias_.bytes(), router.bias.data()));
  } else {
    std::vector<std::uint16_t> narrow(router.bias.size());
    CHORD_TRY(checkpoint_.read(bias_, 0, bias_.bytes(), narrow.data()));
    std::transform(narrow.begin(), narrow.end(), router.bias.begin(), float_of_bf16);
  }
  CHORD_TRY(check_finite(bias_, router.bias, [](float value) { return value; }));
  return router;
}

}  // namespace chord::examples
