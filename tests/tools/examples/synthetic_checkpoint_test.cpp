// Synthetic layers: the folder and the memory hold the same, parts are parts of the whole.
#include "tools/examples/synthetic_checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/support/temporary_folder.h"
#include "tests/tools/examples/files.h"
#include "tools/examples/kimi_checkpoint.h"

namespace chord::examples {
namespace {

constexpr SyntheticOptions kSmall{.hidden = 128, .intermediate = 128, .experts = 4, .top_k = 2};

std::unique_ptr<SyntheticLayer> in_memory(const SyntheticOptions& options,
                                          const ShardChoice& choice = {}) {
  auto made = SyntheticLayer::make(options, 1, choice);
  return made.ok() ? std::move(*made) : nullptr;
}

void expect_same(const LayerSource& a, const LayerSource& b) {
  ASSERT_EQ(a.shape().slots(), b.shape().slots());
  for (std::int64_t slot = 0; slot < a.shape().slots(); ++slot) {
    EXPECT_EQ(a.gate_up(slot)->words, b.gate_up(slot)->words) << slot;
    EXPECT_EQ(a.gate_up(slot)->scales, b.gate_up(slot)->scales) << slot;
    EXPECT_EQ(a.down(slot)->words, b.down(slot)->words) << slot;
    EXPECT_EQ(a.down(slot)->scales, b.down(slot)->scales) << slot;
  }
  EXPECT_EQ(a.router()->gate, b.router()->gate);
  EXPECT_EQ(a.router()->bias, b.router()->bias);
}

// What is written is read back as it lies in memory, for this rank.
void expect_round_trip(const SyntheticOptions& options, const ShardChoice& choice) {
  const testing::TemporaryFolder folder;
  const Status written = write_synthetic_checkpoint(folder.path(), options);
  ASSERT_TRUE(written.ok()) << message_of(written);
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << message_of(checkpoint);
  const auto config = read_checkpoint_config(*checkpoint);
  ASSERT_TRUE(config.ok()) << message_of(config);
  const auto layer = KimiLayer::open(*checkpoint, *config, 1, choice);
  ASSERT_TRUE(layer.ok()) << message_of(layer);
  const auto memory = in_memory(options, choice);
  ASSERT_NE(memory, nullptr);
  expect_same(**layer, *memory);
}

TEST(Synthetic, FolderAndMemoryHoldTheSame) { expect_round_trip(kSmall, {}); }

TEST(Synthetic, FolderAndMemoryHoldTheSameForEveryExpertRank) {
  for (int rank = 0; rank < 2; ++rank)
    expect_round_trip(kSmall, {.shard = {ShardAxis::expert, 2}, .rank = rank});
}

TEST(Synthetic, FolderAndMemoryHoldTheSameForEveryTensorRank) {
  for (int rank = 0; rank < 2; ++rank)
    expect_round_trip(kSmall, {.shard = {ShardAxis::tensor, 2}, .rank = rank});
}

TEST(Synthetic, FolderAndMemoryHoldTheSameSharedExpert) {
  SyntheticOptions options = kSmall;
  options.shared_expert = true;
  options.bf16_bias = true;
  expect_round_trip(options, {.shared_slot = true});
}

TEST(Synthetic, IsTheSameForTheSameSeedOnly) {
  const testing::TemporaryFolder a, b, c;
  SyntheticOptions other = kSmall;
  other.seed = 2;
  ASSERT_TRUE(write_synthetic_checkpoint(a.path(), kSmall).ok());
  ASSERT_TRUE(write_synthetic_checkpoint(b.path(), kSmall).ok());
  ASSERT_TRUE(write_synthetic_checkpoint(c.path(), other).ok());
  const std::string file = "model-00002-of-00003.safetensors";
  EXPECT_EQ(read_bytes(a / file), read_bytes(b / file));
  EXPECT_NE(read_bytes(a / file), read_bytes(c / file));
}

TEST(Synthetic, WritesTheShardsOfItsIndex) {
  const testing::TemporaryFolder folder;
  ASSERT_TRUE(write_synthetic_checkpoint(folder.path(), kSmall).ok());
  std::set<std::string> files;
  const Json index = Json::parse(read_bytes(folder / kIndexName));
  for (const auto& item : index["weight_map"].items()) files.insert(item.value());
  EXPECT_EQ(files.size(), 3u);
  EXPECT_EQ(index["weight_map"].size(), 4u * 9 + 2);
}

TEST(Synthetic, UsesCodesOneToFifteen) {
  const auto layer = in_memory(kSmall);
  const auto gate_up = layer->gate_up(0);
  std::set<unsigned> codes;
  for (const std::uint32_t word : gate_up->words)
    for (int i = 0; i < 8; ++i) codes.insert(word >> (4 * i) & 15);
  EXPECT_EQ(codes.size(), 15u);
  EXPECT_EQ(codes.count(0), 0u);
}

TEST(Synthetic, HasAnotherMatrixForEveryExpertAndProjection) {
  const auto layer = in_memory(kSmall);
  const auto first = layer->gate_up(0), second = layer->gate_up(1);
  EXPECT_NE(first->words, second->words);
  const std::size_t half = first->words.size() / 2;
  EXPECT_FALSE(
      std::equal(first->words.begin(), first->words.begin() + half, first->words.begin() + half));
}

TEST(Parts, GateRowsComeFirstInATensorShard) {
  const auto whole = in_memory(kSmall);
  const auto part = in_memory(kSmall, {.shard = {ShardAxis::tensor, 2}, .rank = 1});
  const auto all = whole->gate_up(0), cut = part->gate_up(0);
  ASSERT_EQ(cut->n, 128);
  const std::size_t row = 128 / 8;
  // Rows 64.. of gate, then rows 64.. of up.
  EXPECT_TRUE(
      std::equal(cut->words.begin(), cut->words.begin() + 64 * row, all->words.begin() + 64 * row));
  EXPECT_TRUE(
      std::equal(cut->words.begin() + 64 * row, cut->words.end(), all->words.begin() + 192 * row));
}

TEST(Parts, DownIsCutAlongItsDepth) {
  const auto whole = in_memory(kSmall);
  const auto part = in_memory(kSmall, {.shard = {ShardAxis::tensor, 2}, .rank = 1});
  const auto all = whole->down(0), cut = part->down(0);
  ASSERT_EQ(cut->k, 64);
  for (const std::size_t row : {0u, 77u}) {
    EXPECT_TRUE(std::equal(cut->words.begin() + row * 8, cut->words.begin() + row * 8 + 8,
                           all->words.begin() + row * 16 + 8));
    EXPECT_TRUE(std::equal(cut->scales.begin() + row * 2, cut->scales.begin() + row * 2 + 2,
                           all->scales.begin() + row * 4 + 2));
  }
}

TEST(Parts, AnExpertRankStartsAtItsFirstExpert) {
  const auto whole = in_memory(kSmall);
  const auto part = in_memory(kSmall, {.shard = {ShardAxis::expert, 2}, .rank = 1});
  EXPECT_EQ(part->shape().routed, 2);
  EXPECT_EQ(part->gate_up(0)->words, whole->gate_up(2)->words);
}

TEST(Parts, RefusesASlotThatIsNone) {
  const auto layer = in_memory(kSmall);
  EXPECT_TRUE(has(message_of(layer->gate_up(4)), "this GPU has 4"));
  EXPECT_FALSE(layer->down(-1).ok());
}

TEST(Parts, RefusesALayerWithoutExperts) {
  EXPECT_TRUE(has(message_of(SyntheticLayer::make(kSmall, 0, {})), "a dense layer"));
  EXPECT_TRUE(has(message_of(SyntheticLayer::make(kSmall, 2, {})), "has 2 layers"));
}

TEST(Presets, HaveTheShapesOfKimi) {
  const auto ep8 = synthetic_preset("kimi-ep8");
  ASSERT_TRUE(ep8.ok());
  const auto config = synthetic_config(ep8->options);
  ASSERT_TRUE(config.ok()) << message_of(config);
  const auto shape = shard_shape(*config, {.shard = ep8->shard, .rank = 7});
  EXPECT_EQ(shape->routed, 48);
  EXPECT_EQ(shape->first_expert, 336);
  EXPECT_EQ(shape->intermediate, 2048);
  const auto tp8 = synthetic_preset("kimi-tp8");
  EXPECT_EQ(shard_shape(*config, {.shard = tp8->shard, .rank = 7})->intermediate, 256);
  EXPECT_FALSE(synthetic_preset("huge").ok());
}

TEST(Config, IsReadFromTheFileThatKimiHas) {
  const std::string path = CHORD_SOURCE_DIR "/tests/golden/kimi_k2_5_config.json";
  const auto config = read_moe_config(read_bytes(path), path);
  ASSERT_TRUE(config.ok()) << message_of(config);
  EXPECT_EQ(config->routing.scaling, 2.827);
  EXPECT_EQ(config->routing.top_k, 8);
  EXPECT_TRUE(config->routing.normalise);
}

}  // namespace
}  // namespace chord::examples
