// The defaults of every struct by its name, for callers that can not compile the header.
#include <fmt/format.h>

#include <iterator>

#include "src/c_api/structs.h"

using namespace chord;
using c_api::Call;
using c_api::guarded;

namespace {

struct Defaults {
  std::string_view name;
  std::span<const std::size_t> sizes;  // that the struct has had, the current one last
  void (*write)(void* to, std::size_t bytes);
};

template <class Struct, Struct (*Init)()>
constexpr Defaults defaults(std::string_view name) {
  return {name, c_api::kKnownSizes<Struct>, [](void* to, std::size_t bytes) {
            const Struct value = Init();
            std::memcpy(to, &value, std::min(bytes, sizeof value));
          }};
}

#define CHORD_DEFAULTS_(name) defaults<chord_##name##_t, chord_##name##_init>("chord_" #name "_t")
constexpr Defaults kDefaults[] = {
    CHORD_DEFAULTS_(options),
    CHORD_DEFAULTS_(device),
    CHORD_DEFAULTS_(model),
    CHORD_DEFAULTS_(layer_descriptor),
    CHORD_DEFAULTS_(gemm_descriptor),
    CHORD_DEFAULTS_(plan_info),
    CHORD_DEFAULTS_(table_row),
    CHORD_DEFAULTS_(weight_source),
    CHORD_DEFAULTS_(packed_weight),
    CHORD_DEFAULTS_(kernel_info),
    CHORD_DEFAULTS_(gemm_arguments),
    CHORD_DEFAULTS_(indexed_routing),
    CHORD_DEFAULTS_(contiguous_routing),
    CHORD_DEFAULTS_(masked_routing),
    CHORD_DEFAULTS_(gate_arguments),
    CHORD_DEFAULTS_(align_arguments),
    CHORD_DEFAULTS_(swiglu_arguments),
    CHORD_DEFAULTS_(combine_arguments),
    CHORD_DEFAULTS_(deployment),
    CHORD_DEFAULTS_(prewarm_options),
    CHORD_DEFAULTS_(report_info),
    CHORD_DEFAULTS_(missing),
    CHORD_DEFAULTS_(cache_counters),
};
#undef CHORD_DEFAULTS_

}  // namespace

chord_status_t chord_defaults(const char* struct_name, void* out, size_t struct_size) {
  return guarded("chord_defaults", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(struct_name, "struct_name"));
    CHORD_TRY(call.need(out, "out"));
    const auto found = std::find_if(std::begin(kDefaults), std::end(kDefaults),
                                    [&](const Defaults& one) { return one.name == struct_name; });
    if (found == std::end(kDefaults))
      return call.wrong("struct_name", fmt::format("is '{:.64}'", struct_name),
                        "the type of a struct of chord.h that has a chord_..._init()");
    const bool known =
        std::find(found->sizes.begin(), found->sizes.end(), struct_size) != found->sizes.end();
    const std::size_t own = found->sizes.back();
    if (!known && (struct_size < own || struct_size > c_api::kMostStructBytes))
      return call.wrong("struct_size", fmt::format("is {}", struct_size),
                        fmt::format("{} is the size of {} in this library", own, found->name));
    std::memset(out, 0, struct_size);
    found->write(out, struct_size);
    std::memcpy(out, &struct_size, sizeof struct_size);
    return {};
  });
}
