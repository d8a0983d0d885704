// Profile files: the embedded ones, measured rows, and files that have to be refused.
#include "heuristics/profile.h"

#include "tests/heuristics/support.h"

namespace chord::heuristics {
namespace {

using nlohmann::json;

json schedule(int block_n) {
  return {{"block_n", block_n}, {"block_k", 64},   {"num_stages", 4},
          {"ctas_per_sm", 1},   {"swap_ab", true}, {"stream_k", false}};
}

json evidence() {
  return {{"gpu", "NVIDIA H200"},
          {"driver", "580.159"},
          {"kernel_digest", "0123abcd"},
          {"median_us", 197.5},
          {"date", "2026-11-29"}};
}

// Decode steps for one shape, and one measured row for 101..200 rows of it.
json synthetic() {
  json fallback = schedule(64);
  fallback.erase("block_n");
  fallback["block_m"] = 8;
  return {{"profile", "synthetic"},
          {"family", "indexed"},
          {"why", "a test"},
          {"architectures", {"sm_90a"}},
          {"axis", "ep"},
          {"roles", {"decode"}},
          {"fallback", fallback},
          {"shapes",
           {{{"projection", "gate_up"},
             {"n", 1024},
             {"k", 512},
             {"block_m_rule", "decode_steps"},
             {"rows",
              {{{"schedule", schedule(256)}, {"why", "up to 24"}, {"max_block_m", 24}},
               {{"schedule", schedule(128)}, {"why", "above"}, {"min_block_m", 32}}}}}}},
          {"measured",
           {{{"arch", "sm_90a"},
             {"n", 1024},
             {"k", 512},
             {"experts", 48},
             {"min_rows", 100},
             {"max_rows", 200},
             {"schedule", {{"block_m", 16}, {"stream_k", true}}},
             {"kernel", {{"tile_n", 256}, {"split", "even"}}},
             {"why", "an even split wins here"},
             {"evidence", evidence()}}}}};
}

Result<Profile> parse(const json& profile, const char* file = "synthetic.json") {
  return parse_profile(profile.dump(), file);
}

ProfileSet set_of(const json& profile) {
  Result<Profile> parsed = parse(profile);
  EXPECT_TRUE(parsed.ok()) << error_text(parsed);
  ProfileSet set;
  if (parsed.ok()) set.profiles.push_back(*parsed);
  return set;
}

GemmDescriptor question(std::int64_t rows, std::int64_t experts = 48) {
  return indexed("synthetic", 1024, 512, experts, rows);
}

Decision solved(const ProfileSet& set, const GemmDescriptor& d, Policy policy = Policy::measured,
                const Overrides& overrides = {}) {
  Result<Decision> decision = solve(set, d, overrides, policy);
  EXPECT_TRUE(decision.ok()) << error_text(decision);
  return decision.ok() ? *decision : Decision{};
}

// A change of the synthetic profile, and what its refusal has to name beside the file.
template <class Change>
void expect_refused(Change change, std::initializer_list<std::string> parts) {
  json profile = synthetic();
  change(profile);
  const Result<Profile> parsed = parse(profile);
  ASSERT_FALSE(parsed.ok()) << *parts.begin();
  EXPECT_NE(parsed.error().message().find("synthetic.json"), std::string::npos);
  for (const std::string& part : parts)
    EXPECT_NE(parsed.error().message().find(part), std::string::npos)
        << part << " is not in: " << parsed.error().message();
}

TEST(Profiles, TheEmbeddedOnesParse) {
  const Result<ProfileSet>& set = published_profiles();
  ASSERT_TRUE(set.ok()) << error_text(set);
  EXPECT_EQ(set->profiles.size(), 6u);
  for (const char* name :
       {"h200_prefill_ep8", "h200_decode_ep8", "h200_tp8", "blackwell_decode_ep8"})
    EXPECT_NE(set->indexed(name), nullptr) << name;
  EXPECT_NE(set->grouped(Family::grouped_masked), nullptr);
  EXPECT_NE(set->grouped(Family::grouped_contiguous), nullptr);
}

TEST(Profiles, AMeasuredRowOverridesTheRuleAndCarriesItsEvidence) {
  const ProfileSet set = set_of(synthetic());
  const Decision decision = solved(set, question(150));
  EXPECT_EQ(decision.origin, Origin::measured);
  EXPECT_EQ(decision.schedule.block_m, 16);
  EXPECT_EQ(decision.schedule.block_n, 256);
  EXPECT_EQ(decision.schedule.stream_k, true);
  EXPECT_EQ(decision.kernel.tile_n, 256);
  EXPECT_EQ(decision.kernel.split, abi::Split::even);
  ASSERT_FALSE(decision.reasons.empty());
  const std::string& text = decision.reasons.front().text;
  for (const char* part :
       {"NVIDIA H200", "580.159", "0123abcd", "197.5", "2026-11-29", "an even split wins here"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Profiles, AMeasuredRowEndsAtItsLimits) {
  const ProfileSet set = set_of(synthetic());
  EXPECT_EQ(solved(set, question(100)).origin, Origin::rule);
  EXPECT_EQ(solved(set, question(101)).origin, Origin::measured);
  EXPECT_EQ(solved(set, question(200)).origin, Origin::measured);
  EXPECT_EQ(solved(set, question(201)).origin, Origin::rule);
  EXPECT_EQ(solved(set, question(150, 24)).origin, Origin::rule);
}

TEST(Profiles, ThePublishedPolicyDoesNotLookAtMeasuredRows) {
  const ProfileSet set = set_of(synthetic());
  const Decision decision = solved(set, question(150), Policy::published);
  EXPECT_EQ(decision.origin, Origin::rule);
  EXPECT_EQ(decision.schedule.block_m, 8);
  EXPECT_EQ(decision.kernel.tile_n, 512);
}

TEST(Profiles, TablesShowMeasuredRows) {
  const ProfileSet set = set_of(synthetic());
  const Result<ScheduleTable> table = tabulate(set, question(0), {}, Policy::measured);
  ASSERT_TRUE(table.ok()) << error_text(table);
  for (std::int64_t rows = 1; rows < 800; ++rows) {
    const Decision decision = solved(set, question(rows));
    EXPECT_EQ(table->at(rows).schedule, decision.schedule) << rows;
    EXPECT_EQ(table->at(rows).kernel, decision.kernel) << rows;
    EXPECT_EQ(table->at(rows).origin, decision.origin) << rows;
  }
}

TEST(Profiles, OverridesStandAboveMeasuredRows) {
  const ProfileSet set = set_of(synthetic());
  const Decision other = solved(set, question(150), Policy::measured, pin(&Overrides::block_m, 24));
  EXPECT_EQ(other.origin, Origin::override_value);
  EXPECT_EQ(other.schedule.block_m, 24);
  EXPECT_EQ(other.schedule.stream_k, false);  // measured for block_m 16 only
  const Decision wide = solved(set, question(150), Policy::measured, pin(&Overrides::tile_n, 128));
  EXPECT_EQ(wide.kernel.tile_n, 128);
  EXPECT_EQ(wide.kernel.split, abi::Split::even);
  EXPECT_EQ(solved(set, question(150), Policy::measured, pin(&Overrides::block_m, 16)).origin,
            Origin::measured);
}

TEST(Profiles, GroupedFamiliesTakeMeasuredRowsToo) {
  const json profile = {{"profile", "grouped_masked"},
                        {"family", "grouped_masked"},
                        {"why", "a test"},
                        {"architectures", {"sm_90a"}},
                        {"measured",
                         {{{"arch", "sm_90a"},
                           {"n", 4096},
                           {"k", 7168},
                           {"min_rows", 10},
                           {"max_rows", 40},
                           {"schedule", {{"block_m", 64}, {"cluster_m", 2}}},
                           {"why", "it does"},
                           {"evidence", evidence()}}}}};
  ProfileSet set;
  set.profiles.push_back(parse(profile, "grouped_masked.json").value());
  const Result<ScheduleTable> table =
      tabulate(set, masked(4096, 7168, 48, 0), {}, Policy::measured);
  ASSERT_TRUE(table.ok()) << error_text(table);
  for (std::int64_t m = 1; m < 300; ++m) {
    const Decision decision = solved(set, masked(4096, 7168, 48, m));
    EXPECT_EQ(decision.origin, m > 10 && m <= 40 ? Origin::measured : Origin::rule) << m;
    EXPECT_EQ(table->at(m).schedule, decision.schedule) << m;
    EXPECT_EQ(table->at(m).origin, decision.origin) << m;
  }
  EXPECT_EQ(solved(set, masked(4096, 7168, 48, 20)).schedule.cluster_m, 2);
}

TEST(Profiles, WhatIsNotAProfileIsRefused) {
  EXPECT_REFUSED(parse_profile("{", "x.json"), "x.json", "not JSON");
  EXPECT_REFUSED(parse_profile("[]", "x.json"), "x.json", "an array");
  EXPECT_REFUSED(parse_profile("{}", "x.json"), "x.json", "profile");
  EXPECT_REFUSED(parse(synthetic(), "other.json"), "other.json", "synthetic");
}

TEST(Profiles, MalformedFieldsAreNamedWithTheFile) {
  expect_refused([](json& p) { p["family"] = "sparse"; }, {"family", "sparse"});
  expect_refused([](json& p) { p["architectures"] = {"sm_80"}; }, {"architectures", "sm_80"});
  expect_refused([](json& p) { p["architectures"] = json::array(); }, {"architectures"});
  expect_refused([](json& p) { p["axis"] = "pp"; }, {"axis", "pp"});
  expect_refused([](json& p) { p["roles"] = {"training"}; }, {"roles", "training"});
  expect_refused([](json& p) { p.erase("why"); }, {"why", "missing"});
  expect_refused([](json& p) { p["shape"] = 1; }, {"shape", "no such field"});
  expect_refused([](json& p) { p.erase("measured"); }, {"measured", "missing"});
  expect_refused([](json& p) { p["fallback"]["block_n"] = 64; }, {"fallback.block_n"});
  expect_refused([](json& p) { p["shapes"][0]["n"] = 100; }, {"shapes[0]"});
  expect_refused([](json& p) { p["shapes"][0]["n"] = "1024"; }, {"shapes[0].n", "\"1024\""});
  expect_refused([](json& p) { p["shapes"][0]["projection"] = "up"; }, {"shapes[0].projection"});
  expect_refused([](json& p) { p["shapes"][0]["block_m_rule"] = "magic"; },
                 {"shapes[0].block_m_rule", "magic", "decode_steps"});
}

TEST(Profiles, MalformedRowsAreNamedWithTheirPlace) {
  const auto row = [](json& p) -> json& { return p["shapes"][0]["rows"][1]; };
  expect_refused([&](json& p) { row(p).erase("why"); }, {"shapes[0].rows[1].why"});
  expect_refused([&](json& p) { row(p)["schedule"].erase("block_k"); },
                 {"shapes[0].rows[1].schedule.block_k", "missing"});
  expect_refused([&](json& p) { row(p)["schedule"]["block_n"] = 100; },
                 {"shapes[0].rows[1].schedule.block_n", "100"});
  expect_refused([&](json& p) { row(p)["schedule"]["block_m"] = 16; },
                 {"shapes[0].rows[1].schedule.block_m"});
  expect_refused([&](json& p) { row(p)["schedule"]["swap_ab"] = 1; },
                 {"shapes[0].rows[1].schedule.swap_ab", "found 1"});
  expect_refused([&](json& p) { row(p)["maxrows"] = 9; }, {"shapes[0].rows[1].maxrows"});
  expect_refused([&](json& p) { row(p)["min_rows"] = 50, row(p)["max_rows"] = 50; },
                 {"shapes[0].rows[1].max_rows"});
}

TEST(Profiles, HolesBetweenRowsAreRefused) {
  expect_refused([](json& p) { p["shapes"][0]["rows"].erase(1); },
                 {"shapes[0].rows", "block_m 32"});
  expect_refused([](json& p) { p["shapes"][0]["rows"][0]["max_rows"] = 500; },
                 {"shapes[0].rows", "501 rows", "block_m 8"});
}

TEST(Profiles, MeasuredRowsWithoutEvidenceAreRefused) {
  const auto row = [](json& p) -> json& { return p["measured"][0]; };
  expect_refused([&](json& p) { row(p).erase("evidence"); }, {"measured[0].evidence", "missing"});
  for (const char* field : {"gpu", "driver", "kernel_digest", "median_us", "date"})
    expect_refused([&](json& p) { row(p)["evidence"].erase(field); },
                   {std::string("measured[0].evidence.") + field, "missing"});
  expect_refused([&](json& p) { row(p)["evidence"]["median_us"] = -1; },
                 {"measured[0].evidence.median_us"});
  expect_refused([&](json& p) { row(p)["arch"] = "sm_89"; }, {"measured[0].arch", "sm_89"});
  expect_refused([&](json& p) { row(p)["kernel"]["split"] = "odd"; },
                 {"measured[0].kernel.split", "odd"});
  expect_refused([&](json& p) { row(p)["schedule"]["cluster_m"] = 2; },
                 {"measured[0].schedule.cluster_m"});
  expect_refused([&](json& p) { row(p).erase("schedule"), row(p).erase("kernel"); },
                 {"measured[0].schedule"});
}

}  // namespace
}  // namespace chord::heuristics
