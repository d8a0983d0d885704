// A Kimi layer: both spellings of its names, parts for every rank, and each way to be incomplete.
#include "tools/examples/kimi_checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"
#include "tests/tools/examples/files.h"
#include "tools/examples/synthetic_checkpoint.h"

namespace chord::examples {
namespace {

// Puts bytes at the begin of a tensor's data.
void overwrite(const std::string& path, const std::string& tensor, const std::string& with) {
  std::string bytes = read_bytes(path);
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  const Json header = Json::parse(bytes.substr(8, length));
  const auto begin = header.at(tensor).at("data_offsets").at(0).get<std::size_t>();
  bytes.replace(8 + length + begin, with.size(), with);
  write_bytes(path, bytes);
}

// One file without an index, so that a test changes names and forms in one place.
class Kimi : public ::testing::Test {
 protected:
  void SetUp() override { write(options_); }

  void write(SyntheticOptions options) {
    options.shards = 1;
    const Status written = write_synthetic_checkpoint(folder_.path(), options);
    ASSERT_TRUE(written.ok()) << message_of(written);
    std::filesystem::remove(folder_ / kIndexName);
  }
  void edit(const std::function<void(Json&)>& change) {
    edit_header(folder_ / "model-00001-of-00001.safetensors", change);
  }
  // The message of a layer that has to be refused.
  std::string refusal(const ShardChoice& choice = {}, std::int64_t layer = 1) {
    const auto checkpoint = Checkpoint::open(folder_.path());
    if (!checkpoint.ok()) return message_of(checkpoint);
    const auto config = read_checkpoint_config(*checkpoint);
    if (!config.ok()) return message_of(config);
    return message_of(KimiLayer::open(*checkpoint, *config, layer, choice));
  }

  // The message of a router that has to be refused, with these bytes in front of a tensor of it.
  std::string router_refusal(const std::string& tensor, const std::string& with) {
    write(options_);
    overwrite(folder_ / "model-00001-of-00001.safetensors", mlp_ + tensor, with);
    const auto checkpoint = Checkpoint::open(folder_.path());
    const auto config = read_checkpoint_config(*checkpoint);
    const auto layer = KimiLayer::open(*checkpoint, *config, 1, {});
    return layer.ok() ? message_of((*layer)->router()) : "no layer: " + message_of(layer);
  }

