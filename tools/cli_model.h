// Flags that name a model and its shard: --model or --config, --ep or --tp.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "chord/descriptor.h"
#include "chord/status.h"

namespace chord::tools {

struct ModelFlags {
  std::string model;
  std::string config;
  int ep = 0;
  int tp = 0;
  bool fuse_swiglu = false, fuse_weights = false;

  bool any() const {
    return !model.empty() || !config.empty() || ep != 0 || tp != 0 || fuse_swiglu || fuse_weights;
  }

  // Into a LayerDescriptor or a Deployment.
  template <class Layer>
  void set_epilogues(Layer& layer) const {
    if (fuse_swiglu) layer.gate_up_epilogue = Epilogue::swiglu;
    if (fuse_weights) layer.down_epilogue = Epilogue::weighted;
  }
};

void add_model_flags(CLI::App& app, ModelFlags& flags);

Result<ModelConfig> load_model(const ModelFlags& flags);
Result<Shard> shard_of(const ModelFlags& flags);

}  // namespace chord::tools
