// One MoE layer of a Kimi K2 checkpoint: which tensors it has, whether they are all there and of
// the right form, and their INT4 words for one GPU. Names are
//   [language_model.]model.layers.{l}.mlp.experts.{e}.{gate|up|down}_proj.{weight_packed (I32
//   [N, K/8]), weight_scale (BF16 [N, K/32]), weight_shape (I32 or I64 [2])}, beside
//   mlp.gate.weight (BF16) and mlp.gate.e_score_correction_bias (F32 or BF16).
//
//   CHORD_TRY(auto checkpoint, Checkpoint::open(folder));
//   CHORD_TRY(const MoeConfig config, read_checkpoint_config(checkpoint));
//   CHORD_TRY(const auto layer, KimiLayer::open(checkpoint, config, 1, {.shard = {.ways = 8}}));
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tools/examples/checkpoint.h"
#include "tools/examples/layer_source.h"

namespace chord::examples {

// config.json beside the tensors.
Result<MoeConfig> read_checkpoint_config(const Checkpoint& checkpoint);

// "" or "language_model."; a checkpoint that has both spellings is refused.
Result<std::string> find_prefix(const Checkpoint& checkpoint);

class KimiLayer final : public LayerSource {
 public:
  // Checks names of the whole layer, form of this GPU's tensors, and reads their weight_shape.
  // The checkpoint has to outlive it.
  static Result<std::unique_ptr<KimiLayer>> open(const Checkpoint& checkpoint,
                                                 const MoeConfig& config, std::int64_t layer,
                                                 const ShardChoice& choice);

  Result<Router> router() const override;

 private:
  struct Tensors {
    TensorInfo packed, scale, shape;
  };

  KimiLayer(const LayerShape& shape, const Checkpoint& checkpoint)
      : LayerSource(shape), checkpoint_(checkpoint) {}
  Status locate(const std::string& mlp);
  Status check(const Tensors& tensors, std::int64_t n, std::int64_t k) const;
  Status read(std::int64_t slot, Projection projection, const Part& part, std::uint32_t* words,
              std::uint16_t* scales) const override;
  Status read_part(const TensorInfo& info, const Part& part, std::int64_t k, void* to) const;

  const Checkpoint& checkpoint_;
  TensorInfo gate_, bias_;
  std::vector<std::array<Tensors, 3>> slots_;
};

}  // namespace chord::examples
