// Synthetic layers in memory and as files.
#include "tools/examples/synthetic_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "tools/examples/bf16.h"
#include "tools/examples/checkpoint.h"
#include "tools/examples/synthetic_values.h"

namespace chord::examples {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kSharedExpert = -1;

// One tensor to be written: what the header says of it, and how its bytes come to be.
struct Planned {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::function<void(char*)> fill;

  std::int64_t bytes() const {
    std::int64_t bytes = *element_bytes(dtype);
    for (const std::int64_t size : shape) bytes *= size;
    return bytes;
  }
};

void plan_matrix(const SyntheticOptions& options, const MatrixPlace& place, const std::string& name,
                 std::vector<Planned>& all) {
  const bool is_down = place.projection == Projection::down;
  const std::int64_t n = is_down ? options.hidden : options.intermediate;
  const std::int64_t k = is_down ? options.intermediate : options.hidden;
  const Part whole{0, n, 0, k};
  all.push_back({name + ".weight_packed", "I32", {n, k / kCodesInWord}, [=](char* to) {
                   fill_words(place, k, whole, reinterpret_cast<std::uint32_t*>(to));
                 }});
  all.push_back({name + ".weight_scale", "BF16", {n, k / kGroup}, [=](char* to) {
                   fill_scales(place, k, whole, reinterpret_cast<std::uint16_t*>(to));
                 }});
  const bool wide = options.wide_shapes;
  all.push_back(
      {name + ".weight_shape", wide ? "I64" : "I32", {2}, [=](char* to) {
         const std::int64_t wide_values[] = {n, k};
         const std::int32_t values[] = {static_cast<std::int32_t>(n), static_cast<std::int32_t>(k)};
         if (wide) {
           std::memcpy(to, wide_values, sizeof wide_values);
         } else {
           std::memcpy(to, values, sizeof values);
         }
       }});
}

void plan_router(const SyntheticOptions& options, std::int64_t layer, const std::string& mlp,
                 std::vector<Planned>& all) {
  const SyntheticOptions o = options;
  all.push_back({mlp + "gate.weight", "BF16", {o.experts, o.hidden}, [=](char* to) {
                   const Router router = synthetic_router(o.seed, layer, o.experts, o.hidden);
                   std::memcpy(to, router.gate.data(), router.gate.size() * 2);
                 }});
  all.push_back({mlp + "gate.e_score_correction_bias",
                 o.bf16_bias ? "BF16" : "F32",
                 {o.experts},
                 [=](char* to) {
                   const Router router = synthetic_router(o.seed, layer, o.experts, o.hidden);
                   std::vector<std::uint16_t> narrow;
                   for (const float value : router.bias) narrow.push_back(bf16_of_float(value));
                   if (o.bf16_bias) {
                     std::memcpy(to, narrow.data(), narrow.size() * 2);
                   } else {
                     std::memcpy(to, router.bias.data(), router.bias.size() * 4);
                   }
                 }});
}

std::vector<Planned> plan_tensors(const SyntheticOptions& options) {
  std::vector<Planned> all;
  for (std::int64_t layer = 1; layer < options.layers; ++layer) {
    const std::string mlp = fmt::format("{}model.layers.{}.mlp.",
                                        options.language_prefix ? "language_model." : "", layer);
    plan_router(options, layer, mlp, all);
    for (std::int64_t e = options.shared_expert ? kSharedExpert : 0; e < options.experts; ++e)
      for (const Projection projection : kProjections) {
        const std::string expert =
            e == kSharedExpert ? mlp + "shared_experts" : fmt::format("{}experts.{}", mlp, e);
        plan_matrix(options, {options.seed, layer, e, projection},
                    fmt::format("{}.{}", expert, name(projection)), all);
      }
  }
  return all;
}

std::string header_of(const Planned* first, const Planned* last) {
  Json header{{"__metadata__", {{"format", "pt"}}}};
  std::int64_t at = 0;
  for (const Planned* one = first; one != last; ++one) {
    header[one->name] = {
        {"dtype", one->dtype}, {"shape", one->shape}, {"data_offsets", {at, at + one->bytes()}}};
    at += one->bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // tensors begin at a multiple of 8
  return text;
}

class OutputFile {
 public:
  explicit OutputFile(const std::string& path)
      : path_(path), file_(std::fopen(path.c_str(), "wb"), &std::fclose) {}

  Status write(const void* from, std::size_t bytes) {
    if (file_ && std::fwrite(from, 1, bytes, file_.get()) == bytes) return {};
    return failed();
  }
  Status finish() {
    std::FILE* const file = file_.release();
    if (file != nullptr && std::fclose(file) == 0) return {};
    return failed();
  }

 private:
  Error failed() const {
    return Error{ErrorCode::io_error, "write " + path_, std::strerror(errno), ""};
  }

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

Status write_file(const std::string& path, const std::string& text) {
  OutputFile file(path);
  CHORD_TRY(file.write(text.data(), text.size()));
  return file.finish();
}

Status write_shard(const std::string& path, const Planned* first, const Planned* last) {
  const std::string header = header_of(first, last);
  char length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i));
  OutputFile file(path);
  CHORD_TRY(file.write(length, sizeof length));
  CHORD_TRY(file.write(header.data(), header.size()));
  std::vector<std::uint64_t> bytes;  // aligned for every element
  for (const Planned* one = first; one != last; ++one) {
    bytes.resize(static_cast<std::size_t>(one->bytes() + 7) / 8);
    one->fill(reinterpret_cast<char*>(bytes.data()));
    CHORD_TRY(file.write(bytes.data(), static_cast<std::size_t>(one->bytes())));
  }
  return file.finish();
}

}  // namespace

