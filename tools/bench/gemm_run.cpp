// Tensors of one GEMM, its launch, and its comparison with the reference, chunk by chunk so that a
// large output needs no FP32 twin of its own size.
#include "tools/bench/gemm_run.h"

#include <algorithm>
#include <random>
#include <set>

#include "src/launch/launch.h"
#include "src/prepared_kernel.h"

namespace chord::bench {
namespace {

constexpr std::int64_t kChunkRows = 16384;
constexpr unsigned kPoisonPair = kPoison << 16 | kPoison;

// A buffer is never empty, because a launch refuses null pointers.
Result<cuda::DeviceBuffer> allocate_bytes(std::int64_t bytes) {
  return cuda::DeviceBuffer::allocate(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 256)));
}

template <class Value>
Result<cuda::DeviceBuffer> uploaded(const std::vector<Value>& values) {
  const std::size_t bytes = values.size() * sizeof(Value);
  CHORD_TRY(cuda::DeviceBuffer buffer, allocate_bytes(static_cast<std::int64_t>(bytes)));
  CHORD_TRY(buffer.upload(values.data(), bytes));
  return buffer;
}

template <class Value>
const Value* pointer_to(const cuda::DeviceBuffer& buffer) {
  return static_cast<const Value*>(buffer.pointer());
}

template <class Value>
Value* mutable_pointer_to(const cuda::DeviceBuffer& buffer) {
  return static_cast<Value*>(buffer.pointer());
}

}  // namespace

Result<GemmRun> GemmRun::make(Rig& rig, const PreparedKernel& kernel, const Weights& weights,
                              Routing routing, const RunOptions& options) {
  GemmRun run(rig, kernel, weights, std::move(routing));
  CHORD_TRY(run.allocate(options));
  CHORD_TRY(run.upload_routing());
  CHORD_TRY(run.upload_row_weights(options.seed));
  CHORD_TRY(run.upload_reference_rows());
  CHORD_TRY(run.poison());
  return run;
}

Status GemmRun::allocate(const RunOptions& options) {
  CHORD_TRY(activations, allocate_bytes(routing_.source_rows * k() * 2));
  CHORD_TRY(output, allocate_bytes(routing_.output_rows * output_columns() * 2));
  CHORD_TRY(workspace, allocate_bytes(static_cast<std::int64_t>(kernel_.workspace_bytes())));
  // Partials are scratch: NaN in them must not matter.
  CHORD_TRY(workspace.fill(0xff));
  CHORD_TRY(
      cuda::check(rig_->driver->memset_d8(workspace.address(), 0, kernel_.workspace_flag_bytes()),
                  "zero the flags of a workspace"));
  FillActivationsParams fill{};
  fill.values = mutable_pointer_to<u16>(activations);
  fill.count = routing_.source_rows * k();
  fill.seed = options.seed;
  CHORD_TRY(
      rig_->code->launch_over(Helper::fill_activations, fill.count, fill, rig_->stream.handle()));
  CHORD_TRY(rig_->stream.synchronize());
  arguments.activations = activations.pointer();
  arguments.output = output.pointer();
  arguments.weight = weights_->packed(options.experts);
  arguments.workspace = workspace.pointer();
  arguments.workspace_bytes = workspace.bytes();
  return {};
}

Status GemmRun::upload_routing() {
  if (routing_.family == Family::indexed) {
    CHORD_TRY(sorted_ids_, uploaded(routing_.sorted_ids));
    CHORD_TRY(expert_ids_, uploaded(routing_.expert_ids));
    CHORD_TRY(num_tokens_padded_, uploaded(std::vector{routing_.num_tokens_padded}));
    arguments.routing = IndexedRouting{pointer_to<std::int32_t>(sorted_ids_),
                                       pointer_to<std::int32_t>(expert_ids_),
                                       pointer_to<std::int32_t>(num_tokens_padded_),
                                       static_cast<std::int64_t>(routing_.sorted_ids.size()),
                                       routing_.num_ids,
                                       routing_.top_k};
  } else if (routing_.family == Family::grouped_contiguous) {
    if (routing_.groups64.empty()) {
      CHORD_TRY(groups_, uploaded(routing_.groups32));
    } else {
      CHORD_TRY(groups_, uploaded(routing_.groups64));
    }
    arguments.routing =
        ContiguousRouting{routing_.spelling, groups_.pointer(), routing_.source_rows};
  } else {
    CHORD_TRY(groups_, uploaded(routing_.masked_m));
    arguments.routing = MaskedRouting{pointer_to<std::int32_t>(groups_), routing_.max_m};
  }
  return {};
}

