// The C face on a GPU: what it packs, prepares and launches is, bit for bit, what the C++ face
// does.
#include "chord/chord.h"
#include "tests/gpu/fixture.h"

namespace chord::gpu_test {
namespace {

#define REQUIRE_SUCCESS(call) ASSERT_EQ(call, CHORD_SUCCESS) << chord_last_error()->message

constexpr std::int64_t kExperts = 8;
constexpr std::int64_t kN = 576, kK = 1024;
const std::vector<std::int64_t> kCounts{8, 3, 0, 20, 1, 9, 16, 5};
const KernelSpec kShape{.n = kN, .k = kK};

// What an indexed plan asks for; shapes that it does not know get its fallback.
const char* profile_of(Family family, Architecture arch) {
  if (family != Family::indexed) return "";
  return is_blackwell(arch) ? "blackwell_decode_ep8" : "h200_decode_ep8";
}

chord_gemm_descriptor_t descriptor_of(Family family, Architecture arch,
                                      Epilogue epilogue = Epilogue::none) {
  chord_gemm_descriptor_t c = chord_gemm_descriptor_init();
  c.family = static_cast<chord_family_t>(static_cast<int>(family));
  c.arch = static_cast<chord_arch_t>(static_cast<int>(arch));
  c.n = kN;
  c.k = kK;
  c.experts = kExperts;
  c.rows = family == Family::grouped_masked ? 0 : 64;
  c.max_m = family == Family::grouped_masked ? 20 : 0;
  c.expected_m = family == Family::grouped_masked ? 8 : 0;
  c.profile = profile_of(family, arch);
  c.epilogue = static_cast<chord_epilogue_t>(static_cast<int>(epilogue));
  return c;
}

GemmDescriptor cpp_descriptor_of(Family family, Architecture arch,
                                 Epilogue epilogue = Epilogue::none) {
  const chord_gemm_descriptor_t c = descriptor_of(family, arch);
  GemmDescriptor d;
  d.family = family;
  d.arch = arch;
  d.n = c.n;
  d.k = c.k;
  d.experts = c.experts;
  d.rows = c.rows;
  d.max_m = c.max_m;
  d.expected_m = c.expected_m;
  d.profile = c.profile;
  d.epilogue = epilogue;
  return d;
}

const bool kRegistered = register_kernels([](const Engine& engine, Architecture arch) -> Decisions {
  std::vector<Decision> decisions;
  for (const Family family : kFamilies) {
    CHORD_TRY(Decision decision, engine.plan(cpp_descriptor_of(family, arch)));
    decisions.push_back(std::move(decision));
  }
  CHORD_TRY(Decision weighted,
            engine.plan(cpp_descriptor_of(Family::indexed, arch, Epilogue::weighted)));
  decisions.push_back(std::move(weighted));
  return decisions;
});

class GpuCApi : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    chord_options_t options = chord_options_init();
    options.device = 0;
    REQUIRE_SUCCESS(chord_create(&options, &handle_));
  }

  void TearDown() override {
    chord_kernel_destroy(kernel_);
    chord_destroy(handle_);
    GpuTest::TearDown();
  }

  // The kernel of both faces, and a run of the C++ one.
  Result<GemmRun> make(Family family, const Weights& weights, Routing routing,
                       Epilogue epilogue = Epilogue::none) {
    CHORD_TRY(const PreparedKernel prepared,
              rig().engine.prepare(cpp_descriptor_of(family, rig().device.arch, epilogue)));
    return GemmRun::make(rig(), prepared, weights, std::move(routing), {});
  }

  void prepare_in_c(Family family, Epilogue epilogue = Epilogue::none) {
    chord_kernel_destroy(kernel_);
    kernel_ = nullptr;
    const chord_gemm_descriptor_t descriptor = descriptor_of(family, rig().device.arch, epilogue);
    REQUIRE_SUCCESS(chord_prepare_gemm(handle_, &descriptor, &kernel_));
  }

  static chord_packed_weight_t c_weight(const PackedWeight& weight) {
    chord_packed_weight_t c = chord_packed_weight_init();
    c.codes = const_cast<void*>(weight.codes);
    c.scales = const_cast<void*>(weight.scales);
    c.experts = weight.shape.experts;
    c.n = weight.shape.n;
    c.k = weight.shape.k;
    c.row_order = static_cast<chord_row_order_t>(static_cast<int>(weight.shape.row_order));
    return c;
  }