Result<SyntheticPreset> synthetic_preset(std::string_view name) {
  SyntheticPreset preset;
  preset.shard = {ShardAxis::expert, 1};
  if (name == "tiny") return preset;
  preset.options.hidden = 7168;
  preset.options.intermediate = 2048;
  preset.options.experts = 384;
  preset.options.top_k = 8;
  preset.options.shards = 16;
  preset.shard = {name == "kimi-tp8" ? ShardAxis::tensor : ShardAxis::expert, 8};
  if (name == "kimi-ep8" || name == "kimi-tp8") return preset;
  return Error{ErrorCode::invalid_argument, fmt::format("synthetic '{}'", name.substr(0, 64)),
               "no such preset", "tiny, kimi-ep8 or kimi-tp8"};
}

std::string synthetic_config_json(const SyntheticOptions& options) {
  const Json weights{{"num_bits", 4},       {"type", "int"},    {"symmetric", true},
                     {"strategy", "group"}, {"group_size", 32}, {"dynamic", false},
                     {"actorder", nullptr}};
  const Json quantization{
      {"quant_method", "compressed-tensors"},
      {"format", "pack-quantized"},
      {"config_groups", {{"group_0", {{"input_activations", nullptr}, {"weights", weights}}}}}};
  const Json text{{"model_type", "kimi_k2"},
                  {"hidden_size", options.hidden},
                  {"moe_intermediate_size", options.intermediate},
                  {"n_routed_experts", options.experts},
                  {"n_shared_experts", 1},
                  {"num_experts_per_tok", options.top_k},
                  {"num_hidden_layers", options.layers},
                  {"first_k_dense_replace", 1},
                  {"n_group", 1},
                  {"topk_group", 1},
                  {"norm_topk_prob", true},
                  {"routed_scaling_factor", options.scaling},
                  {"scoring_func", "sigmoid"},
                  {"quantization_config", quantization}};
  return Json{{"model_type", "kimi_k25"}, {"text_config", text}}.dump(2) + "\n";
}

Result<MoeConfig> synthetic_config(const SyntheticOptions& options) {
  return read_moe_config(synthetic_config_json(options), "synthetic config");
}

Result<std::unique_ptr<SyntheticLayer>> SyntheticLayer::make(const SyntheticOptions& options,
                                                             std::int64_t layer,
                                                             const ShardChoice& choice) {
  CHORD_TRY(const MoeConfig config, synthetic_config(options));
  CHORD_TRY(check_layer(config, layer));
  CHORD_TRY(const LayerShape shape, shard_shape(config, choice));
  return std::unique_ptr<SyntheticLayer>(new SyntheticLayer(shape, options, layer));
}

Status SyntheticLayer::read(std::int64_t slot, Projection projection, const Part& part,
                            std::uint32_t* words, std::uint16_t* scales) const {
  if (slot < 0 || slot >= shape().slots())
    return Error{ErrorCode::invalid_argument, fmt::format("expert slot {}", slot),
                 fmt::format("this GPU has {}", shape().slots()), ""};
  const std::int64_t expert = slot == shape().routed ? kSharedExpert : shape().first_expert + slot;
  const MatrixPlace place{options_.seed, layer_, expert, projection};
  const std::int64_t k =
      projection == Projection::down ? shape().full_intermediate : shape().hidden;
  fill_words(place, k, part, words);
  fill_scales(place, k, part, scales);
  return {};
}

Result<Router> SyntheticLayer::router() const {
  return synthetic_router(options_.seed, layer_, options_.experts, options_.hidden);
}

Status write_synthetic_checkpoint(const std::string& folder, const SyntheticOptions& options) {
  CHORD_TRY(synthetic_config(options));
  const std::filesystem::path root(folder);
  const std::vector<Planned> all = plan_tensors(options);
  const std::size_t shards = static_cast<std::size_t>(std::max(1, options.shards));
  Json map = Json::object();
  std::int64_t total = 0;
  for (std::size_t shard = 0; shard < shards; ++shard) {
    const std::string file = fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
    const Planned* const first = all.data() + all.size() * shard / shards;
    const Planned* const last = all.data() + all.size() * (shard + 1) / shards;
    CHORD_TRY(write_shard((root / file).string(), first, last));
    for (const Planned* one = first; one != last; ++one) {
      map[one->name] = file;
      total += one->bytes();
    }
  }
  const Json index{{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  CHORD_TRY(write_file((root / kIndexName).string(), index.dump(2) + "\n"));
  return write_file((root / "config.json").string(), synthetic_config_json(options));
}

}  // namespace chord::examples