Status GemmRun::upload_row_weights(std::uint64_t seed) {
  if (kernel_.decision().kernel.epilogue != Epilogue::weighted) return {};
  std::mt19937 generator(static_cast<unsigned>(seed));
  std::vector<float> weights(static_cast<std::size_t>(routing_.output_rows));
  for (float& weight : weights) weight = 0.05f + static_cast<float>(generator() % 10000) / 10000.0f;
  CHORD_TRY(row_weights, uploaded(weights));
  arguments.row_weights = pointer_to<float>(row_weights);
  return {};
}

Status GemmRun::upload_reference_rows() {
  std::vector<i32> sources, outputs;
  std::vector<ReferenceTile> tiles;
  std::vector<std::uint8_t> is_owned(static_cast<std::size_t>(routing_.output_rows), 0);
  const auto rows = static_cast<std::int64_t>(routing_.owned.size());
  for (std::int64_t first = 0; first < rows; first += kChunkRows) {
    Chunk chunk{first, std::min(kChunkRows, rows - first), static_cast<std::int64_t>(tiles.size()),
                0};
    for (std::int64_t i = 0; i < chunk.rows; ++i) {
      const OwnedRow& row = routing_.owned[first + i];
      sources.push_back(row.source);
      outputs.push_back(row.output);
      is_owned[row.output] = 1;
      const bool joins = chunk.tiles > 0 && tiles.back().expert == row.expert &&
                         tiles.back().rows < kReferenceRows;
      if (joins) {
        ++tiles.back().rows;
      } else {
        tiles.push_back({row.expert, static_cast<i32>(i), 1});
        ++chunk.tiles;
      }
    }
    chunks_.push_back(chunk);
  }
  CHORD_TRY(sources_, uploaded(sources));
  CHORD_TRY(outputs_, uploaded(outputs));
  CHORD_TRY(tiles_, uploaded(tiles));
  CHORD_TRY(is_owned_, uploaded(is_owned));
  CHORD_TRY(expected_, allocate_bytes(std::min(kChunkRows, rows) * n() * 4));
  CHORD_TRY(errors_, allocate_bytes(rows * static_cast<std::int64_t>(sizeof(RowError))));
  CHORD_TRY(changed_, allocate_bytes(sizeof(u64)));
  CHORD_TRY(sink_, allocate_bytes(sizeof(u32)));
  return {};
}

Status GemmRun::launch(cuda::CUstream stream) const {
  return rig_->engine.launch(kernel_, arguments, stream);
}

Status GemmRun::launch_other(cuda::CUfunction function, void* other_output,
                             cuda::CUstream stream) const {
  const PreparedKernel::State& state = kernel_.state();
  GemmArguments other = arguments;
  other.output = other_output;
  abi::GemmParams params{};
  CHORD_TRY(launch::fill_params(state.shape, other, params));
  CHORD_TRY(launch::encode_tensor_maps(*state.driver, state.shape, other.weight, params));
  return launch::enqueue(*state.driver, function, state.grid(other.programmatic_dependent_launch),
                         &params, stream);
}

Status GemmRun::poison() {
  CHORD_TRY(cuda::check(
      rig_->driver->memset_d32(output.address(), kPoisonPair, output.bytes() / sizeof(u32)),
      "poison an output"));
  return cuda::check(rig_->driver->ctx_synchronize(), "wait for the GPU");
}

Status GemmRun::finish_expected(const Chunk& chunk) {
  if (kernel_.decision().kernel.epilogue == Epilogue::none) return {};
  FinishParams finish{};
  finish.expected = mutable_pointer_to<float>(expected_);
  finish.out_rows = pointer_to<i32>(outputs_) + chunk.first;
  finish.row_weights = arguments.row_weights;
  finish.n = static_cast<i32>(n());
  finish.columns = static_cast<i32>(output_columns());
  finish.column_blocks = (finish.columns + kFinishThreads - 1) / kFinishThreads;
  return rig_->code->launch(Helper::finish, chunk.rows * finish.column_blocks, kFinishThreads,
                            &finish, rig_->stream.handle());
}

Status GemmRun::compare_chunk(std::size_t index) {
  const Chunk& chunk = chunks_[index];
  const cuda::CUstream stream = rig_->stream.handle();
  ReferenceParams reference{};
  reference.words = pointer_to<u32>(weights_->words);
  reference.scales = pointer_to<u16>(weights_->scales);
  reference.activations = pointer_to<u16>(activations);
  reference.sources = pointer_to<i32>(sources_) + chunk.first;
  reference.tiles = pointer_to<ReferenceTile>(tiles_) + chunk.first_tile;
  reference.expected = mutable_pointer_to<float>(expected_);
  reference.n = static_cast<i32>(n());
  reference.k = static_cast<i32>(k());
  reference.column_blocks = static_cast<i32>((n() + kReferenceThreads - 1) / kReferenceThreads);
  CHORD_TRY(rig_->code->launch(Helper::reference, chunk.tiles * reference.column_blocks,
                               kReferenceThreads, &reference, stream));
  CHORD_TRY(finish_expected(chunk));
  CompareParams compare{};
  compare.expected = reference.expected;
  compare.output = pointer_to<u16>(output);
  compare.out_rows = pointer_to<i32>(outputs_) + chunk.first;
  compare.errors = mutable_pointer_to<RowError>(errors_) + chunk.first;
  compare.n = static_cast<i32>(output_columns());
  compare.expected_pitch = static_cast<i32>(n());
  return rig_->code->launch(Helper::compare, chunk.rows, kCompareThreads, &compare, stream);
}

