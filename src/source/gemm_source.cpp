// Writes the entry text. Every field is written, so that no default of the device text can matter.
#include "src/source/gemm_source.h"

#include <fmt/format.h>

#include <type_traits>

#include "chord/fields.h"

namespace chord::source {
namespace {

std::string literal(int value) { return std::to_string(value); }
std::string literal(abi::Mainloop v) { return fmt::format("Mainloop::{}", name(v)); }
std::string literal(abi::Dequantisation v) { return fmt::format("Dequantisation::{}", name(v)); }
std::string literal(abi::Split v) { return fmt::format("Split::{}", name(v)); }
std::string literal(abi::Release v) { return fmt::format("Release::{}", name(v)); }
std::string literal(abi::Epilogue v) { return fmt::format("Epilogue::{}", name(v)); }
std::string literal(abi::RoutingKind v) { return fmt::format("RoutingKind::{}", name(v)); }

template <class Struct>
std::string initializer(const Struct& value) {
  std::string text;
  for_each_field(value, [&](const char* field, auto v) {
    text += fmt::format("    .{} = {},\n", field, literal(v));
  });
  return text;
}

}  // namespace

abi::Problem problem_of(const GemmDescriptor& descriptor) {
  return {static_cast<abi::i32>(descriptor.n), static_cast<abi::i32>(descriptor.k),
          descriptor.family};
}

std::string gemm_source(const KernelSchedule& schedule, const abi::Problem& problem,
                        const MainloopText& mainloop) {
  const bool is_replaced = !mainloop.name.empty();
  return fmt::format(R"(#include "kernels/moe_gemm/moe_gemm.cuh"
{}
using namespace chord::abi;

constexpr Schedule kSchedule{{
{}}};

constexpr Problem kProblem{{
{}}};

extern "C" __global__ void __launch_bounds__({}, 1)
chord_kernel(const __grid_constant__ GemmParams params) {{
  static_assert({} == threads(kSchedule));
  static_assert({} == shared_bytes(kSchedule));
  chord::device::moe_gemm<kSchedule, kProblem{}>(params);
}}
)",
                     is_replaced ? fmt::format("#include \"{}\"\n", mainloop.file) : "",
                     initializer(schedule), initializer(problem), abi::threads(schedule),
                     abi::threads(schedule), abi::shared_bytes(schedule),
                     is_replaced ? fmt::format(", {}<kSchedule>", mainloop.name) : "");
}

std::string gemm_source_name(const KernelSchedule& schedule, const abi::Problem& problem) {
  const std::string epilogue = schedule.epilogue == abi::Epilogue::none
                                   ? std::string()
                                   : fmt::format("_{}", name(schedule.epilogue));
  return fmt::format("{}_{}x{}_block_m_{}{}.cu", name(problem.routing), problem.n, problem.k,
                     schedule.block_m, epilogue);
}

}  // namespace chord::source
