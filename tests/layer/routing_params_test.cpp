// Gate and align: from arguments to the parameter structs and blocks, and what is refused.
#include <functional>

#include "tests/layer/support.h"

namespace chord::layer {
namespace {

GateArguments good_gate() {
  return {.logits = at<void>(0x1002),
          .logit_type = LogitType::bf16,
          .correction_bias = at<float>(0x2004),
          .tokens = 21,
          .experts = 384,
          .top_k = 8,
          .scoring = Scoring::softmax,
          .renormalise = true,
          .scale = 2.5f,
          .shared_slot = true,
          .ids = at<std::int32_t>(0x3004),
          .weights = at<float>(0x4004)};
}

AlignArguments good_align() {
  return {.ids = at<std::int32_t>(0x1004),
          .num_ids = 9000,
          .experts = 385,
          .expert_map = at<std::int32_t>(0x2004),
          .foreign = ForeignExperts::mark,
          .block_m = 16,
          .sorted_ids = at<std::int32_t>(0x3010),
          .expert_ids = at<std::int32_t>(0x4004),
          .num_tokens_padded = at<std::int32_t>(0x5004),
          .capacity = 9000 + 385 * 15,
          .workspace = at<void>(0x6010),
          .workspace_bytes = 4620};
}

void gate_refused(const std::function<void(GateArguments&)>& change, const std::string& found,
                  const std::string& help) {
  GateArguments arguments = good_gate();
  change(arguments);
  expect_refused<abi::GateParams>(arguments, {"launch of gate", found, help});
}

void align_refused(const std::function<void(AlignArguments&)>& change, const std::string& found,
                   const std::string& help) {
  AlignArguments arguments = good_align();
  change(arguments);
  expect_refused<abi::AlignParams>(arguments, {"launch of align", found, help});
}

TEST(GateParams, HoldEveryArgument) {
  abi::GateParams p{};
  const Result<unsigned> blocks = fill_params(good_gate(), p);
  ASSERT_TRUE(blocks.ok()) << blocks.error().message();
  EXPECT_EQ(*blocks, 6u);  // four tokens each
  EXPECT_EQ(p.logits, at<void>(0x1002));
  EXPECT_EQ(p.correction_bias, at<float>(0x2004));
  EXPECT_EQ(p.ids, at<std::int32_t>(0x3004));
  EXPECT_EQ(p.weights, at<float>(0x4004));
  EXPECT_EQ(p.tokens, 21);
  EXPECT_EQ(p.experts, 384);
  EXPECT_EQ(p.top_k, 8);
  EXPECT_EQ(p.slots, 9);
  EXPECT_EQ(p.logit_type, LogitType::bf16);
  EXPECT_EQ(p.scoring, Scoring::softmax);
  EXPECT_EQ(p.renormalise, 1);
  EXPECT_EQ(p.scale, 2.5f);
}

TEST(GateParams, WithoutSharedSlotAndSwitchesHaveTopKSlots) {
  GateArguments arguments = good_gate();
  arguments.shared_slot = false;
  arguments.renormalise = false;
  arguments.scoring = Scoring::sigmoid;
  arguments.correction_bias = nullptr;
  abi::GateParams p{};
  ASSERT_TRUE(fill_params(arguments, p).ok());
  EXPECT_EQ(p.slots, 8);
  EXPECT_EQ(p.renormalise, 0);
  EXPECT_EQ(p.scoring, Scoring::sigmoid);
  EXPECT_EQ(p.correction_bias, nullptr);
}

TEST(GateParams, OfNoTokensNeedNoMemory) {
  GateArguments arguments{.experts = 384, .top_k = 8};
  EXPECT_EQ(blocks_of<abi::GateParams>(arguments), 0);
}

TEST(GateParams, TakeTheLimitsThemselves) {
  GateArguments arguments = good_gate();
  arguments.experts = 1024;
  arguments.top_k = 32;
  arguments.tokens = 0x7fffffff;
  EXPECT_EQ(blocks_of<abi::GateParams>(arguments), 1 << 29);
  arguments.experts = arguments.top_k = 1;
  EXPECT_EQ(blocks_of<abi::GateParams>(arguments), 1 << 29);
}

TEST(GateParams, OutOfRangeAreRefused) {
  gate_refused([](auto& a) { a.tokens = -1; }, "tokens is -1", "0 to 2147483647");
  gate_refused([](auto& a) { a.tokens = 1ll << 31; }, "tokens is 2147483648", "0 to 2147483647");
  gate_refused([](auto& a) { a.experts = 0; }, "experts is 0", "1 to 1024");
  gate_refused([](auto& a) { a.experts = 1025; }, "experts is 1025", "1 to 1024");
  gate_refused([](auto& a) { a.top_k = 0; }, "top_k is 0", "1 to 32");
  gate_refused([](auto& a) { a.top_k = 33; }, "top_k is 33", "1 to 32");
  gate_refused([](auto& a) { a.experts = 7; }, "top_k is 8", "1 to 7");
  gate_refused([](auto& a) { a.logit_type = static_cast<LogitType>(2); }, "logit_type is 2",
               "0 to 1");
  gate_refused([](auto& a) { a.scoring = static_cast<Scoring>(-1); }, "scoring is -1", "0 to 1");
}

TEST(GateParams, NullPointersAreRefused) {
  gate_refused([](auto& a) { a.logits = nullptr; }, "logits is a null pointer", kNoMemory);
  gate_refused([](auto& a) { a.ids = nullptr; }, "ids is a null pointer", kNoMemory);
  gate_refused([](auto& a) { a.weights = nullptr; }, "weights is a null pointer", kNoMemory);
}

TEST(GateParams, MisalignedPointersAreRefused) {
  gate_refused([](auto& a) { a.logits = at<void>(0x1001); },
               "logits is at 0x1001, not aligned to 2 bytes", kSubView);
  gate_refused([](auto& a) { a.logit_type = LogitType::f32; },
               "logits is at 0x1002, not aligned to 4 bytes", kSubView);
  gate_refused([](auto& a) { a.correction_bias = at<float>(0x2002); },
               "correction_bias is at 0x2002, not aligned to 4 bytes", kSubView);
  gate_refused([](auto& a) { a.ids = at<std::int32_t>(0x3002); },
               "ids is at 0x3002, not aligned to 4 bytes", kSubView);
  gate_refused([](auto& a) { a.weights = at<float>(0x4001); },
               "weights is at 0x4001, not aligned to 4 bytes", kSubView);
}

TEST(AlignParams, HoldEveryArgument) {
  abi::AlignParams p{};
  const Result<unsigned> blocks = fill_params(good_align(), p);
  ASSERT_TRUE(blocks.ok()) << blocks.error().message();
  EXPECT_EQ(*blocks, 3u);  // 4096 ids each
  EXPECT_EQ(p.ids, at<std::int32_t>(0x1004));
  EXPECT_EQ(p.expert_map, at<std::int32_t>(0x2004));
  EXPECT_EQ(p.sorted_ids, at<std::int32_t>(0x3010));
  EXPECT_EQ(p.expert_ids, at<std::int32_t>(0x4004));
  EXPECT_EQ(p.num_tokens_padded, at<std::int32_t>(0x5004));
  EXPECT_EQ(p.counts, at<std::int32_t>(0x6010));
  EXPECT_EQ(p.num_ids, 9000);
  EXPECT_EQ(p.experts, 385);
  EXPECT_EQ(p.block_m, 16);
  EXPECT_EQ(p.chunks, 3);
  EXPECT_EQ(p.foreign, ForeignExperts::mark);
  EXPECT_EQ(p.pass, abi::AlignPass::place);
}

TEST(AlignParams, OfNoIdsWriteTheCountOnly) {
  const AlignArguments arguments{
      .experts = 48, .block_m = 8, .num_tokens_padded = at<std::int32_t>(0x5004)};
  EXPECT_EQ(blocks_of<abi::AlignParams>(arguments), 1);
}

TEST(AlignParams, OfOneChunkNeedNoWorkspace) {
  AlignArguments arguments = good_align();
  arguments.num_ids = 4096;
  arguments.workspace = nullptr;
  arguments.workspace_bytes = 0;
  EXPECT_EQ(blocks_of<abi::AlignParams>(arguments), 1);
}

TEST(AlignParams, OutOfRangeAreRefused) {
  align_refused([](auto& a) { a.num_ids = -1; }, "num_ids is -1", "0 to 2147483647");
  align_refused([](auto& a) { a.num_ids = 1ll << 31; }, "num_ids is 2147483648", "0 to 2147483647");
  align_refused([](auto& a) { a.experts = 0; }, "experts is 0", "1 to 1024");
  align_refused([](auto& a) { a.experts = 1025; }, "experts is 1025", "1 to 1024");
  align_refused([](auto& a) { a.block_m = 0; }, "block_m is 0", "8 to 256");
  align_refused([](auto& a) { a.block_m = 264; }, "block_m is 264", "8 to 256");
  align_refused([](auto& a) { a.block_m = 12; }, "block_m is 12", "a multiple of 8 in 8..256");
  align_refused([](auto& a) { a.foreign = static_cast<ForeignExperts>(2); }, "foreign is 2",
                "0 to 1");
}

TEST(AlignParams, ASmallCapacityIsRefusedWithWhatIsNeeded) {
  align_refused([](auto& a) { a.capacity = 14774; }, "sorted_ids has a capacity of 14774",
                "14775 ids are needed (align_capacity)");
}

TEST(AlignParams, IdsAndPaddingAbove31BitsAreRefusedWhateverTheCapacity) {
  AlignArguments arguments = good_align();
  arguments.experts = 1;
  arguments.block_m = 8;
  arguments.workspace_bytes = 1u << 31;
  arguments.capacity = 1ll << 40;
  arguments.num_ids = 2147483640;
  EXPECT_EQ(blocks_of<abi::AlignParams>(arguments), 1 << 19);
  arguments.num_ids = 2147483641;
  expect_refused<abi::AlignParams>(
      arguments, {"launch of align", "2147483641 ids, 2147483648 with padding (align_capacity)",
                  "ids and padding together at most 2^31 - 1"});
}

TEST(AlignParams, NullPointersAreRefused) {
  align_refused([](auto& a) { a.num_tokens_padded = nullptr; },
                "num_tokens_padded is a null pointer", kNoMemory);
  align_refused([](auto& a) { a.ids = nullptr; }, "ids is a null pointer", kNoMemory);
  align_refused([](auto& a) { a.sorted_ids = nullptr; }, "sorted_ids is a null pointer", kNoMemory);
  align_refused([](auto& a) { a.expert_ids = nullptr; }, "expert_ids is a null pointer", kNoMemory);
  align_refused([](auto& a) { a.workspace = nullptr; }, "workspace is a null pointer", kNoMemory);
}

TEST(AlignParams, MisalignedPointersAreRefused) {
  align_refused([](auto& a) { a.num_tokens_padded = at<std::int32_t>(0x5002); },
                "num_tokens_padded is at 0x5002, not aligned to 4 bytes", kSubView);
  align_refused([](auto& a) { a.expert_map = at<std::int32_t>(0x2001); },
                "expert_map is at 0x2001, not aligned to 4 bytes", kSubView);
  align_refused([](auto& a) { a.ids = at<std::int32_t>(0x1002); },
                "ids is at 0x1002, not aligned to 4 bytes", kSubView);
  align_refused([](auto& a) { a.sorted_ids = at<std::int32_t>(0x3008); },
                "sorted_ids is at 0x3008, not aligned to 16 bytes", kSubView);
  align_refused([](auto& a) { a.expert_ids = at<std::int32_t>(0x4002); },
                "expert_ids is at 0x4002, not aligned to 4 bytes", kSubView);
  align_refused([](auto& a) { a.workspace = at<void>(0x6008); },
                "workspace is at 0x6008, not aligned to 16 bytes", kSubView);
}

TEST(AlignParams, ASmallWorkspaceIsRefusedWithWhatIsNeeded) {
  align_refused([](auto& a) { a.workspace_bytes = 4619; }, "workspace of 4619 bytes",
                "4620 bytes are needed (align_workspace_bytes)");
}

TEST(AlignSizes, CapacityIsTheIdsAndTheMostPadding) {
  EXPECT_EQ(align_capacity(160, 48, 16), 880);
  EXPECT_EQ(align_capacity(20, 384, 8), 160);  // no more experts than ids
  EXPECT_EQ(align_capacity(1, 1, 8), 8);
  EXPECT_EQ(align_capacity(8192, 48, 128), 14288);
  EXPECT_EQ(align_capacity(1000, 1024, 256), 256000);
  EXPECT_EQ(align_capacity(2147483647, 1024, 256), 2147744767);
}

TEST(AlignSizes, OfNothingAreZero) {
  EXPECT_EQ(align_capacity(0, 48, 16), 0);
  EXPECT_EQ(align_capacity(-1, 48, 16), 0);
  EXPECT_EQ(align_capacity(160, 0, 16), 0);
  EXPECT_EQ(align_capacity(160, 48, 0), 0);
  EXPECT_EQ(align_workspace_bytes(0, 48), 0u);
  EXPECT_EQ(align_workspace_bytes(9000, -1), 0u);
}

TEST(AlignSizes, WorkspaceIsACountOfEveryExpertAndChunk) {
  EXPECT_EQ(align_workspace_bytes(4096, 48), 0u);
  EXPECT_EQ(align_workspace_bytes(4097, 48), 384u);
  EXPECT_EQ(align_workspace_bytes(8192, 48), 384u);
  EXPECT_EQ(align_workspace_bytes(8193, 384), 4608u);
  EXPECT_EQ(align_workspace_bytes(100000, 384), 38400u);
}

}  // namespace
}  // namespace chord::layer
