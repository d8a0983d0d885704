// Model facts through the C face: built-in ones, a config.json, shards.
#include "chord/model.h"

#include <fstream>
#include <iterator>

#include "tests/c_api/fixture.h"

namespace chord::c_api_test {
namespace {

std::string kimi_config() {
  std::ifstream file(CHORD_SOURCE_DIR "/tests/golden/kimi_k2_5_config.json");
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_same(const chord_model_t& model, const ModelConfig& expected) {
  EXPECT_EQ(model.name, expected.model);
  EXPECT_EQ(model.hidden_size, expected.hidden_size);
  EXPECT_EQ(model.moe_intermediate_size, expected.moe_intermediate_size);
  EXPECT_EQ(model.n_routed_experts, expected.n_routed_experts);
  EXPECT_EQ(model.num_experts_per_tok, expected.num_experts_per_tok);
  EXPECT_EQ(model.n_shared_experts, expected.n_shared_experts);
  EXPECT_EQ(model.num_hidden_layers, expected.num_hidden_layers);
  EXPECT_EQ(model.first_k_dense_replace, expected.first_k_dense_replace);
}

TEST(Model, EveryBuiltInNameIsKnown) {
  std::size_t count = 0;
  for (; chord_model_name(count) != nullptr; ++count) {
    chord_model_t model = chord_model_init();
    REQUIRE_SUCCESS(chord_model_builtin(chord_model_name(count), &model));
    expect_same(model, *builtin_model(chord_model_name(count)));
  }
  EXPECT_EQ(count, builtin_model_names().size());
}

TEST(Model, AnUnknownNameIsAnErrorThatListsTheKnown) {
  chord_model_t model = chord_model_init();
  EXPECT_EQ(chord_model_builtin("gpt-0", &model), CHORD_ERROR_NOT_FOUND);
  EXPECT_TRUE(contains(chord_last_error()->message, "kimi-k2.5"));
}

TEST(Model, IsReadFromAConfig) {
  const std::string json = kimi_config();
  chord_model_t model = chord_model_init();
  REQUIRE_SUCCESS(chord_model_read(json.data(), json.size(), nullptr, &model));
  expect_same(model, *read_model_config(json, ""));
}

TEST(Model, OriginNamesTheFileInErrors) {
  chord_model_t model = chord_model_init();
  EXPECT_NE(chord_model_read("{}", 2, "a/b.json", &model), CHORD_SUCCESS);
  EXPECT_TRUE(contains(chord_last_error()->message, "a/b.json"));
  EXPECT_NE(chord_model_read("{}", 2, nullptr, &model), CHORD_SUCCESS);
  EXPECT_TRUE(contains(chord_last_error()->message, "config.json"));
}

TEST(Model, ANameWithoutAnEndIsRefused) {
  chord_model_t model = small_model();
  std::memset(model.name, 'x', sizeof model.name);
  chord_layer_descriptor_t layer = chord_layer_descriptor_init();
  EXPECT_EQ(chord_model_shard(&model, CHORD_SHARD_EXPERT, 4, &layer), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "`model.name` has no final zero"));
}

TEST(Model, ShardHasTheShapesOfTheCppFace) {
  chord_model_t model = chord_model_init();
  REQUIRE_SUCCESS(chord_model_builtin("kimi-k2.5", &model));
  chord_layer_descriptor_t layer = chord_layer_descriptor_init();
  REQUIRE_SUCCESS(chord_model_shard(&model, CHORD_SHARD_TENSOR, 8, &layer));
  const auto expected =
      shard_layer(*builtin_model("kimi-k2.5"), {.axis = ShardAxis::tensor, .ways = 8});
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ(layer.experts, expected->experts);
  EXPECT_EQ(layer.top_k, expected->top_k);
  EXPECT_EQ(layer.gate_up_n, expected->gate_up_n);
  EXPECT_EQ(layer.gate_up_k, expected->gate_up_k);
  EXPECT_EQ(layer.down_n, expected->down_n);
  EXPECT_EQ(layer.down_k, expected->down_k);
  EXPECT_EQ(layer.shard_axis, CHORD_SHARD_TENSOR);
  EXPECT_EQ(layer.shard_ways, 8);
  EXPECT_EQ(layer.role, CHORD_ROLE_DECODE);
}

TEST(Model, WaysThatDoNotDivideItAreRefused) {
  const chord_model_t model = small_model();
  chord_layer_descriptor_t layer = chord_layer_descriptor_init();
  EXPECT_EQ(chord_model_shard(&model, CHORD_SHARD_EXPERT, 3, &layer), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(chord_last_error()->message, "3 ways"));
}

TEST(ProfileName, IsOneThatADescriptorTakes) {
  std::size_t count = 0;
  bool is_known = false;
  for (; chord_profile_name(count) != nullptr; ++count)
    is_known = is_known || std::string(chord_profile_name(count)) == decode().profile;
  EXPECT_TRUE(is_known);
  EXPECT_GT(count, 1u);
  EXPECT_EQ(chord_profile_name(count + 1), nullptr);
}

}  // namespace
}  // namespace chord::c_api_test
