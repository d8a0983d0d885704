// Plain structs of the C face to values of the C++ face, and back.
#pragma once

#include <optional>
#include <string>

#include "chord/descriptor.h"
#include "chord/model.h"
#include "chord/schedule.h"
#include "chord/weights.h"
#include "src/c_api/structs.h"

namespace chord::c_api {

// Empty for NULL.
inline std::optional<std::string> text_of(const char* text) {
  if (text == nullptr) return std::nullopt;
  return std::string(text);
}

// `argument` names the struct in errors.
Result<GemmDescriptor> descriptor_of(const Call& call, const chord_gemm_descriptor_t* descriptor);
Result<LayerDescriptor> layer_of(const Call& call, const chord_layer_descriptor_t* layer);
Result<ModelConfig> model_of(const Call& call, const chord_model_t* model,
                             std::string_view argument);
Result<Family> family_of(const Call& call, const chord_family_t& family, std::string_view argument);
Result<Architecture> arch_of(const Call& call, const chord_arch_t& arch, std::string_view argument);
Result<std::optional<Role>> role_of(const Call& call, const chord_role_t& role,
                                    std::string_view argument);
Result<ShardAxis> axis_of(const Call& call, const chord_shard_axis_t& axis,
                          std::string_view argument);

Result<Epilogue> epilogue_of(const Call& call, const chord_epilogue_t& epilogue,
                             std::string_view argument);

// `profile` of the result points into the descriptor.
chord_gemm_descriptor_t to_c(const GemmDescriptor& descriptor);
chord_layer_descriptor_t to_c(const LayerDescriptor& layer);
chord_model_t to_c(const ModelConfig& model);
chord_published_schedule_t to_c(const PublishedSchedule& schedule);
chord_kernel_schedule_t to_c(const KernelSchedule& kernel);
chord_origin_t to_c(Origin origin);

// Cut to fit, always with a final zero.
template <std::size_t Size>
void copy_name(const std::string& name, char (&to)[Size]) {
  const std::size_t length = std::min(name.size(), Size - 1);
  std::memcpy(to, name.data(), length);
  std::memset(to + length, 0, Size - length);
}

}  // namespace chord::c_api
