// All that shapes one cubin, gathered before anybody is asked for it: source, device files, facts
// and labelled fields. Its key is a pure function of the recipe and the compiler's identity.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "chord/cache_tier.h"
#include "chord/schedule.h"
#include "chord/weights.h"
#include "src/cubin/compiler.h"
#include "src/layer/layer_source.h"
#include "src/source/device_text.h"

namespace chord::cubin {

struct Recipe {
  std::string label;        // for people: "sm_90a indexed 4096x7168 block_m 8"
  std::string source_name;  // in compiler messages
  std::string source;
  std::vector<source::DeviceFile> files;  // what the source includes
  Architecture arch = Architecture::sm_90a;
  int threads = 0;
  std::int64_t shared_bytes = 0;
  std::vector<std::pair<std::string, std::string>> fields;  // descriptor and schedule, labelled
};

// What the compiler is asked.
CompileRequest request_of(const Recipe& recipe);

Result<Recipe> gemm_recipe(const Decision& decision);
Result<Recipe> pack_recipe(Architecture arch, CodeSource codes, ScaleSource scales);
Result<Recipe> layer_recipe(Architecture arch, layer::LayerKernel kernel);

CacheKey key_of(const Recipe& recipe, const std::string& compiler_identity);

// The key as labelled text, one field a line, long values cut to their length and digest.
std::string readable_key(const CacheKey& key);

}  // namespace chord::cubin
