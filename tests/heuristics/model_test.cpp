// Built-in models, real config files, and files that have to be refused with what was found.
#include "chord/model.h"

#include <chrono>
#include <random>

#include "tests/heuristics/support.h"

namespace chord::heuristics {
namespace {

using nlohmann::json;

json golden_config() { return json::parse(golden_text("kimi_k2_5_config.json")); }

Result<ModelConfig> read(const json& config) {
  return read_model_config(config.dump(), "config.json");
}

// The golden config with one value replaced (or removed) at a path below text_config.
Result<ModelConfig> read_with(const std::string& path, const json& value) {
  json config = golden_config();
  config["text_config"][json::json_pointer(path)] = value;
  return read(config);
}

Result<ModelConfig> read_without(const std::string& path) {
  json config = golden_config();
  const json::json_pointer pointer(path);
  config["text_config"].at(pointer.parent_pointer()).erase(pointer.back());
  return read(config);
}

constexpr const char* kWeights = "/quantization_config/config_groups/group_0/weights";

TEST(Models, BuiltInOnesAreKimi) {
  const auto names = builtin_model_names();
  EXPECT_EQ(names,
            (std::vector<std::string>{"kimi-k2-thinking", "kimi-k2.5", "kimi-k2.6", "kimi-k2.7"}));
  for (const std::string& name : names) {
    const Result<ModelConfig> model = builtin_model(name);
    ASSERT_TRUE(model.ok());
    EXPECT_EQ(model->model, name);
    EXPECT_EQ(model->hidden_size, 7168);
  }
}

TEST(Models, UnknownNamesListTheKnownOnes) {
  for (const char* name : {"", "kimi", "Kimi-K2.5", "deepseek-v3"})
    EXPECT_REFUSED(builtin_model(name), "kimi-k2-thinking", "kimi-k2.7");
}

TEST(Models, BuiltInSizesAreThoseOfTheGoldenFacts) {
  const json facts = json::parse(golden_text("kimi_k2_models.json"));
  for (const char* name : {"kimi-k2-thinking", "kimi-k2.5"}) {
    const json& fact = facts.at("models").at(name);
    const ModelConfig model = *builtin_model(name);
    EXPECT_EQ(model.hidden_size, fact.at("hidden_size"));
    EXPECT_EQ(model.moe_intermediate_size, fact.at("moe_intermediate_size"));
    EXPECT_EQ(model.n_routed_experts, fact.at("n_routed_experts"));
    EXPECT_EQ(model.num_experts_per_tok, fact.at("num_experts_per_tok"));
    EXPECT_EQ(model.n_shared_experts, fact.at("n_shared_experts"));
    EXPECT_EQ(model.num_hidden_layers, fact.at("num_hidden_layers"));
    EXPECT_EQ(model.first_k_dense_replace, fact.at("first_k_dense_replace"));
  }
}

TEST(Models, ShardsAreThoseOfTheGoldenFacts) {
  const json facts = json::parse(golden_text("kimi_k2_models.json"));
  const ModelConfig model = *builtin_model("kimi-k2.5");
  ASSERT_EQ(facts.at("shards").size(), 8u);
  for (const auto& [label, fact] : facts.at("shards").items()) {
    Shard shard;
    shard.axis = label.starts_with("ep") ? ShardAxis::expert : ShardAxis::tensor;
    shard.ways = std::stoi(label.substr(2));
    const Result<LayerDescriptor> layer = shard_layer(model, shard);
    ASSERT_TRUE(layer.ok()) << error_text(layer);
    EXPECT_EQ(layer->experts, fact.at("experts")) << label;
    EXPECT_EQ(layer->gate_up_n, fact.at("gate_up")[0]) << label;
    EXPECT_EQ(layer->gate_up_k, fact.at("gate_up")[1]) << label;
    EXPECT_EQ(layer->down_n, fact.at("down")[0]) << label;
    EXPECT_EQ(layer->down_k, fact.at("down")[1]) << label;
    EXPECT_EQ(layer->top_k, 8) << label;
    EXPECT_EQ(layer->shard, shard) << label;
  }
}

TEST(Models, OtherShardsAreRefusedWithTheNumbers) {
  const ModelConfig model = *builtin_model("kimi-k2.5");
  for (const int ways : {-8, 0, 1, 2, 3, 12, 64})
    EXPECT_REFUSED(shard_layer(model, {ShardAxis::expert, ways}), std::to_string(ways), "4..32");
  for (const int ways : {-2, 0, 1, 3, 32})
    EXPECT_REFUSED(shard_layer(model, {ShardAxis::tensor, ways}), std::to_string(ways), "2..16");
  ModelConfig odd = model;
  odd.n_routed_experts = 100;
  EXPECT_REFUSED(shard_layer(odd, {ShardAxis::expert, 8}), "n_routed_experts 100", "8 ways");
  odd.moe_intermediate_size = 320;
  EXPECT_REFUSED(shard_layer(odd, {ShardAxis::tensor, 16}), "7168x20", "multiples of 64");
  EXPECT_REFUSED(shard_layer(ModelConfig{}, {ShardAxis::expert, 8}), "hidden_size is 0");
}

TEST(Models, TheSmallestLegalLayerShards) {
  const ModelConfig tiny{.model = "tiny",
                         .hidden_size = 256,
                         .moe_intermediate_size = 128,
                         .n_routed_experts = 8,
                         .num_experts_per_tok = 2};
  const Result<LayerDescriptor> layer = shard_layer(tiny, {ShardAxis::expert, 4});
  ASSERT_TRUE(layer.ok()) << error_text(layer);
  EXPECT_EQ(layer->experts, 2);
  EXPECT_EQ(layer->gate_up_n, 256);
  EXPECT_EQ(layer->down_k, 128);
}

TEST(Config, TheRealFileIsRead) {
  const Result<ModelConfig> model = read(golden_config());
  ASSERT_TRUE(model.ok()) << error_text(model);
  EXPECT_EQ(model->model, "kimi_k25");
  EXPECT_EQ(model->hidden_size, 7168);
  EXPECT_EQ(model->moe_intermediate_size, 2048);
  EXPECT_EQ(model->n_routed_experts, 384);
  EXPECT_EQ(model->num_experts_per_tok, 8);
  EXPECT_EQ(model->num_hidden_layers, 61);
}

TEST(Config, TheTopLevelFormIsReadToo) {
  const Result<ModelConfig> model = read(golden_config().at("text_config"));
  ASSERT_TRUE(model.ok()) << error_text(model);
  EXPECT_EQ(model->model, "kimi_k2");
  EXPECT_EQ(model->n_routed_experts, 384);
}

TEST(Config, QuantizationMayStandAtTheTopLevel) {
  json config = golden_config();
  config["quantization_config"] = config["text_config"]["quantization_config"];
  config["text_config"].erase("quantization_config");
  EXPECT_TRUE(read(config).ok());
  config["quantization_config"]["format"] = "float-quantized";
  EXPECT_REFUSED(read(config), "float-quantized");
}

TEST(Config, QuantizationThatContradictsItselfIsRefused) {
  json config = golden_config();
  config["quantization_config"] = config["text_config"]["quantization_config"];
  config["quantization_config"]["config_groups"]["group_0"]["weights"]["num_bits"] = 8;
  EXPECT_REFUSED(read(config), "num_bits", "8");
}

TEST(Config, MoreKeysAreNotLookedAt) {
  EXPECT_TRUE(read_with("/vision_config", {{"depth", {1, 2, {{"x", nullptr}}}}}).ok());
  EXPECT_TRUE(read_with("/rope_scaling", nullptr).ok());
  EXPECT_TRUE(read_with("/n_shared_experts", nullptr).ok());
}

TEST(Config, OtherQuantizationIsRefusedNamingWhatWasFound) {
  const std::string weights = kWeights;
  EXPECT_REFUSED(read_without("/quantization_config"), "config.json", "quantization_config",
                 "missing");
  EXPECT_REFUSED(read_with(weights + "/num_bits", 8), "num_bits", "found 8", "has to be 4");
  EXPECT_REFUSED(read_with(weights + "/num_bits", "4"), "num_bits", "\"4\"");
  EXPECT_REFUSED(read_with(weights + "/num_bits", 4.5), "num_bits", "4.5");
  EXPECT_REFUSED(read_with(weights + "/group_size", 128), "group_size", "found 128", "32");
  EXPECT_REFUSED(read_with(weights + "/group_size", -1), "group_size", "found -1");
  EXPECT_REFUSED(read_with(weights + "/type", "float"), "type", "float");
  EXPECT_REFUSED(read_with(weights + "/symmetric", false), "symmetric", "false");
  EXPECT_REFUSED(read_without(weights + "/symmetric"), "symmetric", "missing");
  EXPECT_REFUSED(read_with(weights + "/strategy", "channel"), "strategy", "channel");
  EXPECT_REFUSED(read_with(weights + "/actorder", "group"), "actorder", "group");
  EXPECT_REFUSED(read_with(weights + "/dynamic", true), "dynamic", "true");
  EXPECT_REFUSED(read_with("/quantization_config/format", "float-quantized"), "format",
                 "float-quantized", "pack-quantized");
  EXPECT_REFUSED(read_with("/quantization_config/quant_method", "awq"), "quant_method", "awq");
  EXPECT_REFUSED(read_with("/quantization_config/config_groups", json::object()), "config_groups");
  EXPECT_REFUSED(read_with("/quantization_config/config_groups", {1, 2}), "config_groups",
                 "an array of 2");
  EXPECT_REFUSED(read_with("/quantization_config/config_groups/group_0/weights", nullptr),
                 "weights", "missing");
  EXPECT_REFUSED(
      read_with("/quantization_config/config_groups/group_0/input_activations", {{"num_bits", 8}}),
      "input_activations", "an object");
  EXPECT_REFUSED(read_with("/quantization_config", "int4"), "quantization_config", "int4");
}

TEST(Config, GroupsThatDifferAreRefusedNamingTheGroup) {
  json group = golden_config()["text_config"]["quantization_config"]["config_groups"]["group_0"];
  EXPECT_TRUE(read_with("/quantization_config/config_groups/group_1", group).ok());
  group["weights"]["num_bits"] = 8;
  EXPECT_REFUSED(read_with("/quantization_config/config_groups/group_1", group), "group_1",
                 "num_bits", "8");
}

TEST(Config, SizesThatCanNotBeAreRefusedNamingThem) {
  for (const char* field :
       {"hidden_size", "moe_intermediate_size", "n_routed_experts", "num_experts_per_tok"})
    for (const json& value : {json(-1), json(0), json(1e18), json("7168"), json(7168.5), json(true),
                              json(json::array({1})), json(18446744073709551615ull), json(nullptr)})
      EXPECT_REFUSED(read_with(std::string("/") + field, value),
                     std::string(field) == "n_routed_experts" && value.is_null()
                         ? std::string("n_routed_experts")
                         : std::string("config.json: text_config.") + field);
  EXPECT_REFUSED(read_with("/num_experts_per_tok", 385), "num_experts_per_tok", "385", "1..384");
  EXPECT_REFUSED(read_with("/first_k_dense_replace", 62), "first_k_dense_replace", "62");
  EXPECT_REFUSED(read_without("/hidden_size"), "hidden_size", "missing");
}

TEST(Config, WhatIsNoObjectIsRefused) {
  const auto text = [](std::string_view bytes) { return read_model_config(bytes, "my.json"); };
  EXPECT_REFUSED(text(""), "my.json", "not JSON");
  EXPECT_REFUSED(text("{"), "my.json", "not JSON");
  EXPECT_REFUSED(text("{\"a\": 1e999}"), "my.json", "not JSON");
  EXPECT_REFUSED(text(std::string_view("{\"a\xff\": 1}")), "my.json", "not JSON");
  EXPECT_REFUSED(text("[1]"), "my.json", "an array of 1");
  EXPECT_REFUSED(text("null"), "my.json", "null");
  EXPECT_REFUSED(text("\"abc\""), "my.json", "\"abc\"");
  EXPECT_REFUSED(text("{}"), "my.json", "n_routed_experts");
  EXPECT_REFUSED(text("{\"text_config\": 5}"), "my.json", "text_config", "found 5");
  EXPECT_REFUSED(text(std::string(std::size_t{17} << 20, ' ')), "my.json", "bytes");
}

TEST(Config, DeepNestingIsRefusedNotFollowed) {
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  EXPECT_REFUSED(read_model_config(deep, "deep.json"), "nested deeper");
  const std::string objects = [] {
    std::string text;
    for (int i = 0; i < 100000; ++i) text += "{\"a\":";
    return text + "1" + std::string(100000, '}');
  }();
  EXPECT_REFUSED(read_model_config(objects, "deep.json"), "nested deeper");
}

// Random damage: no crash, and what is accepted holds sizes that can be.
TEST(Config, RandomDamageIsRefusedOrHarmless) {
  const std::string original = golden_text("kimi_k2_5_config.json");
  const std::string pieces[] = {"{",       "}",    "[",          "]",
                                "\"",      ",",    ":",          "-",
                                "1e9",     "null", "true",       "99999999999999999999",
                                "\\u0000", "\xc3", "text_config"};
  std::mt19937 random(2026);
  const auto below = [&](std::size_t limit) {
    return random() % static_cast<std::uint32_t>(limit);
  };
  const auto start = std::chrono::steady_clock::now();
  int accepted = 0;
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = original;
    for (std::uint32_t i = 0; i <= below(4); ++i) {
      const std::size_t at = below(text.size());
      switch (below(5)) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + below(20));
          break;
        case 2:
          text.insert(at, pieces[below(std::size(pieces))]);
          break;
        case 3:
          text.resize(at);
          break;
        default:
          text[at] = static_cast<char>('0' + below(10));
          break;
      }
      if (text.empty()) text = "{}";
    }
    const Result<ModelConfig> model = read_model_config(text, "fuzz.json");
    if (!model.ok()) {
      ++refused;
      ASSERT_NE(model.error().message().find("fuzz.json"), std::string::npos);
      continue;
    }
    ++accepted;
    ASSERT_GE(model->hidden_size, 1);
    ASSERT_LE(model->num_experts_per_tok, model->n_routed_experts);
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(5)) break;
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace chord::heuristics
