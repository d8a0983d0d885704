// Where the weights of one MoE layer come from, as one GPU of a deployment sees them: INT4 words
// and scales, expert by expert, so that nobody has to hold a layer twice. A source answers parts of
// the three projections of an expert; gate/up is put together here, gate rows first.
//
//   CHORD_TRY(const LayerShape shape, shard_shape(config, {.shard = {.ways = 8}, .rank = 3}));
//   CHORD_TRY(const QuantizedMatrix gate_up, source.gate_up(0));   // the rank's first expert
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chord/descriptor.h"
#include "chord/status.h"

namespace chord::examples {

inline constexpr std::int64_t kGroup = 32;       // weights per scale along k
inline constexpr std::int64_t kCodesInWord = 8;  // element i at bits 4i..4i+3, value + 8

// Sigmoid scores; the choice is by score plus a bias per expert, the weight is the bare score.
struct RoutingRule {
  std::int64_t top_k = 0;
  bool normalise = true;  // weights of a token are divided by their sum
  double scaling = 1.0;   // and multiplied by this
};

struct MoeConfig {
  ModelConfig model;
  RoutingRule routing;
};

// config.json of a Kimi K2 model. Refuses another scoring function and grouped routing by name.
Result<MoeConfig> read_moe_config(const std::string& json, const std::string& origin);

// Refuses a layer that has no experts, or is none.
Status check_layer(const MoeConfig& config, std::int64_t layer);

struct ShardChoice {
  Shard shard{.axis = ShardAxis::expert, .ways = 1};
  int rank = 0;
  bool shared_slot = false;  // the shared expert as one more expert, which every token takes
};

// One GPU's part of the layer.
struct LayerShape {
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;        // of this GPU
  std::int64_t first_intermediate = 0;  // tensor-parallel: where its part starts
  std::int64_t full_intermediate = 0;
  std::int64_t routed = 0;  // routed experts of this GPU
  std::int64_t first_expert = 0;
  std::int64_t all_experts = 0;  // routed experts of the model
  bool shared_slot = false;

  std::int64_t slots() const { return routed + (shared_slot ? 1 : 0); }
};

// Any number of ways that divides, one included; sizes have to be multiples of 64.
Result<LayerShape> shard_shape(const MoeConfig& config, const ShardChoice& choice);

enum class Projection { gate, up, down };
inline constexpr Projection kProjections[] = {Projection::gate, Projection::up, Projection::down};
const char* name(Projection projection);  // "gate_proj"

// Rows and columns of one projection's matrix [N, K]; columns in whole groups.
struct Part {
  std::int64_t first_row = 0, rows = 0;
  std::int64_t first_column = 0, columns = 0;
};

struct QuantizedMatrix {
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::vector<std::uint32_t> words;   // [n, k / 8]
  std::vector<std::uint16_t> scales;  // BF16 [n, k / 32]
};

struct Router {
  std::vector<std::uint16_t> gate;  // BF16 [all_experts, hidden]
  std::vector<float> bias;          // [all_experts]
};

class LayerSource {
 public:
  virtual ~LayerSource() = default;

  const LayerShape& shape() const { return shape_; }
  // Slots 0 to routed - 1 are this GPU's experts, the next one is the shared expert. Safe from
  // several threads.
  Result<QuantizedMatrix> gate_up(std::int64_t slot) const;  // [2 * intermediate, hidden]
  Result<QuantizedMatrix> down(std::int64_t slot) const;     // [hidden, intermediate]
  virtual Result<Router> router() const = 0;

 protected:
  explicit LayerSource(const LayerShape& shape) : shape_(shape) {}

  // `words` and `scales` hold exactly the part.
  virtual Status read(std::int64_t slot, Projection projection, const Part& part,
                      std::uint32_t* words, std::uint16_t* scales) const = 0;

 private:
  LayerShape shape_;
};

}  // namespace chord::examples
