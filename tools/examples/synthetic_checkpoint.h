// A made-up checkpoint of Kimi's form, any size, the same for the same seed: in memory expert by
// expert, or as a folder of shards with index and config.json. Both give the same weights. Codes
// are 1 to 15, as in Kimi's own checkpoints; scales keep activations near 1 whatever the size.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tools/examples/layer_source.h"

namespace chord::examples {

struct SyntheticOptions {
  std::int64_t hidden = 256;
  std::int64_t intermediate = 128;
  std::int64_t experts = 16;
  std::int64_t top_k = 4;
  std::int64_t layers = 2;  // the first is dense and has no tensors here
  double scaling = 2.827;
  int shards = 3;
  bool language_prefix = true;  // names begin with language_model.
  bool wide_shapes = false;     // weight_shape as I64 instead of I32
  bool bf16_bias = false;       // e_score_correction_bias as BF16 instead of F32
  bool shared_expert = false;   // write an INT4 shared expert as well
  std::uint64_t seed = 1;
};

struct SyntheticPreset {
  SyntheticOptions options;
  Shard shard;
};

// "tiny", "kimi-ep8" or "kimi-tp8".
Result<SyntheticPreset> synthetic_preset(std::string_view name);

std::string synthetic_config_json(const SyntheticOptions& options);
Result<MoeConfig> synthetic_config(const SyntheticOptions& options);

class SyntheticLayer final : public LayerSource {
 public:
  static Result<std::unique_ptr<SyntheticLayer>> make(const SyntheticOptions& options,
                                                      std::int64_t layer,
                                                      const ShardChoice& choice);
  Result<Router> router() const override;

 private:
  SyntheticLayer(const LayerShape& shape, const SyntheticOptions& options, std::int64_t layer)
      : LayerSource(shape), options_(options), layer_(layer) {}
  Status read(std::int64_t slot, Projection projection, const Part& part, std::uint32_t* words,
              std::uint16_t* scales) const override;

  SyntheticOptions options_;
  std::int64_t layer_;
};

// Into an existing folder; files of these names are replaced.
Status write_synthetic_checkpoint(const std::string& folder, const SyntheticOptions& options);

}  // namespace chord::examples
