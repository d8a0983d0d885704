// From a deployment to the closed list of its recipes, and all of them into the cache: in parallel,
// bounded by cores and memory, verified by reading back, recorded in a manifest.
#pragma once

#include <vector>

#include "cache/tiered_cache.h"
#include "chord/engine.h"
#include "src/cubin/cubin_store.h"

namespace chord {

// Every distinct GEMM kernel of the deployment, and on each architecture the packer of its
// checkpoint and the kernels of chord/layer.h.
Result<std::vector<cubin::Recipe>> deployment_recipes(const Deployment& deployment,
                                                      const Options& options);

// How many compiles at a time: as asked, else the cores, bounded by free memory.
int compile_jobs(int asked);

Result<PrewarmReport> prewarm_recipes(const std::vector<cubin::Recipe>& recipes,
                                      const Deployment& deployment, const PrewarmOptions& options,
                                      cubin::CubinStore& store, cache::TieredCache& cache);

}  // namespace chord
