// Checks arguments against the prepared kernel, one routing kind after the other, and fills params.
#include "src/launch/parameters.h"

#include <fmt/format.h>

#include <type_traits>

namespace chord::launch {
namespace {

bool is_aligned(const void* pointer, std::uintptr_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

std::string kernel_name(const LaunchShape& shape) {
  return fmt::format("launch of {} N={} K={}", name(shape.problem.routing), shape.problem.n,
                     shape.problem.k);
}

Error refuse(const LaunchShape& shape, std::string found, std::string help) {
  return Error{ErrorCode::invalid_argument, kernel_name(shape), std::move(found), std::move(help)};
}

Status check_pointer(const LaunchShape& shape, const char* what, const void* pointer,
                     std::uintptr_t alignment) {
  if (pointer == nullptr)
    return refuse(shape, fmt::format("{} is a null pointer", what), "pass device memory");
  if (!is_aligned(pointer, alignment))
    return refuse(shape,
                  fmt::format("{} is at {}, not aligned to {} bytes", what, pointer, alignment),
                  "allocate it aligned; sub-views may break alignment");
  return {};
}

Status check_weight(const LaunchShape& shape, const PackedWeight& weight) {
  const PackedShape& packed = weight.shape;
  if (packed.layout_version != abi::kLayoutVersion)
    return refuse(shape,
                  fmt::format("the weight is packed in layout version {}, this kernel reads {}",
                              packed.layout_version, abi::kLayoutVersion),
                  "pack it again with this library");
  const bool is_interleaved = shape.schedule.epilogue == abi::Epilogue::swiglu;
  if (packed.row_order != (is_interleaved ? abi::RowOrder::gate_up : abi::RowOrder::plain))
    return refuse(shape,
                  is_interleaved ? "the weight's rows are in plain order"
                                 : "gate and up rows of the weight are interleaved",
                  "RowOrder::gate_up belongs to kernels with Epilogue::swiglu, and only to them");
  if (packed.n != shape.problem.n || packed.k != shape.problem.k)
    return refuse(shape, fmt::format("the weight is packed for N={} K={}", packed.n, packed.k),
                  "prepare a kernel for the weight's shape");
  if (packed.experts < 1 ||
      packed.experts > (std::int64_t{1} << 31) / (packed.n / abi::kAtomRows) - 1)
    return refuse(shape, fmt::format("the weight has {} experts", packed.experts),
                  "at least one; experts * N / 64 below 2^31");
  CHORD_TRY(check_pointer(shape, "weight.codes", weight.codes, 16));
  return check_pointer(shape, "weight.scales", weight.scales, 16);
}

Status check_workspace(const LaunchShape& shape, const GemmArguments& arguments) {
  const std::size_t needed = workspace_bytes(shape);
  if (arguments.workspace_bytes < needed)
    return refuse(shape, fmt::format("workspace of {} bytes", arguments.workspace_bytes),
                  fmt::format("{} bytes are needed (PreparedKernel::workspace_bytes)", needed));
  return check_pointer(shape, "workspace", arguments.workspace, 256);
}

Status fill(const LaunchShape& shape, const IndexedRouting& routing, abi::GemmParams& params) {
  CHORD_TRY(check_pointer(shape, "sorted_ids", routing.sorted_ids, 16));
  CHORD_TRY(check_pointer(shape, "expert_ids", routing.expert_ids, 4));
  CHORD_TRY(check_pointer(shape, "num_tokens_padded", routing.num_tokens_padded, 4));
  if (routing.top_k < 1)
    return refuse(shape, fmt::format("top_k {}", routing.top_k), "at least 1; 1 for down");
  constexpr std::int64_t kMost = 0x7fffffff;
  if (routing.num_ids < 0 || routing.num_ids > kMost)
    return refuse(shape, fmt::format("num_ids {}", routing.num_ids), "0 to 2^31 - 1");
  if (routing.capacity < 0 || routing.capacity > kMost)
    return refuse(shape, fmt::format("capacity {}", routing.capacity), "0 to 2^31 - 1");
  params.sorted_ids = routing.sorted_ids;
  params.expert_ids = routing.expert_ids;
  params.num_tokens_padded = routing.num_tokens_padded;
  params.rows = routing.capacity;
  params.num_ids = routing.num_ids;
  params.top_k = routing.top_k;
  return {};
}

Status fill(const LaunchShape& shape, const ContiguousRouting& routing, abi::GemmParams& params) {
  const bool padded = routing.spelling == abi::ContiguousSpelling::m_indices;
  const std::uintptr_t alignment = padded                                                   ? 16
                                   : routing.spelling == abi::ContiguousSpelling::offsets64 ? 8
                                                                                            : 4;
  if (routing.rows < 0 || routing.rows > 0x7fffffff)
    return refuse(shape, fmt::format("rows {}", routing.rows), "0 to 2^31 - 1");
  CHORD_TRY(
      check_pointer(shape, padded ? "m_indices" : "expert_offsets", routing.groups, alignment));
  params.groups = routing.groups;
  params.spelling = routing.spelling;
  params.rows = routing.rows;
  return {};
}

Status fill(const LaunchShape& shape, const MaskedRouting& routing, abi::GemmParams& params) {
  CHORD_TRY(check_pointer(shape, "masked_m", routing.masked_m, 4));
  if (routing.max_m < 0 || routing.max_m > 0x7fffffff / params.experts)  // experts >= 1
    return refuse(shape, fmt::format("max_m {} of {} experts", routing.max_m, params.experts),
                  "max_m * experts between 0 and 2^31 - 1");
  params.groups = routing.masked_m;
  params.max_m = routing.max_m;
  return {};
}

// The alternatives of GemmArguments::routing stand in the order of RoutingKind.
template <abi::RoutingKind Kind>
using ArgumentsOf =
    std::variant_alternative_t<static_cast<std::size_t>(Kind), decltype(GemmArguments::routing)>;
static_assert(std::is_same_v<ArgumentsOf<abi::RoutingKind::indexed>, IndexedRouting>);
static_assert(std::is_same_v<ArgumentsOf<abi::RoutingKind::grouped_contiguous>, ContiguousRouting>);
static_assert(std::is_same_v<ArgumentsOf<abi::RoutingKind::grouped_masked>, MaskedRouting>);

}  // namespace

std::size_t workspace_flag_bytes(const LaunchShape& shape) {
  return static_cast<std::size_t>(abi::workspace_flag_bytes(shape.ctas));
}

std::size_t workspace_bytes(const LaunchShape& shape) {
  return static_cast<std::size_t>(abi::workspace_bytes(shape.schedule, shape.ctas));
}

Status fill_params(const LaunchShape& shape, const GemmArguments& arguments,
                   abi::GemmParams& params) {
  if (arguments.routing.index() != static_cast<std::size_t>(shape.problem.routing))
    return refuse(shape, "the arguments carry another routing",
                  "set arguments.routing to the kind that the kernel was planned for");
  CHORD_TRY(check_weight(shape, arguments.weight));
  CHORD_TRY(check_workspace(shape, arguments));
  CHORD_TRY(check_pointer(shape, "activations", arguments.activations, 16));
  CHORD_TRY(check_pointer(shape, "output", arguments.output, 16));
  if (shape.schedule.epilogue == abi::Epilogue::weighted) {
    CHORD_TRY(check_pointer(shape, "row_weights", arguments.row_weights, 4));
  } else if (arguments.row_weights != nullptr) {
    return refuse(shape, "row_weights are given, and the kernel does not use them",
                  "plan with Epilogue::weighted, or leave them null");
  }
  params.row_weights = arguments.row_weights;
  params.activations = arguments.activations;
  params.output = arguments.output;
  params.experts = static_cast<abi::i32>(arguments.weight.shape.experts);
  params.flags = static_cast<abi::i32*>(arguments.workspace);
  params.partials = reinterpret_cast<float*>(static_cast<char*>(arguments.workspace) +
                                             workspace_flag_bytes(shape));
  return std::visit([&](const auto& routing) { return fill(shape, routing, params); },
                    arguments.routing);
}

namespace {

struct MapShape {
  const char* asked;
  cuda::CUtensorMapDataType type;
  const void* address;
  std::uint64_t sizes[3];
  std::uint64_t strides[2];  // bytes, of the second and third dimension
  std::uint32_t box[3];
  cuda::CUtensorMapSwizzle swizzle;
};

Status encode(const cuda::DriverApi& driver, const MapShape& shape, abi::TensorMap& out) {
  const std::uint32_t element_strides[] = {1, 1, 1};
  cuda::CUtensorMap map;
  const cuda::CUresult result = driver.tensor_map_encode_tiled(
      &map, shape.type, 3, const_cast<void*>(shape.address), shape.sizes, shape.strides, shape.box,
      element_strides, cuda::CU_TENSOR_MAP_INTERLEAVE_NONE, shape.swizzle,
      cuda::CU_TENSOR_MAP_L2_PROMOTION_L2_256B, cuda::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != cuda::CUDA_SUCCESS) return cuda::check(result, shape.asked);
  static_assert(sizeof map == sizeof out);
  __builtin_memcpy(&out, &map, sizeof map);
  return {};
}

// Rows that lie together, a box for every width that the kernel was compiled for. The slices of a
// stage are the slowest dimension of a box, so that each lies in shared memory as one tile of rows.
Status encode_rows(const cuda::DriverApi& driver, const LaunchShape& shape,
                   abi::GemmParams& params) {
  const KernelSchedule& s = shape.schedule;
  if (!abi::uses_wgmma(s) || shape.problem.routing == abi::RoutingKind::indexed) return {};
  const std::uint64_t rows = shape.problem.routing == abi::RoutingKind::grouped_masked
                                 ? params.experts * params.max_m
                                 : params.rows;
  const std::uint64_t slices = shape.problem.k / abi::kAtomDepth;
  for (int i = 0; i < s.widths; ++i) {
    CHORD_TRY(
        encode(driver,
               {.asked = "encode the tensor map of the activations",
                .type = cuda::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                .address = params.activations,
                .sizes = {abi::kAtomDepth, rows > 0 ? rows : 1, slices},
                .strides = {static_cast<std::uint64_t>(shape.problem.k) * 2, 2 * abi::kAtomDepth},
                .box = {abi::kAtomDepth, static_cast<std::uint32_t>(s.tile_m - i * s.width_step),
                        static_cast<std::uint32_t>(s.slices_per_stage)},
                .swizzle = cuda::CU_TENSOR_MAP_SWIZZLE_128B},
               params.rows_of_width[i]));
  }
  return {};
}

}  // namespace

Status encode_tensor_maps(const cuda::DriverApi& driver, const LaunchShape& shape,
                          const PackedWeight& weight, abi::GemmParams& params) {
  const std::uint64_t slices = shape.problem.k / abi::kAtomDepth;
  const std::uint64_t atom_rows = weight.shape.experts * (shape.problem.n / abi::kAtomRows);
  const auto atoms = [&](const char* asked, const void* address, std::uint32_t atom_bytes) {
    const std::uint32_t words = atom_bytes / 8;
    return MapShape{.asked = asked,
                    .type = cuda::CU_TENSOR_MAP_DATA_TYPE_UINT64,
                    .address = address,
                    .sizes = {words, slices, atom_rows},
                    .strides = {atom_bytes, slices * atom_bytes},
                    .box = {words, static_cast<std::uint32_t>(shape.schedule.slices_per_stage),
                            static_cast<std::uint32_t>(shape.schedule.tile_n / abi::kAtomRows)},
                    .swizzle = cuda::CU_TENSOR_MAP_SWIZZLE_NONE};
  };
  CHORD_TRY(encode(driver,
                   atoms("encode the tensor map of the weights", weight.codes, abi::kAtomBytes),
                   params.weights));
  CHORD_TRY(encode(
      driver, atoms("encode the tensor map of the scales", weight.scales, abi::kAtomScaleBytes),
      params.scales));
  return encode_rows(driver, shape, params);
}

}  // namespace chord::launch
