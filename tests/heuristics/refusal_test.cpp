// Descriptors that can not be planned: the error says field, number and what would do.
#include <random>

#include "heuristics/validate.h"
#include "tests/heuristics/support.h"

namespace chord::heuristics {
namespace {

GemmDescriptor good() { return indexed("h200_decode_ep8", 4096, 7168, 48, 160); }

template <class Change>
Result<Decision> solve_changed(GemmDescriptor d, Change change) {
  change(d);
  return solve(d, {}, Policy::measured);
}

TEST(Refusals, TheDescriptorTheyStartFromIsGood) {
  EXPECT_TRUE(solve(good(), {}, Policy::measured).ok());
  EXPECT_TRUE(solve(masked(4096, 7168, 48, 16), {}, Policy::measured).ok());
  EXPECT_TRUE(solve(contiguous(4096, 7168, 48, 160), {}, Policy::measured).ok());
}

TEST(Refusals, OtherArchitecturesAreRefusedByName) {
  for (const char* arch : {"sm_80", "sm_89", "sm_120", "sm_121", "sm_90", "sm_100", "", "h200"})
    EXPECT_REFUSED(parse_architecture(arch), arch, "sm_90a");
  EXPECT_REFUSED(architecture_of(8, 0), "8.0");
  EXPECT_REFUSED(architecture_of(8, 9), "8.9");
  EXPECT_REFUSED(architecture_of(12, 0), "12.0");
  EXPECT_REFUSED(architecture_of(12, 1), "12.1");
}

TEST(Refusals, ShapesOffTheGridNameTheNumbers) {
  for (const int off : {8, 16, 32, -8}) {
    EXPECT_REFUSED(solve_changed(good(), [&](auto& d) { d.n += off; }),
                   "n is " + std::to_string(4096 + off), "multiple of 64");
    EXPECT_REFUSED(solve_changed(good(), [&](auto& d) { d.k += off; }),
                   "k is " + std::to_string(7168 + off), "multiple of 64");
  }
  EXPECT_REFUSED(solve_changed(good(), [](auto& d) { d.n = 0; }), "n is 0");
  EXPECT_REFUSED(solve_changed(good(), [](auto& d) { d.k = -64; }), "k is -64");
  EXPECT_REFUSED(solve_changed(good(), [](auto& d) { d.n = std::int64_t{1} << 40; }), "n is");
}

TEST(Refusals, ThePlannerAcceptsExactlyTheShapesOfThePredicate) {
  std::mt19937 random(11);
  for (int i = 0; i < 4000; ++i) {
    const std::int64_t step = i % 3 == 0 ? 8 : i % 3 == 1 ? 64 : 1;
    const std::int64_t n = step * static_cast<std::int64_t>(random() % 300);
    const std::int64_t k = step * static_cast<std::int64_t>(random() % 300);
    for (GemmDescriptor d : {good(), masked(64, 64, 8, 4), contiguous(64, 64, 8, 100)}) {
      d.n = n;
      d.k = k;
      ASSERT_EQ(solve(d, {}, Policy::published).ok(), abi::is_legal_shape(n, k)) << n << "x" << k;
    }
  }
}

TEST(Refusals, SizesOutsideTheirRangeAreNamed) {
  for (const std::int64_t rows : {std::int64_t{0}, std::int64_t{-1}, kMaxTableRows + 1})
    EXPECT_REFUSED(solve_changed(good(), [&](auto& d) { d.rows = rows; }),
                   "rows is " + std::to_string(rows));
  for (const std::int64_t experts : {std::int64_t{0}, std::int64_t{-3}, kMaxExpertsPerGpu + 1})
    EXPECT_REFUSED(solve_changed(good(), [&](auto& d) { d.experts = experts; }),
                   "experts is " + std::to_string(experts));
  for (const int sms : {-1, kMaxSms + 1})
    EXPECT_REFUSED(solve_changed(good(), [&](auto& d) { d.num_sms = sms; }),
                   "num_sms is " + std::to_string(sms));
  for (const int block_m : {0, 4, 12, 264, -8})
    EXPECT_REFUSED(solve_changed(good(), [&](auto& d) { d.block_m = block_m; }),
                   "block_m is " + std::to_string(block_m), "8..256");
}

TEST(Refusals, MaskedPlansNeedTheirSizes) {
  const GemmDescriptor d = masked(4096, 7168, 48, 16);
  EXPECT_REFUSED(solve_changed(d, [](auto& x) { x.expected_m = 0; }), "expected_m is 0");
  EXPECT_REFUSED(solve_changed(d, [](auto& x) { x.expected_m = -5; }), "expected_m is -5");
  EXPECT_REFUSED(solve_changed(d, [](auto& x) { x.max_m = 0; }), "max_m is 0");
  EXPECT_REFUSED(solve_changed(d, [](auto& x) { x.rows = 7; }), "rows is 7", "grouped_masked");
}

TEST(Refusals, FieldsOfAnotherFamilyAreRefused) {
  EXPECT_REFUSED(solve_changed(good(), [](auto& d) { d.max_m = 5; }), "max_m is 5", "indexed");
  EXPECT_REFUSED(solve_changed(good(), [](auto& d) { d.expected_m = 5; }), "expected_m is 5");
  for (const GemmDescriptor& d : {masked(4096, 7168, 48, 16), contiguous(4096, 7168, 48, 16)}) {
    EXPECT_REFUSED(solve_changed(d, [](auto& x) { x.profile = "h200_tp8"; }), "h200_tp8",
                   name(d.family));
    EXPECT_REFUSED(solve_changed(d, [](auto& x) { x.role = Role::decode; }), "role");
  }
}

TEST(Refusals, UnknownProfilesListTheKnownOnes) {
  for (const char* profile : {"", "h100", "H200_TP8", "grouped_masked"})
    EXPECT_REFUSED(solve_changed(good(), [&](auto& d) { d.profile = profile; }), "profile",
                   "h200_prefill_ep8", "h200_decode_ep8", "h200_tp8", "blackwell_decode_ep8");
}

TEST(Refusals, AProfileOfAnotherArchitectureNamesBoth) {
  for (const Architecture arch : {Architecture::sm_100a, Architecture::sm_103a})
    EXPECT_REFUSED(solve_changed(good(), [&](auto& d) { d.arch = arch; }), "h200_decode_ep8",
                   name(arch));
  EXPECT_REFUSED(solve_changed(indexed("blackwell_decode_ep8", 4096, 7168, 48, 160),
                               [](auto& d) { d.arch = Architecture::sm_90a; }),
                 "blackwell_decode_ep8", "sm_90a", "sm_100a, sm_103a");
}

TEST(Refusals, TablesRefuseTheSameButNotTheRows) {
  GemmDescriptor d = good();
  d.rows = -7;
  EXPECT_TRUE(tabulate(d, {}, Policy::measured).ok());
  d.n = 100;
  EXPECT_REFUSED(tabulate(d, {}, Policy::measured), "n is 100");
}

TEST(Decisions, FillInTheNumberOfMultiprocessors) {
  EXPECT_EQ(solve(good(), {}, Policy::measured)->descriptor.num_sms, 132);
  EXPECT_EQ(solve(indexed("blackwell_decode_ep8", 4096, 7168, 48, 160), {}, Policy::measured)
                ->descriptor.num_sms,
            148);
}

TEST(Decisions, OtherShapesAreFallbackAsStated) {
  struct Case {
    const char* profile;
    int block_m;
    bool swap_ab;
  };
  for (const Case& c : {Case{"h200_prefill_ep8", 16, false}, Case{"h200_tp8", 16, false},
                        Case{"h200_decode_ep8", 8, true}, Case{"blackwell_decode_ep8", 8, true}}) {
    for (const auto& [n, block_n] : {std::pair{64, 64}, {192, 64}, {384, 128}, {2048, 256}}) {
      const Result<Decision> decision =
          solve(indexed(c.profile, n, 7168, 48, 3000), {}, Policy::published);
      ASSERT_TRUE(decision.ok()) << error_text(decision);
      EXPECT_EQ(decision->origin, Origin::fallback);
      EXPECT_TRUE(has_reason(*decision, "fallback_untuned"));
      const PublishedSchedule& s = decision->schedule;
      EXPECT_EQ(s.block_m, c.block_m);
      EXPECT_EQ(s.block_n, block_n);
      EXPECT_EQ(s.block_k, 64);
      EXPECT_EQ(s.num_stages, 4);
      EXPECT_EQ(s.ctas_per_sm, 1);
      EXPECT_EQ(s.swap_ab, c.swap_ab);
      EXPECT_EQ(s.stream_k, false);
    }
  }
}

TEST(Decisions, OnlyTheStatedExpertCountsAreTuned) {
  const auto origin = [](const char* profile, std::int64_t n, std::int64_t k,
                         std::int64_t experts) {
    return solve(indexed(profile, n, k, experts, 160), {}, Policy::published)->origin;
  };
  for (const std::int64_t experts : {12, 24, 48, 49, 50, 56, 96, 384, 385}) {
    EXPECT_EQ(origin("h200_prefill_ep8", 4096, 7168, experts), Origin::rule);
    EXPECT_EQ(origin("h200_decode_ep8", 7168, 2048, experts), Origin::rule);
    EXPECT_EQ(origin("blackwell_decode_ep8", 4096, 7168, experts),
              experts == 48 ? Origin::rule : Origin::fallback);
    EXPECT_EQ(origin("h200_tp8", 512, 7168, experts),
              experts == 384 ? Origin::rule : Origin::fallback);
  }
}

TEST(Decisions, GroupedPlansOnBlackwellAreFallback) {
  for (GemmDescriptor d : {masked(4096, 7168, 48, 16), contiguous(4096, 7168, 48, 1024)}) {
    d.arch = Architecture::sm_103a;
    const Result<Decision> decision = solve(d, {}, Policy::published);
    ASSERT_TRUE(decision.ok()) << error_text(decision);
    EXPECT_EQ(decision->origin, Origin::fallback);
    EXPECT_TRUE(has_reason(*decision, "fallback_grouped_rules_are_sm90"));
  }
}

TEST(Decisions, AGivenBlockMIsHonouredWithAReason) {
  for (GemmDescriptor d : {indexed("h200_prefill_ep8", 4096, 7168, 48, 1024),
                           masked(4096, 7168, 48, 16), contiguous(4096, 7168, 48, 1024)}) {
    const Decision own = *solve(d, {}, Policy::published);
    d.block_m = 56;
    const Result<Decision> given = solve(d, {}, Policy::published);
    ASSERT_TRUE(given.ok()) << error_text(given);
    EXPECT_EQ(given->schedule.block_m, 56);
    EXPECT_EQ(given->kernel.block_m, 56);
    EXPECT_EQ(given->schedule.block_n, own.schedule.block_n);
    EXPECT_EQ(given->schedule.block_k, own.schedule.block_k);
    EXPECT_EQ(given->origin, Origin::rule);
    EXPECT_TRUE(has_reason(*given, "block_m_given"));
  }
}

TEST(Decisions, EveryGivenBlockMPlans) {
  for (int block_m = 8; block_m <= 256; block_m += 8)
    for (GemmDescriptor d : {good(), indexed("blackwell_decode_ep8", 4096, 7168, 48, 500),
                             masked(4096, 7168, 48, 16), contiguous(4096, 7168, 48, 1024)}) {
      d.block_m = block_m;
      const Result<Decision> decision = solve(d, {}, Policy::published);
      ASSERT_TRUE(decision.ok()) << block_m << ": " << error_text(decision);
      EXPECT_EQ(decision->kernel.block_m, block_m);
    }
}

TEST(Decisions, OddMultiprocessorCountsPlan) {
  for (int sms = 1; sms <= 200; ++sms)
    for (GemmDescriptor d : {good(), masked(4096, 7168, 48, 16), contiguous(7168, 2048, 48, 900)}) {
      d.num_sms = sms;
      const Result<Decision> decision = solve(d, {}, Policy::published);
      ASSERT_TRUE(decision.ok()) << sms << ": " << error_text(decision);
      const int cluster =
          decision->schedule.cluster_m.value_or(1) * decision->schedule.cluster_n.value_or(1);
      EXPECT_EQ(sms % cluster, 0);
    }
}

}  // namespace
}  // namespace chord::heuristics
