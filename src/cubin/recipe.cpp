// Gathers what shapes a cubin, and spells it as a key.
#include "src/cubin/recipe.h"

#include <fmt/format.h>

#include "cache/key.h"
#include "chord/fields.h"
#include "src/cubin/compiler.h"
#include "src/source/gemm_source.h"
#include "src/weights/pack_source.h"

namespace chord::cubin {
namespace {

std::string text(int value) { return std::to_string(value); }
template <class Enum>
std::string text(Enum value) {
  return name(value);
}

// A field of the published schedule that an override has changed counts even where today's kernel
// does not honour it: another value is another key, and an experiment never gets the cubin of
// another one.
void add_override_fields(Recipe& recipe, const PublishedSchedule& schedule) {
  for_each_pinnable_field(schedule, [&recipe](const char* field, int value) {
    recipe.fields.emplace_back(fmt::format("override.{}", field), text(value));
  });
}

std::string joined(const std::vector<std::string>& options) {
  std::string all;
  for (const std::string& option : options) all += (all.empty() ? "" : " ") + option;
  return all;
}

}  // namespace

CompileRequest request_of(const Recipe& recipe) {
  CompileRequest request{.name = recipe.source_name, .source = recipe.source, .arch = recipe.arch};
  for (const source::DeviceFile& file : recipe.files)
    request.headers.emplace_back(file.name, file.text);
  return request;
}

Result<Recipe> gemm_recipe(const Decision& decision) {
  const abi::Problem problem = source::problem_of(decision.descriptor);
  const KernelSchedule& schedule = decision.kernel;
  if (!abi::is_well_formed(schedule) || !abi::is_legal_shape(problem.n, problem.k))
    return Error{ErrorCode::internal, "source of a kernel", "its schedule does not run",
                 "plan again; a Decision is not meant to be edited"};
  Recipe recipe;
  recipe.arch = decision.descriptor.arch;
  recipe.label = fmt::format("{} {} {}x{} block_m {} {} {}x{}", name(recipe.arch),
                             name(problem.routing), problem.n, problem.k, schedule.block_m,
                             name(schedule.mainloop), schedule.tile_m, schedule.tile_n);
  if (schedule.epilogue != Epilogue::none)
    recipe.label += fmt::format(" {}", name(schedule.epilogue));
  recipe.source_name = source::gemm_source_name(schedule, problem);
  recipe.source = source::gemm_source(schedule, problem);
  CHORD_TRY(recipe.files, source::included_files(recipe.source, source::embedded_device_files()));
  recipe.threads = abi::threads(schedule);
  recipe.shared_bytes = abi::shared_bytes(schedule);
  const auto add = [&](const char* field, auto value) {
    recipe.fields.emplace_back(field, text(value));
  };
  for_each_field(problem, add);
  for_each_field(schedule, add);
  if (decision.origin == Origin::override_value) add_override_fields(recipe, decision.schedule);
  return recipe;
}

Result<Recipe> pack_recipe(Architecture arch, CodeSource codes, ScaleSource scales) {
  Recipe recipe;
  recipe.arch = arch;
  recipe.source_name = weights::pack_kernel_name(codes, scales);
  recipe.label = fmt::format("{} {}", name(arch), recipe.source_name);
  recipe.source = weights::pack_source(codes, scales);
  CHORD_TRY(recipe.files, source::included_files(recipe.source, source::embedded_device_files()));
  recipe.threads = static_cast<int>(weights::kPackThreads);
  recipe.fields = {{"layout_version", std::to_string(abi::kLayoutVersion)}};
  return recipe;
}

Result<Recipe> layer_recipe(Architecture arch, layer::LayerKernel kernel) {
  layer::LayerKernelText text = layer::layer_kernel_text(kernel);
  Recipe recipe;
  recipe.arch = arch;
  recipe.label = fmt::format("{} {}", name(arch), text.name);
  recipe.source_name = std::move(text.name);
  recipe.source = std::move(text.source);
  CHORD_TRY(recipe.files, source::included_files(recipe.source, source::embedded_device_files()));
  recipe.threads = text.threads;
  recipe.shared_bytes = text.shared_bytes;
  return recipe;
}

CacheKey key_of(const Recipe& recipe, const std::string& compiler_identity) {
  cache::KeyBuilder builder;
  for (const auto& [field, value] : recipe.fields) builder.field(field, value);
  builder.field("arch", name(recipe.arch));
  builder.field("threads", std::to_string(recipe.threads));
  builder.field("shared_bytes", std::to_string(recipe.shared_bytes));
  builder.field("device_digest", source::digest(recipe.files));
  builder.field("options", joined(compile_options(recipe.arch)));
  builder.field("compiler", compiler_identity);
  builder.field("source", recipe.source);
  return builder.finish();
}

std::string readable_key(const CacheKey& key) {
  const auto fields = cache::key_fields(key.text);
  std::string lines = fmt::format("key {}\n", key.name);
  if (!fields.ok()) return lines;
  for (const auto& [label, value] : *fields) {
    const bool is_long = value.find('\n') != std::string::npos;
    lines += fmt::format(
        "  {:<18} {}\n", label,
        is_long ? fmt::format("{} bytes, xxh3 {}", value.size(), cache::content_name(value))
                : value);
  }
  return lines;
}

}  // namespace chord::cubin
