// The whole line, as a table of contents:
//   descriptor -> solver -> schedule -> source -> key -> cubin -> module -> launch
#include "chord/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "heuristics/solver.h"
#include "src/base/environment.h"
#include "src/base/log.h"
#include "src/cuda/device.h"
#include "src/engine_state.h"
#include "src/explain_model.h"
#include "src/inquiry.h"
#include "src/launch/launch.h"
#include "src/launch/routing_check.h"
#include "src/prewarm.h"
#include "src/source/gemm_source.h"
#include "src/weights/pack_source.h"

namespace chord {

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

namespace {

// A deployment that is not in the cache is found out here, and not at the first request.
Status check_manifest(cache::TieredCache& cache, const Options& options, const LogSink& log) {
  constexpr std::size_t kMostNamed = 5;
  if (!options.manifest) return {};
  const Result<cache::Manifest> read = cache.read_manifest(base::real_path(*options.manifest));
  if (!read) {
    if (*options.jit == JitPolicy::never) return read.error();
    log(LogLevel::warn, read.error().message());
    return {};
  }
  const cache::Manifest& manifest = *read;
  cache.learn_compiler(manifest.compiler);
  const cache::CoverageReport report = cache.coverage(manifest);
  if (report.missing.empty()) return {};
  std::string found = fmt::format(
      "{} of its {} kernels are in no tier of the cache:", report.missing.size(), report.keys);
  for (std::size_t i = 0; i < std::min(report.missing.size(), kMostNamed); ++i)
    found += fmt::format(" {} ({});", report.missing[i].name, report.missing[i].label);
  if (report.missing.size() > kMostNamed) found += " and more;";
  found.pop_back();
  const Error error{
      ErrorCode::cache_miss, fmt::format("manifest {} ('{}')", *options.manifest, manifest.label),
      std::move(found), "import its bundle or prewarm it; chord-cache why KEY asks every tier"};
  if (*options.jit == JitPolicy::never) return error;
  log(*options.jit == JitPolicy::warn ? LogLevel::warn : LogLevel::info, error.message());
  return {};
}

}  // namespace

Result<Engine> Engine::create(Options from_code) {
  const EnvironmentLookup environment = base::process_environment();
  CHORD_TRY(Options options,
            base::resolve_options(std::move(from_code), environment, parse_overrides));
  LogSink log = base::make_log(*options.log_level, options.log);
  auto state = std::make_unique<State>(std::move(options), log);
  CHORD_TRY(state->opened,
            open_cache(state->options, environment, state->files, state->clock, log));
  state->store = std::make_unique<cubin::CubinStore>(
      *state->opened.cache, state->compiler, *state->options.jit, log, state->opened.farm.get());
  CHORD_TRY(check_manifest(*state->opened.cache, state->options, log));
  return Engine(std::move(state));
}

// --- descriptor -> schedule: pure, needs no GPU, no driver, no compiler

Result<Decision> Engine::plan(const GemmDescriptor& descriptor) const {
  return heuristics::solve(descriptor, *state_->options.overrides, state_->options.policy);
}

Result<LayerPlan> Engine::plan_layer(const LayerDescriptor& layer) const {
  return heuristics::solve_layer(layer, *state_->options.overrides, state_->options.policy);
}

Result<ScheduleTable> Engine::schedule_table(const GemmDescriptor& descriptor) const {
  return heuristics::tabulate(descriptor, *state_->options.overrides, state_->options.policy);
}

// --- schedule -> source -> key: from here on nothing depends on why it was chosen

Result<std::string> Engine::source(const Decision& decision) const {
  CHORD_TRY(const cubin::Recipe recipe, cubin::gemm_recipe(decision));
  return recipe.source;
}

Result<std::string> Engine::key_text(const Decision& decision) const {
  CHORD_TRY(const cubin::Recipe recipe, cubin::gemm_recipe(decision));
  const std::optional<CacheKey> key = state_->store->recorded_key(recipe);
  if (!key)
    return Error{ErrorCode::not_found, fmt::format("key of {}", recipe.label),
                 "no cache folder has recorded a compiler yet", "prewarm or compile once"};
  return cubin::readable_key(*key);
}

Result<Inquiry> Engine::why(const Decision& decision) const {
  CHORD_TRY(const cubin::Recipe recipe, cubin::gemm_recipe(decision));
  return inquire(recipe, *state_->store, *state_->opened.cache);
}

Result<Inquiry> Engine::why(const std::string& key) const {
  return inquire(key, *state_->opened.cache);
}

namespace {

KernelFacts facts_of(const cache::Entry& entry) {
  return {entry.threads,     entry.shared_bytes, entry.registers,
          entry.local_bytes, entry.compile_ms,   entry.compiler};
}

Result<Explanation> explain_decision(Decision decision, const cubin::CubinStore& store) {
  CHORD_TRY(const cubin::Recipe recipe, cubin::gemm_recipe(decision));
  Explanation explanation;
  explanation.decision = std::move(decision);
  explanation.shared_bytes = recipe.shared_bytes;
  explanation.threads = recipe.threads;
  if (const cubin::EntryPointer entry = store.find(recipe)) {
    explanation.key = entry->key.name;
    explanation.cached = true;
    explanation.facts = facts_of(*entry);
  } else if (const std::optional<CacheKey> key = store.recorded_key(recipe)) {
    explanation.key = key->name;
  } else {
    explanation.key_missing =
        "the compiler is part of the key, and no cache folder has recorded one yet";
  }
  fill_floors(explanation);
  return explanation;
}

}  // namespace

Result<Explanation> Engine::explain(const GemmDescriptor& descriptor) const {
  CHORD_TRY(Decision decision, plan(descriptor));
  return explain_decision(std::move(decision), *state_->store);
}

Result<Explanation> Engine::explain(const Decision& decision) const {
  return explain_decision(decision, *state_->store);
}

Result<LayerExplanation> Engine::explain(const LayerDescriptor& layer) const {
  CHORD_TRY(LayerPlan plan, plan_layer(layer));
  CHORD_TRY(Explanation gate_up, explain_decision(std::move(plan.gate_up), *state_->store));
  CHORD_TRY(Explanation down, explain_decision(std::move(plan.down), *state_->store));
  return LayerExplanation{std::move(gate_up), std::move(down), plan.block_m};
}

Result<PrewarmReport> Engine::prewarm(const Deployment& deployment, const PrewarmOptions& options) {
  CHORD_TRY(const std::vector<cubin::Recipe> recipes,
            deployment_recipes(deployment, state_->options));
  return prewarm_recipes(recipes, deployment, options, *state_->store, *state_->opened.cache);
}

// --- key -> cubin

Result<CompiledKernel> Engine::compile(const Decision& decision) {
  CHORD_TRY(const cubin::Recipe recipe, cubin::gemm_recipe(decision));
  CHORD_TRY(const cubin::EntryPointer entry, state_->store->obtain(recipe));
  return CompiledKernel{entry->key.name, entry->cubin, facts_of(*entry)};
}

// --- cubin -> module: from here on nothing depends on where the cubin came from

Result<PreparedMemo::Value> Engine::State::load(const cubin::Recipe& recipe,
                                                const cubin::EntryPointer& entry) {
  CHORD_TRY(const cuda::DriverApi* driver, cuda::driver_api());
  CHORD_TRY(const cuda::Device device, cuda::current_device());
  if (device.arch != recipe.arch)
    return Error{ErrorCode::invalid_argument, fmt::format("load {}", recipe.label),
                 fmt::format("the current device is {} ({})", device.name, name(device.arch)),
                 "plan for the architecture of the device"};
  const module::ExpectedFacts expected{entry->threads, entry->shared_bytes, entry->registers,
                                       entry->local_bytes};
  auto state = std::make_shared<PreparedKernel::State>();
  CHORD_TRY(state->module, module::LoadedModule::load(entry->cubin, expected, recipe.label));
  state->facts = facts_of(*entry);
  state->key = entry->key.name;
  state->driver = driver;
  state->shape.ctas = device.num_sms;
  return PreparedMemo::Value(std::move(state));
}

// Of a kernel that is no GEMM: its recipe is known by its label.
Result<PreparedMemo::Value> Engine::State::load_once(cuda::ContextId context,
                                                     const cubin::Recipe& recipe) {
  {
    const std::lock_guard lock(modules_mutex);
    if (PreparedMemo::Value known = modules[{context, recipe.label}]) return known;
  }
  CHORD_TRY(const cubin::EntryPointer entry, store->obtain(recipe));
  const std::lock_guard lock(modules_mutex);
  PreparedMemo::Value& loaded = modules[{context, recipe.label}];
  if (!loaded) {
    CHORD_TRY(loaded, load(recipe, entry));
  }
  return loaded;
}

Result<PreparedKernel> Engine::prepare(const Decision& decision) {
  CHORD_TRY(const cuda::ContextId context, cuda::current_context_id());
  CHORD_TRY(const cubin::Recipe recipe, cubin::gemm_recipe(decision));
  CHORD_TRY(const cubin::EntryPointer entry, state_->store->obtain(recipe));

  const std::lock_guard lock(state_->modules_mutex);
  PreparedMemo::Value& loaded = state_->modules[{context, entry->key.name}];
  if (!loaded) {
    CHORD_TRY(loaded, state_->load(recipe, entry));
  }
  auto state = std::make_shared<PreparedKernel::State>(*loaded);
  state->decision = decision;
  state->shape.problem = source::problem_of(decision.descriptor);
  state->shape.schedule = decision.kernel;
  return PreparedKernel(std::move(state));
}

Result<PreparedKernel> Engine::prepare(const GemmDescriptor& descriptor) {
  CHORD_TRY(const cuda::ContextId context, cuda::current_context_id());
  if (PreparedMemo::Value known = state_->memo.find(descriptor, context))
    return PreparedKernel(std::move(known));
  CHORD_TRY(const Decision decision, plan(descriptor));
  CHORD_TRY(PreparedKernel prepared, prepare(decision));
  state_->memo.insert(descriptor, context, prepared.state_);
  return prepared;
}

// --- module -> launch: nothing below compiles, allocates or reads a file

namespace {

Status refuse_checked_capture(const cuda::DriverApi& driver, cuda::CUstream stream) {
  cuda::CUstreamCaptureStatus capture = cuda::CU_STREAM_CAPTURE_STATUS_NONE;
  CHORD_TRY(cuda::check(driver.stream_is_capturing(stream, &capture), "ask for stream capture"));
  if (capture == cuda::CU_STREAM_CAPTURE_STATUS_NONE) return {};
  return Error{ErrorCode::invalid_argument, "checked launch",
               "the stream is being captured, and checked mode synchronises",
               "check once before the capture"};
}

// A driver's own words for a function of another context help nobody.
Status explained(Status launched, const PreparedKernel::State& kernel) {
  if (launched.ok()) return launched;
  cuda::CUcontext current = nullptr;
  kernel.driver->ctx_get_current(&current);
  if (current == kernel.module->context()) return launched;
  return Error{ErrorCode::invalid_argument, "launch of " + kernel.key,
               "the kernel was prepared in another CUDA context than the current one",
               "make its context current, or prepare it in this one, too"};
}

}  // namespace

Status Engine::launch(const PreparedKernel& kernel, const GemmArguments& arguments, Stream stream) {
  const PreparedKernel::State& prepared = kernel.state();
  const auto cu_stream = static_cast<cuda::CUstream>(stream);
  abi::GemmParams params{};
  CHORD_TRY(launch::fill_params(prepared.shape, arguments, params));
  CHORD_TRY(launch::encode_tensor_maps(*prepared.driver, prepared.shape, arguments.weight, params));
  if (arguments.checked) {
    CHORD_TRY(refuse_checked_capture(*prepared.driver, cu_stream));
    CHORD_TRY(launch::check_routing(*prepared.driver, prepared.shape, arguments, cu_stream));
  }
  return explained(
      launch::enqueue(*prepared.driver, prepared.module->function(),
                      prepared.grid(arguments.programmatic_dependent_launch), &params, cu_stream),
      prepared);
}

Status Engine::launch(const GemmDescriptor& descriptor, const GemmArguments& arguments,
                      Stream stream) const {
  CHORD_TRY(const cuda::ContextId context, cuda::current_context_id());
  if (PreparedMemo::Value known = state_->memo.find(descriptor, context))
    return launch(PreparedKernel(std::move(known)), arguments, stream);
  const bool is_masked = descriptor.family == Family::grouped_masked;
  return Error{
      ErrorCode::not_prepared,
      fmt::format("launch of {} N={} K={} for {} rows, profile '{}', block_m {}, epilogue {}",
                  name(descriptor.family), descriptor.n, descriptor.k,
                  is_masked ? descriptor.expected_m : descriptor.rows, descriptor.profile,
                  descriptor.block_m ? fmt::to_string(*descriptor.block_m) : "as planned",
                  name(descriptor.epilogue)),
      "no kernel is prepared for exactly this in this context; nothing was enqueued",
      "call prepare with this descriptor beforehand"};
}

Status Engine::pack(const WeightSource& source, const PackedShape& shape, void* weights,
                    void* scales, std::uint64_t* status, Stream stream) {
  CHORD_TRY(check_shape(shape));
  CHORD_TRY(weights::check_pack_pointers(source, weights, scales, status));
  CHORD_TRY(const cuda::DriverApi* driver, cuda::driver_api());
  CHORD_TRY(const cuda::Device device, cuda::current_device());
  CHORD_TRY(const cuda::ContextId context, cuda::current_context_id());
  CHORD_TRY(const cubin::Recipe recipe,
            cubin::pack_recipe(device.arch, source.code_source, source.scale_source));
  CHORD_TRY(const PreparedMemo::Value packer, state_->load_once(context, recipe));
  const auto cu_stream = static_cast<cuda::CUstream>(stream);
  CHORD_TRY(cuda::check(
      driver->memset_d8_async(cuda::device_address(status), 0xff, sizeof *status, cu_stream),
      "clear the status word of a pack"));
  const abi::PackParams params = weights::pack_params(source, shape, weights, scales, status);
  const launch::Grid grid{weights::pack_blocks(shape), weights::kPackThreads, 0, false};
  return launch::enqueue(*driver, packer->module->function(), grid, &params, cu_stream);
}

// --- sight

CacheCounters Engine::counters() const { return state_->opened.cache->counters(); }
const Options& Engine::options() const { return state_->options; }
std::string Engine::cache_dir() const { return state_->options.cache_dir.value_or(""); }

const Decision& PreparedKernel::decision() const { return state_->decision; }
const KernelFacts& PreparedKernel::facts() const { return state_->facts; }
const std::string& PreparedKernel::key() const { return state_->key; }
int PreparedKernel::ctas() const { return state_->shape.ctas; }
std::size_t PreparedKernel::workspace_bytes() const {
  return launch::workspace_bytes(state_->shape);
}
std::size_t PreparedKernel::workspace_flag_bytes() const {
  return launch::workspace_flag_bytes(state_->shape);
}

}  // namespace chord