  chord_status_t launch(const GemmArguments& from, cuda::CUstream on) {
    const chord_packed_weight_t weight = c_weight(from.weight);
    chord_gemm_arguments_t c = chord_gemm_arguments_init();
    c.activations = from.activations;
    c.output = from.output;
    c.weight = &weight;
    c.row_weights = from.row_weights;
    c.workspace = from.workspace;
    c.workspace_bytes = from.workspace_bytes;
    c.checked = from.checked ? 1 : 0;
    return std::visit([&](const auto& routing) { return launch(c, routing, on); }, from.routing);
  }

  chord_status_t launch(const chord_gemm_arguments_t& arguments, const IndexedRouting& from,
                        cuda::CUstream on) {
    chord_indexed_routing_t c = chord_indexed_routing_init();
    c.sorted_ids = from.sorted_ids;
    c.expert_ids = from.expert_ids;
    c.num_tokens_padded = from.num_tokens_padded;
    c.capacity = from.capacity;
    c.num_ids = from.num_ids;
    c.top_k = from.top_k;
    return chord_launch_indexed(kernel_, &arguments, &c, on);
  }

  chord_status_t launch(const chord_gemm_arguments_t& arguments, const ContiguousRouting& from,
                        cuda::CUstream on) {
    chord_contiguous_routing_t c = chord_contiguous_routing_init();
    c.spelling = static_cast<chord_groups_t>(static_cast<int>(from.spelling));
    c.groups = from.groups;
    c.rows = from.rows;
    return chord_launch_contiguous(kernel_, &arguments, &c, on);
  }

  chord_status_t launch(const chord_gemm_arguments_t& arguments, const MaskedRouting& from,
                        cuda::CUstream on) {
    chord_masked_routing_t c = chord_masked_routing_init();
    c.masked_m = from.masked_m;
    c.max_m = from.max_m;
    return chord_launch_masked(kernel_, &arguments, &c, on);
  }

  // Both faces on the same tensors, the C one in checked mode as well.
  void expect_same_bits(Family family, Routing routing) {
    REQUIRE_VALUE(const Weights weights, make_weights(kExperts, kShape));
    REQUIRE_VALUE(GemmRun run, make(family, weights, std::move(routing)));
    prepare_in_c(family);
    ASSERT_NE(kernel_, nullptr);
    REQUIRE_VALUE(const std::vector<std::uint16_t> expected, run.bits());
    for (const bool checked : {false, true}) {
      run.arguments.checked = checked;
      REQUIRE_OK(run.poison());
      REQUIRE_SUCCESS(launch(run.arguments, stream()));
      REQUIRE_OK(rig().stream.synchronize());
      REQUIRE_VALUE(const std::vector<std::uint16_t> bits, run.download_output());
      EXPECT_TRUE(bits == expected) << "checked " << checked;
      REQUIRE_VALUE(const Comparison comparison, run.compare());
      EXPECT_EQ(comparison.violation(), "");
    }
  }

  int block_m_of_indexed() {
    prepare_in_c(Family::indexed);
    chord_kernel_info_t info = chord_kernel_info_init();
    EXPECT_EQ(chord_kernel_get_info(kernel_, &info), CHORD_SUCCESS) << chord_last_error()->message;
    return info.block_m;
  }

  Routing indexed_routing() {
    return routing_of({.n = kN, .k = kK, .block_m = block_m_of_indexed()}, kCounts);
  }

  chord_handle_t handle_ = nullptr;
  chord_kernel_t kernel_ = nullptr;
};

TEST_F(GpuCApi, IndexedHasTheBitsOfTheCppFace) {
  expect_same_bits(Family::indexed, indexed_routing());
}

TEST_F(GpuCApi, PaddedContiguousHasTheBitsOfTheCppFace) {
  expect_same_bits(Family::grouped_contiguous, bench::padded_rows(kCounts));
}

TEST_F(GpuCApi, Offsets32HaveTheBitsOfTheCppFace) {
  expect_same_bits(Family::grouped_contiguous,
                   bench::ragged_rows(kCounts, abi::ContiguousSpelling::offsets32));
}

TEST_F(GpuCApi, Offsets64HaveTheBitsOfTheCppFace) {
  expect_same_bits(Family::grouped_contiguous,
                   bench::ragged_rows(kCounts, abi::ContiguousSpelling::offsets64));
}

TEST_F(GpuCApi, MaskedHasTheBitsOfTheCppFace) {
  expect_same_bits(Family::grouped_masked, bench::masked(kCounts, 20));
}

