// Packing, on the GPU and on the CPU.
#include "src/c_api/convert.h"
#include "src/c_api/handles.h"
#include "src/cuda/device.h"

using namespace chord;
using c_api::Call;
using c_api::guarded;

static_assert(CHORD_PACKED_LAYOUT_VERSION == abi::kLayoutVersion);
static_assert(CHORD_PACK_CLEAN == abi::kPackStatusClean);
static_assert(static_cast<int>(CodeSource::words_k_major) == CHORD_CODES_WORDS_K_MAJOR);
static_assert(static_cast<int>(RowOrder::gate_up) == CHORD_ROWS_GATE_UP);
static_assert(static_cast<int>(ScaleSource::k_major) == CHORD_SCALES_K_MAJOR);

namespace {

Result<PackedShape> shape_of(const Call& call, const chord_packed_weight_t& c) {
  PackedShape shape;
  shape.experts = c.experts;
  shape.n = c.n;
  shape.k = c.k;
  shape.layout_version = c.layout_version;
  CHORD_TRY(shape.row_order, call.choose<RowOrder>(c.row_order, "weight.row_order", 2));
  return shape;
}

struct Packing {
  WeightSource source;
  PackedShape shape;
  void* codes = nullptr;
  void* scales = nullptr;
};

Result<Packing> packing_of(const Call& call, const chord_weight_source_t* source,
                           const chord_packed_weight_t* weight) {
  CHORD_TRY(const chord_weight_source_t from, c_api::read_struct(call, source, "source"));
  CHORD_TRY(const chord_packed_weight_t to, c_api::read_struct(call, weight, "weight"));
  CHORD_TRY(call.need(from.codes, "source.codes"));
  CHORD_TRY(call.need(from.scales, "source.scales"));
  CHORD_TRY(call.need(to.codes, "weight.codes"));
  CHORD_TRY(call.need(to.scales, "weight.scales"));
  Packing packing;
  CHORD_TRY(packing.shape, shape_of(call, to));
  packing.codes = to.codes;
  packing.scales = to.scales;
  packing.source.codes = from.codes;
  packing.source.scales = from.scales;
  CHORD_TRY(packing.source.code_source,
            call.choose<CodeSource>(from.code_source, "source.code_source", 4));
  CHORD_TRY(packing.source.scale_source,
            call.choose<ScaleSource>(from.scale_source, "source.scale_source", 2));
  return packing;
}

}  // namespace

chord_status_t chord_packed_bytes(const chord_packed_weight_t* weight, size_t* weight_bytes,
                                  size_t* scale_bytes) {
  return guarded("chord_packed_bytes", [&](const Call& call) -> Status {
    CHORD_TRY(const chord_packed_weight_t c, c_api::read_struct(call, weight, "weight"));
    CHORD_TRY(call.need(weight_bytes, "weight_bytes"));
    CHORD_TRY(call.need(scale_bytes, "scale_bytes"));
    CHORD_TRY(const PackedShape shape, shape_of(call, c));
    CHORD_TRY(check_shape(shape));
    *weight_bytes = static_cast<std::size_t>(shape.weight_bytes());
    *scale_bytes = static_cast<std::size_t>(shape.scale_bytes());
    return {};
  });
}

chord_status_t chord_pack(chord_handle_t handle, const chord_weight_source_t* source,
                          const chord_packed_weight_t* weight, uint64_t* status, void* stream) {
  return guarded("chord_pack", [&](const Call& call) -> Status {
    CHORD_TRY(call.need(handle, "handle"));
    CHORD_TRY(const Packing packing, packing_of(call, source, weight));
    CHORD_TRY(call.need(status, "status"));
    CHORD_TRY(cuda::require_device(handle->device));
    return handle->engine.pack(packing.source, packing.shape, packing.codes, packing.scales, status,
                               stream);
  });
}

chord_status_t chord_pack_check(uint64_t status, const chord_packed_weight_t* weight) {
  return guarded("chord_pack_check", [&](const Call& call) -> Status {
    CHORD_TRY(const chord_packed_weight_t c, c_api::read_struct(call, weight, "weight"));
    CHORD_TRY(const PackedShape shape, shape_of(call, c));
    CHORD_TRY(check_shape(shape));
    return check_pack_status(status, shape);
  });
}

chord_status_t chord_pack_host(const chord_weight_source_t* source,
                               const chord_packed_weight_t* weight) {
  return guarded("chord_pack_host", [&](const Call& call) -> Status {
    CHORD_TRY(const Packing packing, packing_of(call, source, weight));
    return pack_weights(packing.source, packing.shape, static_cast<std::uint32_t*>(packing.codes),
                        static_cast<std::uint16_t*>(packing.scales));
  });
}
