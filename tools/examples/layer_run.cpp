// Buffers, arguments and order of a forward.
#include "tools/examples/layer_run.h"

#include <algorithm>

namespace chord::examples {
namespace {

template <class Value>
Value* as(const cuda::DeviceBuffer& buffer) {
  return static_cast<Value*>(buffer.pointer());
}

// Never empty, because a launch refuses null pointers.
Result<cuda::DeviceBuffer> make_buffer(std::int64_t bytes) {
  return cuda::DeviceBuffer::allocate(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 256)));
}

// Work space whose flags are zero, as every launch leaves them.
Result<cuda::DeviceBuffer> make_workspace(const bench::Rig& rig, const PreparedKernel& kernel) {
  CHORD_TRY(cuda::DeviceBuffer space,
            make_buffer(static_cast<std::int64_t>(kernel.workspace_bytes())));
  CHORD_TRY(space.fill(0xff));
  CHORD_TRY(cuda::check(rig.driver->memset_d8(space.address(), 0, kernel.workspace_flag_bytes()),
                        "zero the flags of a workspace"));
  return space;
}

template <class Value>
Result<std::vector<Value>> download(const cuda::DeviceBuffer& buffer, std::int64_t count) {
  std::vector<Value> values(static_cast<std::size_t>(count));
  CHORD_TRY(buffer.download(values.data(), values.size() * sizeof(Value)));
  return values;
}

}  // namespace

Result<std::unique_ptr<LayerRun>> LayerRun::make(bench::Rig& rig, const LayerKernels& kernels,
                                                 const LayerWeights& weights,
                                                 const LayerQuestion& question,
                                                 const RoutingRule& rule,
                                                 const ForwardOptions& options) {
  std::unique_ptr<LayerRun> run(new LayerRun(rig, kernels, question, rule, options));
  CHORD_TRY(run->prepare());
  CHORD_TRY(run->allocate());
  CHORD_TRY(run->set_expert_map());
  CHORD_TRY(run->fill_gemms(weights));
  CHORD_TRY(run->poison());
  run->list_parts();
  return run;
}

Status LayerRun::prepare() {
  CHORD_TRY(plan_, rig_.engine.plan_layer(describe(question_, options_.fused)));
  for (const Decision* decision : {&plan_.gate_up, &plan_.down}) {
    CHORD_TRY(PreparedKernel kernel, rig_.engine.prepare(*decision));
    gemms_.push_back(std::move(kernel));
  }
  return {};
}

int LayerRun::model_experts() const {
  return static_cast<int>(question_.shape.all_experts) + (question_.shape.shared_slot ? 1 : 0);
}

Status LayerRun::allocate() {
  const LayerShape& shape = question_.shape;
  const std::int64_t tokens = question_.tokens;
  capacity_ = align_capacity(routes(), model_experts(), plan_.block_m);
  const std::int64_t blocks = (capacity_ + plan_.block_m - 1) / plan_.block_m;
  CHORD_TRY(x_, make_buffer(tokens * shape.hidden * 2));
  CHORD_TRY(logits_, make_buffer(tokens * shape.all_experts * 4));
  CHORD_TRY(bias_, make_buffer(shape.all_experts * 4));
  CHORD_TRY(ids_, make_buffer(routes() * 4));
  CHORD_TRY(weights_, make_buffer(routes() * 4));
  CHORD_TRY(sorted_ids_, make_buffer(capacity_ * 4));
  CHORD_TRY(expert_ids_, make_buffer(blocks * 4));
  CHORD_TRY(padded_, make_buffer(4));
  CHORD_TRY(
      align_space_,
      make_buffer(static_cast<std::int64_t>(align_workspace_bytes(routes(), model_experts()))));
  if (!fuses_swiglu(options_.fused)) {
    CHORD_TRY(fused_rows_, make_buffer(routes() * 2 * shape.intermediate * 2));
  }
  CHORD_TRY(inner_rows_, make_buffer(routes() * shape.intermediate * 2));
  CHORD_TRY(down_rows_, make_buffer(routes() * shape.hidden * 2));
  CHORD_TRY(output_, make_buffer(tokens * shape.hidden * 2));
  CHORD_TRY(gate_up_space_, make_workspace(rig_, gemms_[0]));
  CHORD_TRY(down_space_, make_workspace(rig_, gemms_[1]));
  return {};
}

// From an expert's number in the model to its slot on this GPU.
Status LayerRun::set_expert_map() {
  const LayerShape& shape = question_.shape;
  std::vector<std::int32_t> map(static_cast<std::size_t>(model_experts()), -1);
  for (std::int64_t slot = 0; slot < shape.routed; ++slot)
    map[static_cast<std::size_t>(shape.first_expert + slot)] = static_cast<std::int32_t>(slot);
  if (shape.shared_slot) map.back() = static_cast<std::int32_t>(shape.routed);
  CHORD_TRY(expert_map_, make_buffer(static_cast<std::int64_t>(map.size() * 4)));
  return expert_map_.upload(map.data(), map.size() * sizeof(std::int32_t));
}

Status LayerRun::fill_gemms(const LayerWeights& weights) {
  const bool fused = fuses_swiglu(options_.fused);
  const auto& gate_up = fused ? weights.gate_up_fused : weights.gate_up;
  if (!gate_up)
    return Error{ErrorCode::internal, "gate/up of a layer", "its rows were packed in another order",
                 "load the weights in the form that the forward needs"};
  gate_up_.activations = x_.pointer();
  gate_up_.output = fused ? inner_rows_.pointer() : fused_rows_.pointer();
  gate_up_.weight = gate_up->weight();
  gate_up_.routing = routing(static_cast<int>(question_.slots()));
  gate_up_.workspace = gate_up_space_.pointer();
  gate_up_.workspace_bytes = gate_up_space_.bytes();
  down_.activations = inner_rows_.pointer();
  down_.output = down_rows_.pointer();
  down_.weight = weights.down.weight();
  down_.routing = routing(1);
  down_.workspace = down_space_.pointer();
  down_.workspace_bytes = down_space_.bytes();
  if (fuses_weights(options_.fused)) down_.row_weights = as<const float>(weights_);
  for (GemmArguments* gemm : {&gate_up_, &down_})
    gemm->programmatic_dependent_launch = options_.programmatic_dependent_launch;
  return {};
}