TEST_F(GpuCApi, WeightedRowsHaveTheBitsOfTheCppFace) {
  REQUIRE_VALUE(const Weights weights, make_weights(kExperts, kShape));
  const Routing routing = indexed_routing();
  std::vector<float> factors(static_cast<std::size_t>(routing.num_ids));
  for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = 0.25f + 0.01f * i;
  REQUIRE_VALUE(cuda::DeviceBuffer row_weights,
                cuda::DeviceBuffer::allocate(factors.size() * sizeof(float)));
  REQUIRE_OK(row_weights.upload(factors.data(), row_weights.bytes()));
  REQUIRE_VALUE(GemmRun run, make(Family::indexed, weights, routing, Epilogue::weighted));
  prepare_in_c(Family::indexed, Epilogue::weighted);
  run.arguments.row_weights = static_cast<const float*>(row_weights.pointer());
  REQUIRE_VALUE(const std::vector<std::uint16_t> expected, run.bits());
  REQUIRE_OK(run.poison());
  REQUIRE_SUCCESS(launch(run.arguments, stream()));
  REQUIRE_OK(rig().stream.synchronize());
  REQUIRE_VALUE(const std::vector<std::uint16_t> bits, run.download_output());
  EXPECT_TRUE(bits == expected);
}

TEST_F(GpuCApi, AlignGivesTheRoutingThatItsSizesHaveRoomFor) {
  // Two of each expert, and two tokens that are not there.
  const std::vector<std::int32_t> ids{7, 0, 1, 2, 3, -1, 4, 5, 6, 6, 5, -1, 4, 3, 2, 1, 0, 7};
  constexpr int kBlockM = 8;
  const auto num_ids = static_cast<std::int64_t>(ids.size());
  std::int64_t capacity = 0;
  std::size_t workspace_bytes = 0;
  REQUIRE_SUCCESS(chord_align_sizes(num_ids, kExperts, kBlockM, &capacity, &workspace_bytes));
  ASSERT_GE(capacity, kExperts * kBlockM);
  const auto blocks = static_cast<std::size_t>((capacity + kBlockM - 1) / kBlockM);
  REQUIRE_VALUE(cuda::DeviceBuffer from, cuda::DeviceBuffer::allocate(ids.size() * 4));
  REQUIRE_VALUE(const cuda::DeviceBuffer sorted,
                cuda::DeviceBuffer::allocate(static_cast<std::size_t>(capacity) * 4));
  REQUIRE_VALUE(const cuda::DeviceBuffer experts, cuda::DeviceBuffer::allocate(blocks * 4));
  REQUIRE_VALUE(const cuda::DeviceBuffer padded, cuda::DeviceBuffer::allocate(4));
  REQUIRE_VALUE(const cuda::DeviceBuffer workspace, cuda::DeviceBuffer::allocate(workspace_bytes));
  REQUIRE_OK(from.upload(ids.data(), from.bytes()));
  chord_align_arguments_t c = chord_align_arguments_init();
  c.ids = static_cast<const std::int32_t*>(from.pointer());
  c.sorted_ids = static_cast<std::int32_t*>(sorted.pointer());
  c.expert_ids = static_cast<std::int32_t*>(experts.pointer());
  c.num_tokens_padded = static_cast<std::int32_t*>(padded.pointer());
  c.workspace = workspace.pointer();
  c.workspace_bytes = workspace.bytes();
  c.num_ids = num_ids;
  c.capacity = capacity;
  c.experts = kExperts;
  c.block_m = kBlockM;
  chord_layer_kernels_t kernels = nullptr;
  REQUIRE_SUCCESS(chord_layer_kernels_prepare(handle_, &kernels));
  EXPECT_EQ(chord_align(kernels, &c, stream()), CHORD_SUCCESS) << chord_last_error()->message;
  REQUIRE_OK(rig().stream.synchronize());
  chord_layer_kernels_destroy(kernels);
  std::int32_t count = 0;
  REQUIRE_OK(padded.download(&count, sizeof count));
  ASSERT_EQ(count, kExperts * kBlockM);
  std::vector<std::int32_t> sorted_ids(kExperts * kBlockM);
  REQUIRE_OK(sorted.download(sorted_ids.data(), sorted_ids.size() * 4));
  for (int expert = 0; expert < kExperts; ++expert)
    for (int i = 0; i < kBlockM; ++i) {
      const std::int32_t id = sorted_ids[expert * kBlockM + i];
      if (i < 2) {
        EXPECT_EQ(ids.at(id), expert);
      } else {
        EXPECT_EQ(id, num_ids);
      }
    }
}

