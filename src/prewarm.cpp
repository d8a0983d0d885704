// A prewarm run: threads take recipes in turn, look each up, and compile what is missing.
#include "src/prewarm.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "cache/key.h"
#include "heuristics/deployment.h"
#include "src/base/memory_size.h"

namespace chord {
namespace {

// One NVRTC compile of a kernel with a wide tile takes about 250 MB (measured, peak of a process);
// twice that keeps a small build machine out of swap.
constexpr std::int64_t kBytesPerCompile = std::int64_t{512} << 20;

std::string label_of(const Deployment& deployment) {
  std::string text = fmt::format("{} {}{}", deployment.model.model, name(deployment.shard.axis),
                                 deployment.shard.ways);
  for (const Role role : deployment.roles) text += fmt::format(" {}", name(role));
  for (const Family family : deployment.families) text += fmt::format(" {}", name(family));
  for (const Architecture arch : deployment.archs) text += fmt::format(" {}", name(arch));
  for (const Epilogue epilogue : {deployment.gate_up_epilogue, deployment.down_epilogue})
    if (epilogue != Epilogue::none) text += fmt::format(" {}", name(epilogue));
  const bool whole_table = deployment.min_rows <= 1 && deployment.max_rows >= kMaxTableRows;
  if (!whole_table) text += fmt::format(" rows {}:{}", deployment.min_rows, deployment.max_rows);
  return text;
}

// One run over the recipes; several threads take the next one in turn.
class Run {
 public:
  Run(const std::vector<cubin::Recipe>& recipes, const PrewarmOptions& options,
      cubin::CubinStore& store, cache::TieredCache& cache)
      : recipes_(recipes),
        options_(options),
        store_(store),
        cache_(cache),
        entries_(recipes.size()) {
    report_.keys = static_cast<std::int64_t>(recipes.size());
  }

  // Folders that hold everything need not be writable: an image layer, a read-only mount.
  bool is_covered() const {
    return std::all_of(recipes_.begin(), recipes_.end(), [this](const cubin::Recipe& recipe) {
      const cubin::EntryPointer entry = store_.find(recipe);
      return entry && cache_.is_stored(entry->key);
    });
  }

  void work(int jobs) {
    std::vector<std::jthread> threads;
    for (int i = 1; i < std::min<std::int64_t>(jobs, report_.keys); ++i)
      threads.emplace_back([this] { take_all(); });
    take_all();
    threads.clear();
    if (thrown_) std::rethrow_exception(thrown_);
    report_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    std::sort(report_.missing.begin(), report_.missing.end(),
              [](const PrewarmMissing& a, const PrewarmMissing& b) { return a.label < b.label; });
  }

  // A folder that is too small has lost by the end what it took at the beginning.
  void drop_what_was_evicted() {
    for (std::size_t i = 0; i < recipes_.size(); ++i) {
      if (!entries_[i] || cache_.is_stored(entries_[i]->key)) continue;
      ++report_.failed;
      report_.missing.push_back(
          {entries_[i]->key.name, recipes_[i].label,
           "evicted: the bounds of the cache folder are below the deployment"});
      entries_[i] = nullptr;
    }
  }

  // So that a hit needs no compiler, on this machine and on those that share a remote store.
  void record_compilers() {
    std::set<std::string> identities;
    for (const cubin::EntryPointer& entry : entries_)
      if (entry) identities.insert(entry->compiler);
    for (const std::string& identity : identities) cache_.record_compiler(identity);
  }

  PrewarmReport& report() { return report_; }
  const std::vector<cubin::EntryPointer>& entries() const { return entries_; }

 private:
  // What is thrown on a thread (no memory is left) is for the caller of work().
  void take_all() {
    try {
      for (std::size_t i = next_++; i < recipes_.size(); i = next_++) take(i);
    } catch (...) {
      next_ = recipes_.size();
      const std::lock_guard lock(mutex_);
      if (!thrown_) thrown_ = std::current_exception();
    }
  }

  void take(std::size_t index) {
    const cubin::Recipe& recipe = recipes_[index];
    PrewarmProgress progress;
    progress.label = recipe.label;
    std::string reason;
    const bool reads_only = options_.dry_run || options_.check;
    cubin::EntryPointer entry = reads_only ? store_.find(recipe) : store_.fetch(recipe);
    progress.hit = entry != nullptr;
    if (!entry) reason = "not in the cache";
    if (entry && !reads_only && !cache_.is_stored(entry->key)) {
      entry = nullptr;
      progress.failed = true;
      reason =
          "in the remote store, but the cache folder did not take it: is it full or read-only?";
    } else if (!entry && !reads_only) {
      bool compiled = false;
      Result<cubin::EntryPointer> made = store_.obtain(recipe, &compiled);
      progress.hit = made.ok() && !compiled;  // another process made it meanwhile
      if (!made.ok())
        reason = made.error().message();
      else if (compiled && !cache_.is_stored((*made)->key))
        reason = "compiled, but the cache folder did not take it: is it full or read-only?";
      else
        entry = *made;
      progress.failed = entry == nullptr;
    }
    if (entry && !reads_only) {
      entry = cache_.vouch(std::move(entry));
      share(*entry);
    }
    if (entry) {
      progress.key = entry->key.name;
      progress.compile_ms = entry->compile_ms;
    } else if (const std::optional<CacheKey> key = store_.recorded_key(recipe)) {
      progress.key = key->name;
    }
    entries_[index] = entry;
    note(std::move(progress), entry != nullptr, std::move(reason));
  }

