// The face of the library: plan, explain, prewarm, prepare, launch.
//
//   CHORD_TRY(auto engine, chord::Engine::create());
//   CHORD_TRY(auto plan, engine.plan_layer(layer));          // pure: no GPU, no compiler
//   CHORD_TRY(auto gate_up, engine.prepare(plan.gate_up));   // compiles or reads the cache, loads
//   CHORD_TRY(engine.launch(gate_up, arguments, stream));    // enqueues; legal in graph capture
//
// plan, explain, prepare and launch are safe from several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chord/arguments.h"
#include "chord/cache_tier.h"
#include "chord/descriptor.h"
#include "chord/export.h"
#include "chord/layer.h"
#include "chord/options.h"
#include "chord/schedule.h"
#include "chord/status.h"
#include "chord/weights.h"

namespace chord {

using Stream = void*;  // CUstream

// What was read from the compiled and loaded function, or recorded with its cubin.
struct KernelFacts {
  int threads = 0;
  std::int64_t shared_bytes = 0;  // dynamic, what a launch requests
  int registers = 0;
  int local_bytes = 0;  // spills and stack per thread
  double compile_ms = 0;
  std::string compiler;  // "NVRTC 13.0.88"
};

// A decision with its identity in the cache and the floors of its rows.
struct Explanation {
  Decision decision;
  std::optional<std::string> key;  // empty when the compiler's identity is not known
  std::string key_missing;         // why
  bool cached = false;
  std::int64_t shared_bytes = 0;
  int threads = 0;
  std::optional<KernelFacts> facts;  // after compilation

  // For the given rows, spread evenly over the experts (a model, not a measurement).
  std::int64_t active_experts = 0;
  std::int64_t padded_rows = 0;  // rows after padding every expert to tiles of 8
  double padding_waste = 0;      // share of tensor work spent on padding, 0..1
  double memory_floor_us = 0;    // bytes over the measured read bandwidth
  double tensor_floor_us = 0;    // operations over the measured BF16 rate
  double predicted_us = 0;
};

// A cubin as it lies in the cache, with what was recorded of it.
struct CompiledKernel {
  std::string key;
  std::string cubin;
  KernelFacts facts;
};

struct LayerExplanation {
  Explanation gate_up;
  Explanation down;
  int block_m = 0;
};

// A loaded kernel. Copies share it; it lives as long as any copy.
class CHORD_API PreparedKernel {
 public:
  const Decision& decision() const;
  const KernelFacts& facts() const;
  const std::string& key() const;
  int ctas() const;  // of one launch
  std::size_t workspace_bytes() const;
  std::size_t workspace_flag_bytes() const;  // the part to zero once

  struct State;
  explicit PreparedKernel(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  friend class Engine;
  const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

// What one tier of the cache says of a key.
struct TierStatus {
  std::string tier;
  MissReason reason = MissReason::none;  // none: it is there and may be loaded
  std::string text;                      // why not
};

// Why a kernel is in the cache, or is not.
struct Inquiry {
  std::string label;               // "sm_90a indexed 4096x7168 ..."; empty for a bare key
  std::optional<std::string> key;  // empty when the compiler's identity is not known
  std::string key_missing;         // why
  std::vector<TierStatus> tiers;
  // For a miss whose fields are known: the stored entry that is most like it.
  std::optional<std::string> nearest;
  std::vector<std::string> differing_fields;

  CHORD_API bool is_there() const;
};

struct PrewarmProgress {
  std::int64_t done = 0;
  std::int64_t total = 0;
  std::string key;    // the one that has just ended
  std::string label;  // "sm_90a indexed 4096x7168 block_m 8"
  bool hit = false;
  bool failed = false;
  double compile_ms = 0;
};

struct PrewarmOptions {
  bool dry_run = false;       // list the keys, touch nothing
  bool check = false;         // read and verify, compile nothing
  int jobs = 0;               // 0: cores, bounded by memory
  std::string manifest = {};  // file to write; empty: only the pin in the cache folder
  std::function<void(const PrewarmProgress&)> progress = {};
};

struct PrewarmMissing {
  std::string key;
  std::string label;
  std::string reason;
};

struct PrewarmReport {
  std::int64_t keys = 0;
  std::int64_t hits = 0;
  std::int64_t compiles = 0;
  std::int64_t failed = 0;
  std::int64_t shared = 0;      // written to the remote store, which lacked them
  std::int64_t not_shared = 0;  // the remote store did not take them
  double seconds = 0;
  std::vector<PrewarmMissing> missing;
  std::string manifest;  // path of what was written; empty if none
};

class CHORD_API Engine {
 public:
  static Result<Engine> create(Options options = {});

  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  // Pure functions of their argument and the options.
  Result<Decision> plan(const GemmDescriptor& descriptor) const;
  Result<LayerPlan> plan_layer(const LayerDescriptor& layer) const;
  Result<ScheduleTable> schedule_table(const GemmDescriptor& descriptor) const;

  // Plans, and looks the key up in the cache; compiles nothing.
  Result<Explanation> explain(const GemmDescriptor& descriptor) const;
  Result<LayerExplanation> explain(const LayerDescriptor& layer) const;
  Result<Explanation> explain(const Decision& decision) const;
  // The CUDA source that NVRTC would be given, device headers not included.
  Result<std::string> source(const Decision& decision) const;
  // Asks every tier for a kernel's cubin, also those that are left alone after a failure. Compiles
  // and changes nothing.
  Result<Inquiry> why(const Decision& decision) const;
  Result<Inquiry> why(const std::string& key) const;
  // The key as labelled text, one field a line.
  Result<std::string> key_text(const Decision& decision) const;

  Result<PrewarmReport> prewarm(const Deployment& deployment, const PrewarmOptions& options = {});

  // Reads the cache or compiles; loads nothing, needs no GPU.
  Result<CompiledKernel> compile(const Decision& decision);

  // Reads the cache or compiles, loads into the current CUDA context, checks the loaded facts. Does
  // not disturb a stream capture that is under way.
  Result<PreparedKernel> prepare(const Decision& decision);
  Result<PreparedKernel> prepare(const GemmDescriptor& descriptor);
  // Enqueues. Allocates nothing, reads no file, does not synchronise (unless arguments.checked).
  // Static, as for the layer kernels: a kernel may outlive the engine that prepared it.
  static Status launch(const PreparedKernel& kernel, const GemmArguments& arguments, Stream stream);

  // The kernel that prepare has made for this descriptor in the current context; not_prepared if
  // there is none, and then nothing is enqueued and a capture stays valid.
  Status launch(const GemmDescriptor& descriptor, const GemmArguments& arguments,
                Stream stream) const;

  // The kernels of chord/layer.h, for the device of the current CUDA context.
  Result<LayerKernels> prepare_layer_kernels();
  static Status launch(const LayerKernels& kernels, const GateArguments& arguments, Stream stream);
  static Status launch(const LayerKernels& kernels, const AlignArguments& arguments, Stream stream);
  static Status launch(const LayerKernels& kernels, const SwigluArguments& arguments,
                       Stream stream);
  static Status launch(const LayerKernels& kernels, const CombineArguments& arguments,
                       Stream stream);

  // Packs device tensors into device memory on a stream; `status` is one device word that receives
  // kPackStatusClean or the first refused scale: read it back and pass it to check_pack_status.
  Status pack(const WeightSource& source, const PackedShape& shape, void* weights, void* scales,
              std::uint64_t* status, Stream stream);

  CacheCounters counters() const;
  const Options& options() const;  // as resolved at creation
  std::string cache_dir() const;

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace chord