  SyntheticOptions options_{.hidden = 128, .intermediate = 128, .experts = 4, .top_k = 2};
  testing::TemporaryFolder folder_;
  const std::string mlp_ = "language_model.model.layers.1.mlp.";
};

TEST_F(Kimi, OpensBothSpellings) {
  EXPECT_EQ(refusal(), "");
  options_.language_prefix = false;
  write(options_);
  EXPECT_EQ(refusal(), "");
}

TEST_F(Kimi, FindsThePrefixInTheNames) {
  const auto with = Checkpoint::open(folder_.path());
  EXPECT_EQ(*find_prefix(*with), "language_model.");
  options_.language_prefix = false;
  write(options_);
  const auto without = Checkpoint::open(folder_.path());
  EXPECT_EQ(*find_prefix(*without), "");
}

TEST_F(Kimi, RefusesBothSpellingsInOneCheckpoint) {
  edit([&](Json& header) {
    header["model.layers.1.mlp.gate.weight"] = header[mlp_ + "gate.weight"];
    header.erase(mlp_ + "gate.weight");
  });
  EXPECT_TRUE(has(refusal(), "'model.layers.1.mlp.gate.weight'")) << refusal();
  EXPECT_TRUE(has(refusal(), "one prefix")) << refusal();
}

TEST_F(Kimi, RefusesACheckpointWithoutLayers) {
  write_tensors(folder_ / "model-00001-of-00001.safetensors", "{}", "");
  EXPECT_TRUE(has(refusal(), "none of its 0 tensors")) << refusal();
}

TEST_F(Kimi, RefusesALayerWithoutExperts) {
  EXPECT_TRUE(has(refusal({}, 0), "a dense layer")) << refusal({}, 0);
  EXPECT_TRUE(has(refusal({}, 2), "the model has 2 layers")) << refusal({}, 2);
}

TEST_F(Kimi, RefusesAnExpertWithoutItsScale) {
  edit([&](Json& header) { header.erase(mlp_ + "experts.2.up_proj.weight_scale"); });
  EXPECT_TRUE(has(refusal(), "1 tensors are missing: " + mlp_ + "experts.2.up_proj.weight_scale;"))
      << refusal();
  EXPECT_TRUE(has(refusal(), "whole: 0..1, 3, half: 2, absent: none")) << refusal();
}

TEST_F(Kimi, RefusesExpertsThatAreAbsent) {
  edit([&](Json& header) {
    for (const char* expert : {"experts.2.", "experts.3."})
      for (const Projection projection : kProjections)
        for (const char* suffix : {".weight_packed", ".weight_scale", ".weight_shape"})
          header.erase(mlp_ + expert + name(projection) + suffix);
  });
  EXPECT_TRUE(has(refusal(), "18 tensors are missing")) << refusal();
  EXPECT_TRUE(has(refusal(), "and 14 more")) << refusal();
  EXPECT_TRUE(has(refusal(), "whole: 0..1, half: none, absent: 2..3")) << refusal();
}

TEST_F(Kimi, FindsOutOnEveryRankThatAnotherRanksExpertIsHalf) {
  edit([&](Json& header) { header.erase(mlp_ + "experts.3.down_proj.weight_packed"); });
  EXPECT_TRUE(has(refusal({.shard = {ShardAxis::expert, 4}, .rank = 0}), "half: 3"));
}

TEST_F(Kimi, RefusesAMissingRouter) {
  edit([&](Json& header) { header.erase(mlp_ + "gate.e_score_correction_bias"); });
  EXPECT_TRUE(has(refusal(), "gate.e_score_correction_bias")) << refusal();
}

TEST_F(Kimi, RefusesARouterThatIsNotFinite) {
  const std::string nan_gate = router_refusal("gate.weight", {"\0\0\xc0\x7f", 4});
  EXPECT_TRUE(has(nan_gate, "mlp.gate.weight'")) << nan_gate;
  EXPECT_TRUE(has(nan_gate, "element 1 is nan")) << nan_gate;
  const std::string nan_bias =
      router_refusal("gate.e_score_correction_bias", {"\0\0\0\0\0\0\0\0\0\0\x80\x7f", 12});
  EXPECT_TRUE(has(nan_bias, "gate.e_score_correction_bias'")) << nan_bias;
  EXPECT_TRUE(has(nan_bias, "element 2 is inf")) << nan_bias;
  EXPECT_EQ(router_refusal("gate.weight", {"\0\0", 2}), "");
  options_.bf16_bias = true;
  const std::string narrow = router_refusal("gate.e_score_correction_bias", {"\xc0\x7f", 2});
  EXPECT_TRUE(has(narrow, "element 0 is nan")) << narrow;
}

TEST_F(Kimi, RefusesExpertsBeyondTheConfig) {
  edit_json(folder_ / "config.json",
            [](Json& json) { json["text_config"]["n_routed_experts"] = 2; });
  EXPECT_TRUE(has(refusal(), "experts 2..3 beyond the 2 of the config")) << refusal();
}

TEST_F(Kimi, RefusesAnExpertThatIsNoNumber) {
  edit([&](Json& header) {
    header[mlp_ + "experts.x.gate_proj.weight_packed"] =
        Json{{"dtype", "U8"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
  });
  EXPECT_TRUE(has(refusal(), "no expert's number")) << refusal();
}

TEST_F(Kimi, RefusesAWrongShape) {
  const std::string tensor = mlp_ + "experts.1.gate_proj.weight_packed";
  edit([&](Json& header) { header[tensor]["shape"] = {64, 32}; });
  EXPECT_TRUE(has(refusal(), "tensor '" + tensor + "'")) << refusal();
  EXPECT_TRUE(has(refusal(), "I32 [64, 32] (it has to be I32 [128, 16])")) << refusal();
}

TEST_F(Kimi, RefusesAWrongType) {
  const std::string tensor = mlp_ + "experts.1.down_proj.weight_scale";
  edit([&](Json& header) { header[tensor]["dtype"] = "F16"; });
  EXPECT_TRUE(has(refusal(), "tensor '" + tensor + "'")) << refusal();
  EXPECT_TRUE(has(refusal(), "F16 [128, 4] (it has to be BF16 [128, 4])")) << refusal();
}

TEST_F(Kimi, RefusesAnUnknownTypeOfARouter) {
  edit([&](Json& header) { header[mlp_ + "gate.weight"]["dtype"] = "F3"; });
  EXPECT_TRUE(has(refusal(), "dtype F3 is not one that is known")) << refusal();
}

TEST_F(Kimi, RefusesAWeightShapeThatSaysOtherwise) {
  // down's shape tensor under gate's name says 128 x 64.
  options_.intermediate = 64;
  write(options_);
  edit([&](Json& header) {
    std::swap(header[mlp_ + "experts.0.gate_proj.weight_shape"],
              header[mlp_ + "experts.0.down_proj.weight_shape"]);
  });
  EXPECT_TRUE(has(refusal(), "it says 128 x 64 (the config means 64 x 128)")) << refusal();
}

TEST_F(Kimi, TakesWeightShapesOfEitherWidth) {
  options_.wide_shapes = true;
  write(options_);
  EXPECT_EQ(refusal(), "");
}

TEST_F(Kimi, RefusesADenseSharedExpertInASlot) {
  edit([&](Json& header) {
    header[mlp_ + "shared_experts.gate_proj.weight"] =
        Json{{"dtype", "BF16"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
  });
  EXPECT_EQ(refusal(), "");
  EXPECT_TRUE(has(refusal({.shared_slot = true}), "is not INT4"));
}

TEST_F(Kimi, RefusesASlotForASharedExpertThatIsNotThere) {
  EXPECT_TRUE(has(refusal({.shared_slot = true}), "shared_experts.gate_proj.weight_packed"));
}

TEST_F(Kimi, RefusesRanksAndWaysThatAreNone) {
  EXPECT_TRUE(has(refusal({.shard = {ShardAxis::expert, 2}, .rank = 2}), "ranks are 0 to 1"));
  EXPECT_TRUE(has(refusal({.shard = {ShardAxis::expert, 3}}), "4 experts can not be cut into 3"));
  EXPECT_TRUE(has(refusal({.shard = {ShardAxis::tensor, 4}}), "multiples of 64"));
}

TEST_F(Kimi, RefusesAnotherRouting) {
  const auto set = [&](const char* field, const Json& value) {
    write(options_);
    edit_json(folder_ / "config.json", [&](Json& json) { json["text_config"][field] = value; });
    return refusal();
  };
  EXPECT_TRUE(has(set("scoring_func", "softmax"), "found \"softmax\""));
  EXPECT_TRUE(has(set("n_group", 8), "n_group"));
  EXPECT_TRUE(has(set("routed_scaling_factor", 0), "routed_scaling_factor"));
  EXPECT_TRUE(has(set("norm_topk_prob", 1), "norm_topk_prob"));
}

}  // namespace
}  // namespace chord::examples