  // What was in the folder already may still be missing in a store that this machine writes to.
  void share(const cache::Entry& entry) {
    if (!cache_.may_share()) return;
    const bool was_there = cache_.is_shared(entry.key);
    const bool is_new = !was_there && cache_.share(entry) > 0;
    // Asked again where neither: another machine may have been quicker.
    const bool is_there = was_there || is_new || cache_.is_shared(entry.key);
    const std::lock_guard lock(mutex_);
    report_.shared += is_new ? 1 : 0;
    report_.not_shared += is_there ? 0 : 1;
  }

  void note(PrewarmProgress progress, bool present, std::string reason) {
    const std::lock_guard lock(mutex_);
    progress.done = ++done_;
    progress.total = report_.keys;
    if (progress.failed)
      ++report_.failed;
    else if (progress.hit)
      ++report_.hits;
    else if (present)
      ++report_.compiles;
    if (!present) report_.missing.push_back({progress.key, progress.label, std::move(reason)});
    if (options_.progress) options_.progress(progress);
  }

  const std::vector<cubin::Recipe>& recipes_;
  const PrewarmOptions& options_;
  cubin::CubinStore& store_;
  cache::TieredCache& cache_;
  std::vector<cubin::EntryPointer> entries_;
  PrewarmReport report_;
  std::mutex mutex_;
  std::int64_t done_ = 0;
  std::atomic<std::size_t> next_{0};
  std::exception_ptr thrown_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

cache::Manifest manifest_of(const std::vector<cubin::Recipe>& recipes,
                            const std::vector<cubin::EntryPointer>& entries,
                            const Deployment& deployment) {
  cache::Manifest manifest;
  manifest.label = label_of(deployment);
  manifest.coverage.keys = recipes.size();
  manifest.coverage.rows = fmt::format("{}:{}", deployment.min_rows, deployment.max_rows);
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    const cubin::EntryPointer& entry = entries[i];
    if (!entry) continue;
    ++manifest.coverage.present;
    manifest.compiler = entry->compiler;
    manifest.keys.push_back({entry->key.name, recipes[i].label, entry->arch,
                             cache::content_name(entry->cubin), entry->cubin.size()});
  }
  return manifest;
}

}  // namespace

int compile_jobs(int asked) {
  if (asked > 0) return asked;
  const int cores = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<int>(std::clamp<std::int64_t>(base::free_memory_bytes() / kBytesPerCompile, 1,
                                                   std::int64_t{cores}));
}

Result<std::vector<cubin::Recipe>> deployment_recipes(const Deployment& deployment,
                                                      const Options& options) {
  CHORD_TRY(const std::vector<Decision> decisions,
            heuristics::expand(deployment, *options.overrides, options.policy));
  std::vector<cubin::Recipe> recipes;
  for (const Decision& decision : decisions) {
    CHORD_TRY(cubin::Recipe recipe, cubin::gemm_recipe(decision));
    recipes.push_back(std::move(recipe));
  }
  for (const Architecture arch : std::set(deployment.archs.begin(), deployment.archs.end())) {
    CHORD_TRY(cubin::Recipe packer,
              cubin::pack_recipe(arch, CodeSource::words, ScaleSource::row_major));
    recipes.push_back(std::move(packer));
    for (const layer::LayerKernel kernel : layer::kLayerKernels) {
      CHORD_TRY(cubin::Recipe recipe, cubin::layer_recipe(arch, kernel));
      recipes.push_back(std::move(recipe));
    }
  }
  return recipes;
}

Result<PrewarmReport> prewarm_recipes(const std::vector<cubin::Recipe>& recipes,
                                      const Deployment& deployment, const PrewarmOptions& options,
                                      cubin::CubinStore& store, cache::TieredCache& cache) {
  const bool reads_only = options.dry_run || options.check;
  CHORD_TRY(cache.check_manifest_path(options.manifest));
  Run run(recipes, options, store, cache);
  if (!reads_only && !run.is_covered()) {
    CHORD_TRY(cache.prepare_writable());
  }
  run.work(compile_jobs(options.jobs));
  if (!reads_only && cache.counters().evictions > 0) run.drop_what_was_evicted();
  if (!reads_only) run.record_compilers();
  PrewarmReport& report = run.report();
  if (!reads_only || !options.manifest.empty()) {
    const cache::Manifest manifest = manifest_of(recipes, run.entries(), deployment);
    if (!options.dry_run && manifest.coverage.present > 0) {
      Result<std::string> written = cache.write_manifest(manifest, options.manifest);
      // Nothing is lost without a pin in a folder that can not be written.
      const bool matters = report.compiles > 0 || !options.manifest.empty();
      if (!written && matters) return std::move(written).error();
      if (written) report.manifest = std::move(written).value();
    }
  }
  return report;
}

}  // namespace chord
