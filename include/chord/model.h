// From a model's config.json to the shapes of its MoE layers on one GPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chord/descriptor.h"
#include "chord/export.h"
#include "chord/status.h"

namespace chord {

// "kimi-k2-thinking", "kimi-k2.5", "kimi-k2.6", "kimi-k2.7".
CHORD_API Result<ModelConfig> builtin_model(std::string_view model);
CHORD_API std::vector<std::string> builtin_model_names();

// Reads a Hugging Face config.json (the MoE keys at the top level or inside text_config). Refuses
// what is not INT4, symmetric, group 32, pack-quantized, naming what it found. `origin` names the
// file in errors.
CHORD_API Result<ModelConfig> read_model_config(std::string_view json, std::string_view origin);

// Expert-parallel: experts / ways. Tensor-parallel: every expert, intermediate size / ways. Fills
// experts, top_k, N and K of both projections; the caller sets family, arch, role and rows.
CHORD_API Result<LayerDescriptor> shard_layer(const ModelConfig& model, const Shard& shard);

}  // namespace chord