Result<std::int64_t> GemmRun::count_changed() {
  CHORD_TRY(cuda::check(
      rig_->driver->memset_d8_async(changed_.address(), 0, sizeof(u64), rig_->stream.handle()),
      "zero a counter"));
  ChangedParams params{};
  params.output = pointer_to<u16>(output);
  params.is_owned = pointer_to<u8>(is_owned_);
  params.changed = mutable_pointer_to<u64>(changed_);
  params.n = static_cast<i32>(output_columns());
  CHORD_TRY(rig_->code->launch(Helper::changed, routing_.output_rows, 128, &params,
                               rig_->stream.handle()));
  CHORD_TRY(rig_->stream.synchronize());
  std::uint64_t changed = 0;
  CHORD_TRY(changed_.download(&changed, sizeof changed));
  return static_cast<std::int64_t>(changed);
}

Result<std::int64_t> GemmRun::count_flags_left() const {
  std::vector<char> flags(kernel_.workspace_flag_bytes());
  CHORD_TRY(workspace.download(flags.data(), flags.size()));
  return static_cast<std::int64_t>(
      std::count_if(flags.begin(), flags.end(), [](char byte) { return byte != 0; }));
}

Result<Comparison> GemmRun::compare() {
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) CHORD_TRY(compare_chunk(chunk));
  CHORD_TRY(rig_->stream.synchronize());
  std::vector<RowError> errors(routing_.owned.size());
  CHORD_TRY(errors_.download(errors.data(), errors.size() * sizeof(RowError)));
  Comparison comparison = summarise(routing_.owned, errors);
  CHORD_TRY(comparison.changed, count_changed());
  CHORD_TRY(comparison.flags_left, count_flags_left());
  return comparison;
}

Result<Comparison> GemmRun::check() {
  CHORD_TRY(poison());
  CHORD_TRY(launch(rig_->stream.handle()));
  CHORD_TRY(rig_->stream.synchronize());
  return compare();
}

Result<std::vector<std::uint16_t>> GemmRun::download_output() const {
  std::vector<std::uint16_t> values(
      static_cast<std::size_t>(routing_.output_rows * output_columns()));
  CHORD_TRY(output.download(values.data(), values.size() * sizeof(std::uint16_t)));
  return values;
}

Result<std::vector<std::uint16_t>> GemmRun::bits() {
  CHORD_TRY(poison());
  CHORD_TRY(launch(rig_->stream.handle()));
  CHORD_TRY(rig_->stream.synchronize());
  return download_output();
}

std::int64_t GemmRun::active_experts() const {
  std::set<std::int32_t> experts;
  for (const OwnedRow& row : routing_.owned) experts.insert(row.expert);
  return static_cast<std::int64_t>(experts.size());
}

ReadParams GemmRun::read_of_same_bytes() const {
  std::set<std::int32_t> sources;
  for (const OwnedRow& row : routing_.owned) sources.insert(row.source);
  const std::int64_t active = active_experts();
  ReadParams read{};
  const auto add = [&](int region, const cuda::DeviceBuffer& buffer, std::int64_t bytes) {
    read.from[region] = buffer.pointer();
    read.chunks[region] = std::min<std::int64_t>(bytes, buffer.bytes()) / 16;
  };
  add(0, weights_->packed_words, abi::packed_weight_bytes(active, n(), k()));
  add(1, weights_->packed_scales, abi::packed_scale_bytes(active, n(), k()));
  add(2, activations, static_cast<std::int64_t>(sources.size()) * k() * 2);
  add(3, output, static_cast<std::int64_t>(routing_.owned.size()) * output_columns() * 2);
  read.sink = mutable_pointer_to<u32>(sink_);
  return read;
}

std::int64_t GemmRun::bytes_moved() const {
  const ReadParams read = read_of_same_bytes();
  std::int64_t chunks = 0;
  for (const i64 region : read.chunks) chunks += region;
  return chunks * 16;
}

std::int64_t GemmRun::operations() const {
  return 2 * static_cast<std::int64_t>(routing_.owned.size()) * n() * k();
}

}  // namespace chord::bench