Status LayerRun::set_input(const std::vector<std::uint16_t>& x, const std::vector<float>& logits,
                           const std::vector<float>& bias) {
  CHORD_TRY(x_.upload(x.data(), x.size() * sizeof(std::uint16_t)));
  CHORD_TRY(logits_.upload(logits.data(), logits.size() * sizeof(float)));
  return bias_.upload(bias.data(), bias.size() * sizeof(float));
}

Status LayerRun::poison() {
  for (cuda::DeviceBuffer* buffer : {&ids_, &weights_, &sorted_ids_, &expert_ids_, &padded_,
                                     &fused_rows_, &inner_rows_, &down_rows_, &output_})
    if (buffer->bytes() > 0) CHORD_TRY(buffer->fill(0xff));
  return cuda::check(rig_.driver->ctx_synchronize(), "wait for the GPU");
}

GateArguments LayerRun::gate() const {
  GateArguments gate;
  gate.logits = logits_.pointer();
  gate.correction_bias = as<const float>(bias_);
  gate.tokens = question_.tokens;
  gate.experts = static_cast<int>(question_.shape.all_experts);
  gate.top_k = static_cast<int>(question_.top_k);
  gate.scoring = Scoring::sigmoid;
  gate.renormalise = rule_.normalise;
  gate.scale = static_cast<float>(rule_.scaling);
  gate.shared_slot = question_.shape.shared_slot;
  gate.ids = as<std::int32_t>(ids_);
  gate.weights = as<float>(weights_);
  gate.programmatic_dependent_launch = options_.programmatic_dependent_launch;
  return gate;
}

AlignArguments LayerRun::align() const {
  AlignArguments align;
  align.ids = as<const std::int32_t>(ids_);
  align.num_ids = routes();
  align.experts = model_experts();
  align.expert_map = as<const std::int32_t>(expert_map_);
  align.block_m = plan_.block_m;
  align.sorted_ids = as<std::int32_t>(sorted_ids_);
  align.expert_ids = as<std::int32_t>(expert_ids_);
  align.num_tokens_padded = as<std::int32_t>(padded_);
  align.capacity = capacity_;
  align.workspace = align_space_.pointer();
  align.workspace_bytes = align_space_.bytes();
  align.programmatic_dependent_launch = options_.programmatic_dependent_launch;
  return align;
}

IndexedRouting LayerRun::routing(int top_k) const {
  return {as<const std::int32_t>(sorted_ids_),
          as<const std::int32_t>(expert_ids_),
          as<const std::int32_t>(padded_),
          capacity_,
          routes(),
          top_k};
}

RowFilter LayerRun::filter() const {
  return {as<const std::int32_t>(ids_), as<const std::int32_t>(expert_map_), model_experts()};
}

SwigluArguments LayerRun::swiglu() const {
  SwigluArguments swiglu;
  swiglu.gate_up = fused_rows_.pointer();
  swiglu.output = inner_rows_.pointer();
  swiglu.rows = routes();
  swiglu.columns = static_cast<int>(question_.shape.intermediate);
  swiglu.filter = filter();
  swiglu.programmatic_dependent_launch = options_.programmatic_dependent_launch;
  return swiglu;
}

CombineArguments LayerRun::combine() const {
  CombineArguments combine;
  combine.rows = down_rows_.pointer();
  combine.weights = fuses_weights(options_.fused) ? nullptr : as<const float>(weights_);
  combine.output = output_.pointer();
  combine.tokens = question_.tokens;
  combine.slots = static_cast<int>(question_.slots());
  combine.columns = static_cast<int>(question_.shape.hidden);
  combine.filter = filter();
  combine.programmatic_dependent_launch = options_.programmatic_dependent_launch;
  return combine;
}

void LayerRun::list_parts() {
  const auto small = [this](const char* part, const auto& arguments) {
    parts_.emplace_back(part, [this, arguments](cuda::CUstream stream) {
      return rig_.engine.launch(kernels_, arguments, stream);
    });
  };
  const auto gemm = [this](const char* part, std::size_t index, const GemmArguments& arguments) {
    parts_.emplace_back(part, [this, index, arguments](cuda::CUstream stream) {
      return rig_.engine.launch(gemms_[index], arguments, stream);
    });
  };
  small("gate", gate());
  small("align", align());
  gemm("gate/up", 0, gate_up_);
  if (!fuses_swiglu(options_.fused)) small("swiglu", swiglu());
  gemm("down", 1, down_);
  small("combine", combine());
}

bench::Launch LayerRun::whole() const {
  return [this](cuda::CUstream stream) -> Status {
    for (const auto& [part, launch] : parts_) CHORD_TRY(launch(stream));
    return {};
  };
}

Result<std::vector<std::uint16_t>> LayerRun::output() const {
  return download<std::uint16_t>(output_, question_.tokens * question_.shape.hidden);
}
Result<std::vector<std::int32_t>> LayerRun::chosen() const {
  return download<std::int32_t>(ids_, routes());
}
Result<std::vector<float>> LayerRun::chosen_weights() const {
  return download<float>(weights_, routes());
}

}  // namespace chord::examples
