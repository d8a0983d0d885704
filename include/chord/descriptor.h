// What is to be computed: one expert GEMM, or a layer of two that share a routing, or a whole model
// deployment. Plain values; nothing here decides.
//
//   GemmDescriptor gate_up{.family = Family::indexed, .n = 4096, .k = 7168, .experts = 48, .rows =
//   160,
//                          .profile = "h200_decode_ep8"};
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chord/abi/problem.h"
#include "chord/abi/schedule.h"
#include "chord/export.h"
#include "chord/status.h"

namespace chord {

enum class Architecture { sm_90a, sm_100a, sm_103a };

CHORD_API const char* name(Architecture arch);                         // "sm_90a"
CHORD_API Result<Architecture> parse_architecture(std::string_view);   // refuses others by name
CHORD_API Result<Architecture> architecture_of(int major, int minor);  // compute capability
CHORD_API int default_num_sms(Architecture arch);  // 132 on SM90, 148 on Blackwell
CHORD_API bool is_blackwell(Architecture arch);

using Family = abi::RoutingKind;
using Epilogue = abi::Epilogue;

CHORD_API const char* name(Family family);  // "indexed", "grouped_contiguous", "grouped_masked"
CHORD_API Result<Family> parse_family(std::string_view);

enum class Role { decode, prefill, mix };

CHORD_API const char* name(Role role);
CHORD_API Result<Role> parse_role(std::string_view);

struct GemmDescriptor {
  Family family = Family::indexed;
  Architecture arch = Architecture::sm_90a;
  int num_sms = 0;              // 0: default_num_sms(arch)
  std::int64_t n = 0;           // output columns of one expert; a multiple of 64
  std::int64_t k = 0;           // depth; a multiple of 64
  std::int64_t experts = 0;     // experts held by this GPU
  std::int64_t rows = 0;        // indexed: routed rows; grouped_contiguous: rows of the tensor
  std::int64_t max_m = 0;       // grouped_masked: rows of one expert's slab
  std::int64_t expected_m = 0;  // grouped_masked: rows expected per expert, only a hint
  std::string profile;          // indexed: a published profile, see heuristics/profiles
  std::optional<int> block_m;   // an engine's routing alignment, honoured if given
  std::optional<Role> role =
      std::nullopt;  // indexed: one that the profile lacks means its fallback
  // swiglu: for a weight packed in RowOrder::gate_up, the output has N / 2 columns; weighted:
  // GemmArguments::row_weights.
  Epilogue epilogue = Epilogue::none;

  bool operator==(const GemmDescriptor&) const = default;
};

enum class ShardAxis { expert, tensor };

struct Shard {
  ShardAxis axis = ShardAxis::expert;
  int ways = 8;

  bool operator==(const Shard&) const = default;
};

CHORD_API const char* name(ShardAxis axis);  // "ep", "tp"

// The text model's facts that shape its MoE layers, read from a Hugging Face config.json.
struct ModelConfig {
  std::string model;  // built-in name or model_type of the file
  std::int64_t hidden_size = 0;
  std::int64_t moe_intermediate_size = 0;
  std::int64_t n_routed_experts = 0;
  std::int64_t num_experts_per_tok = 0;
  std::int64_t n_shared_experts = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t first_k_dense_replace = 0;
};

// One MoE layer of a sharded model at one routing size.
struct LayerDescriptor {
  Family family = Family::indexed;
  Architecture arch = Architecture::sm_90a;
  int num_sms = 0;
  Role role = Role::decode;
  Shard shard;
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t gate_up_n = 0, gate_up_k = 0;
  std::int64_t down_n = 0, down_k = 0;
  std::int64_t rows = 0;  // routed rows (indexed, grouped_contiguous)
  std::int64_t max_m = 0, expected_m = 0;
  std::optional<int> block_m;
  Epilogue gate_up_epilogue = Epilogue::none;  // none or swiglu
  Epilogue down_epilogue = Epilogue::none;     // none or weighted
};

// A deployment whose cubins are to be made beforehand.
struct Deployment {
  ModelConfig model;
  Shard shard;
  std::vector<Role> roles{Role::decode};
  std::vector<Architecture> archs{Architecture::sm_90a};
  std::vector<Family> families{Family::indexed};
  std::int64_t min_rows = 1;
  std::int64_t max_rows = std::int64_t{1} << 30;
  int num_sms = 0;
  Epilogue gate_up_epilogue = Epilogue::none;
  Epilogue down_epilogue = Epilogue::none;
};

}  // namespace chord
