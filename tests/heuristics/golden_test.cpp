// Every published case: the policy `published` answers exactly these fields.
#include "tests/heuristics/support.h"

namespace chord::heuristics {
namespace {

using nlohmann::json;

std::int64_t number(const json& c, const char* name) {
  return c.contains(name) ? c.at(name).get<std::int64_t>() : 0;
}

GemmDescriptor descriptor_of(const json& c) {
  GemmDescriptor d;
  d.family = *parse_family(c.at("family").get<std::string>());
  d.n = number(c, "n");
  d.k = number(c, "k");
  d.experts = number(c, "experts");
  d.rows = number(c, d.family == Family::indexed ? "routed_rows" : "rows");
  d.max_m = number(c, "max_m");
  d.expected_m = number(c, "expected_m");
  d.num_sms = static_cast<int>(number(c, "num_sms"));
  if (c.contains("profile")) d.profile = c.at("profile").get<std::string>();
  if (d.profile.starts_with("blackwell")) d.arch = Architecture::sm_100a;
  return d;
}

json json_of(const PublishedSchedule& schedule) { return json::parse(text_of(schedule)); }

json golden_cases() { return json::parse(golden_text("golden_schedules.json")).at("cases"); }

TEST(Golden, EveryPublishedCaseComesOutExactly) {
  const json cases = golden_cases();
  ASSERT_EQ(cases.size(), 184u);
  for (const json& c : cases) {
    const Result<Decision> decision = solve(descriptor_of(c), {}, Policy::published);
    ASSERT_TRUE(decision.ok()) << c << error_text(decision);
    EXPECT_EQ(json_of(decision->schedule), c.at("expect")) << c;
    EXPECT_EQ(decision->origin, Origin::rule) << c;
    EXPECT_FALSE(decision->reasons.empty()) << c;
  }
}

TEST(Golden, TablesAgreeWithEveryPublishedCase) {
  for (const json& c : golden_cases()) {
    const GemmDescriptor d = descriptor_of(c);
    const Result<ScheduleTable> table = tabulate(d, {}, Policy::published);
    ASSERT_TRUE(table.ok()) << c << error_text(table);
    const std::int64_t rows = d.family == Family::grouped_masked ? d.expected_m : d.rows;
    EXPECT_EQ(json_of(table->at(rows).schedule), c.at("expect")) << c;
  }
}

TEST(Golden, BothBlackwellsAnswerTheSame) {
  for (const json& c : golden_cases()) {
    GemmDescriptor d = descriptor_of(c);
    if (d.arch != Architecture::sm_100a) continue;
    d.arch = Architecture::sm_103a;
    const Result<Decision> decision = solve(d, {}, Policy::published);
    ASSERT_TRUE(decision.ok()) << c << error_text(decision);
    EXPECT_EQ(json_of(decision->schedule), c.at("expect")) << c;
  }
}

}  // namespace
}  // namespace chord::heuristics