TEST_F(GpuCApi, PacksTheBytesOfTheCppFace) {
  REQUIRE_VALUE(Weights weights, make_weights(kExperts, kShape));
  const auto bytes_of = [](const cuda::DeviceBuffer& buffer) {
    std::vector<std::uint8_t> bytes(buffer.bytes());
    EXPECT_TRUE(buffer.download(bytes.data(), bytes.size()).ok());
    return bytes;
  };
  const std::vector<std::uint8_t> codes = bytes_of(weights.packed_words);
  const std::vector<std::uint8_t> scales = bytes_of(weights.packed_scales);
  REQUIRE_OK(weights.packed_words.fill(0xee));
  REQUIRE_OK(weights.packed_scales.fill(0xee));
  chord_weight_source_t source = chord_weight_source_init();
  source.codes = weights.words.pointer();
  source.code_source = CHORD_CODES_WORDS;
  source.scales = static_cast<const std::uint16_t*>(weights.scales.pointer());
  const chord_packed_weight_t packed = c_weight(weights.packed());
  auto* word = static_cast<std::uint64_t*>(weights.status.pointer());
  REQUIRE_SUCCESS(chord_pack(handle_, &source, &packed, word, stream()));
  REQUIRE_OK(rig().stream.synchronize());
  std::uint64_t status = 0;
  REQUIRE_OK(weights.status.download(&status, sizeof status));
  REQUIRE_SUCCESS(chord_pack_check(status, &packed));
  EXPECT_TRUE(bytes_of(weights.packed_words) == codes);
  EXPECT_TRUE(bytes_of(weights.packed_scales) == scales);
}

TEST_F(GpuCApi, DeviceIsTheOneOfTheContext) {
  chord_device_t device = chord_device_init();
  REQUIRE_SUCCESS(chord_device_query(handle_, &device));
  EXPECT_EQ(device.ordinal, rig().device.ordinal);
  EXPECT_EQ(static_cast<int>(device.arch), static_cast<int>(rig().device.arch));
  EXPECT_EQ(device.num_sms, rig().device.num_sms);
  EXPECT_EQ(rig().device.name.substr(0, 63), device.name);
}

TEST_F(GpuCApi, AHandleOfAnotherDeviceRefusesThisContext) {
  chord_options_t options = chord_options_init();
  options.device = 5;
  chord_handle_t other = nullptr;
  REQUIRE_SUCCESS(chord_create(&options, &other));
  const chord_gemm_descriptor_t descriptor = descriptor_of(Family::indexed, rig().device.arch);
  EXPECT_EQ(chord_prepare_gemm(other, &descriptor, &kernel_), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(chord_last_error()->message).find("GPU 5"), std::string::npos);
  chord_destroy(other);
}

TEST_F(GpuCApi, AKernelLaunchesAfterItsHandleIsGone) {
  REQUIRE_VALUE(const Weights weights, make_weights(kExperts, kShape));
  REQUIRE_VALUE(GemmRun run, make(Family::indexed, weights, indexed_routing()));
  chord_destroy(handle_);
  handle_ = nullptr;
  REQUIRE_OK(run.poison());
  REQUIRE_SUCCESS(launch(run.arguments, stream()));
  REQUIRE_OK(rig().stream.synchronize());
  REQUIRE_VALUE(const Comparison comparison, run.compare());
  EXPECT_EQ(comparison.violation(), "");
}

TEST_F(GpuCApi, LaunchesAreLegalInGraphCapture) {
  REQUIRE_VALUE(const Weights weights, make_weights(kExperts, kShape));
  REQUIRE_VALUE(GemmRun run, make(Family::indexed, weights, indexed_routing()));
  REQUIRE_VALUE(const std::vector<std::uint16_t> expected, run.bits());
  const auto capture = [&](cuda::CUstream s) -> Status {
    if (launch(run.arguments, s) == CHORD_SUCCESS) return {};
    return Error{ErrorCode::internal, "launch", chord_last_error()->message, ""};
  };
  REQUIRE_VALUE(const bench::Graph graph, bench::Graph::capture(rig(), capture));
  REQUIRE_OK(run.poison());
  REQUIRE_OK(graph.launch(stream()));
  REQUIRE_OK(rig().stream.synchronize());
  REQUIRE_VALUE(const std::vector<std::uint16_t> bits, run.download_output());
  EXPECT_TRUE(bits == expected);
}

}  // namespace
}  // namespace chord::gpu_test
