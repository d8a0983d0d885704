// What a report says about memory and about where timing begins, and which weights a run loads.
#include "tools/examples/layer_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/examples/files.h"

namespace chord::examples {
namespace {

SessionReport made_up_report(std::int64_t second_order_bytes) {
  SessionReport report;
  report.load.packed_bytes = 300'000'000;
  report.load.staging_bytes = 10'000'000;
  report.load.second_order_bytes = second_order_bytes;
  report.forwards.push_back({});
  return report;
}

TEST(LayerReport, SaysThatTimingBeginsAtRouterLogits) {
  EXPECT_TRUE(has(text_of(made_up_report(0), {}, "made up"), "from router logits on, one graph"));
  EXPECT_EQ(json_of(made_up_report(0), {}, "made up")["timed_from"], "router logits");
}

TEST(LayerReport, PeakIsWhatAnEngineKeepsAndStaging) {
  for (const std::int64_t second : {0, 200'000'000}) {
    const SessionReport report = made_up_report(second);
    EXPECT_TRUE(has(text_of(report, {}, "made up"), "peak: 310.0 MB, with 10.0 MB of staging"));
    EXPECT_EQ(json_of(report, {}, "made up")["peak_bytes"], 310'000'000);
    EXPECT_EQ(json_of(report, {}, "made up")["second_order_bytes"], second);
  }
}

TEST(LayerReport, NamesTheSecondCopyWhereThereIsOne) {
  const std::string copy = "not in it: 200.0 MB, gate/up in a second row order";
  EXPECT_TRUE(has(text_of(made_up_report(200'000'000), {}, "made up"), copy));
  EXPECT_FALSE(has(text_of(made_up_report(0), {}, "made up"), "second row order"));
}

TEST(LayerForms, NeedTheRowOrdersOfWhatIsTimed) {
  struct Case {
    Fused fused;
    bool is_alone, plain, interleaved;
  };
  for (const Case& c : {Case{Fused::none, false, true, false},
                        {Fused::weighted, false, true, false},
                        {Fused::swiglu, false, true, true},
                        {Fused::both, false, true, true},
                        {Fused::none, true, true, false},
                        {Fused::weighted, true, true, false},
                        {Fused::swiglu, true, false, true},
                        {Fused::both, true, false, true}}) {
    SessionOptions options;
    options.fused = c.fused;
    options.is_alone = c.is_alone;
    const std::vector<Fused> forms = forms_of(options);
    EXPECT_EQ(forms.size(), c.is_alone || c.fused == Fused::none ? 1u : 2u);
    EXPECT_EQ(forms.back(), c.fused);
    const WeightForms needed = weight_forms(forms);
    EXPECT_EQ(needed.plain, c.plain) << name(c.fused);
    EXPECT_EQ(needed.fused, c.interleaved) << name(c.fused);
  }
}

}  // namespace
}  // namespace chord::examples
