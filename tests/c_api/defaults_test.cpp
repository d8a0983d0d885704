// Defaults by name, as a binding from another language asks for them.
#include <vector>

#include "tests/c_api/fixture.h"

namespace chord::c_api_test {
namespace {

// What chord_defaults writes is what the inline function gives, byte for byte.
template <class Struct>
void expect_same_defaults(const char* name, Struct expected) {
  Struct value;
  std::memset(&value, 0xa5, sizeof value);
  EXPECT_SUCCESS(chord_defaults(name, &value, sizeof value));
  EXPECT_EQ(std::memcmp(&value, &expected, sizeof value), 0) << name;
}

TEST(Defaults, AreThoseOfTheInlineFunctions) {
#define CHORD_EXPECT_(name) expect_same_defaults("chord_" #name "_t", chord_##name##_init())
  CHORD_EXPECT_(options);
  CHORD_EXPECT_(device);
  CHORD_EXPECT_(model);
  CHORD_EXPECT_(layer_descriptor);
  CHORD_EXPECT_(gemm_descriptor);
  CHORD_EXPECT_(plan_info);
  CHORD_EXPECT_(table_row);
  CHORD_EXPECT_(weight_source);
  CHORD_EXPECT_(packed_weight);
  CHORD_EXPECT_(kernel_info);
  CHORD_EXPECT_(gemm_arguments);
  CHORD_EXPECT_(indexed_routing);
  CHORD_EXPECT_(contiguous_routing);
  CHORD_EXPECT_(masked_routing);
  CHORD_EXPECT_(gate_arguments);
  CHORD_EXPECT_(align_arguments);
  CHORD_EXPECT_(swiglu_arguments);
  CHORD_EXPECT_(combine_arguments);
  CHORD_EXPECT_(deployment);
  CHORD_EXPECT_(prewarm_options);
  CHORD_EXPECT_(report_info);
  CHORD_EXPECT_(missing);
  CHORD_EXPECT_(cache_counters);
#undef CHORD_EXPECT_
}

TEST(Defaults, AreNotAllZero) {
  chord_options_t options;
  REQUIRE_SUCCESS(chord_defaults("chord_options_t", &options, sizeof options));
  EXPECT_EQ(options.device, -1);
  chord_gate_arguments_t gate;
  REQUIRE_SUCCESS(chord_defaults("chord_gate_arguments_t", &gate, sizeof gate));
  EXPECT_EQ(gate.scale, 1.0f);
}

TEST(Defaults, OfALargerStructHaveItsSizeAndAnEmptyTail) {
  std::vector<unsigned char> bytes(sizeof(chord_options_t) + 16, 0xa5);
  REQUIRE_SUCCESS(chord_defaults("chord_options_t", bytes.data(), bytes.size()));
  chord_options_t options;
  std::memcpy(&options, bytes.data(), sizeof options);
  EXPECT_EQ(options.struct_size, bytes.size());
  EXPECT_EQ(options.device, -1);
  for (std::size_t i = sizeof options; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], 0) << i;
}

TEST(Defaults, OfANameThatIsNoneAreRefused) {
  chord_options_t options;
  EXPECT_EQ(chord_defaults("chord_option_t", &options, sizeof options),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(chord_last_error()->found, "argument `struct_name` is 'chord_option_t'");
}

TEST(Defaults, OfASizeThatNoReleaseHadAreRefusedAndNothingIsWritten) {
  for (const std::size_t size : {std::size_t{0}, sizeof(chord_options_t) - 1, ~std::size_t{0}}) {
    chord_options_t options = chord_options_init();
    options.device = 7;
    EXPECT_EQ(chord_defaults("chord_options_t", &options, size), CHORD_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(chord_last_error()->message, "184 is the size of chord_options_t"));
    EXPECT_EQ(options.device, 7);
  }
}

TEST(Defaults, NeedANameAndAPlace) {
  chord_options_t options;
  EXPECT_EQ(chord_defaults(nullptr, &options, sizeof options), CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(chord_last_error()->found, "argument `struct_name` is NULL");
  EXPECT_EQ(chord_defaults("chord_options_t", nullptr, sizeof options),
            CHORD_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(chord_last_error()->found, "argument `out` is NULL");
}

}  // namespace
}  // namespace chord::c_api_test
