// Flags that name what is asked about: a layer of a model, or one expert GEMM by its shape.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <variant>

#include "chord/descriptor.h"
#include "chord/status.h"
#include "tools/cli_model.h"

namespace chord::tools {

struct SubjectFlags {
  ModelFlags model;
  std::string role;
  std::string family, profile, arch, epilogue;
  std::int64_t n = 0, k = 0, experts = 0;
  std::int64_t rows = 0, max_m = 0, expected_m = 0;
  int block_m = 0, num_sms = 0;
  bool table = false;  // all rows are asked about; then none need be given
};

using Subject = std::variant<LayerDescriptor, GemmDescriptor>;

void add_subject_flags(CLI::App& app, SubjectFlags& flags);
Result<Subject> subject_of(const SubjectFlags& flags);

}  // namespace chord::tools
