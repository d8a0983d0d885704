// What an epilogue allows a kernel, and where one is refused.
#include <algorithm>

#include "chord/model.h"
#include "heuristics/deployment.h"
#include "tests/heuristics/support.h"

namespace chord::heuristics {
namespace {

struct Sized {
  std::int64_t n, k, experts;
};

// Calls visit(descriptor) for shapes of every family from one row per expert to very many.
template <class Visit>
void for_each_size(const Visit& visit) {
  for (const Sized& s : {Sized{4096, 7168, 48}, Sized{512, 7168, 384}, Sized{7168, 256, 384},
                         Sized{64, 64, 8}, Sized{128, 256, 16}, Sized{1024, 128, 8}})
    for (std::int64_t rows_each = 1; rows_each < 3000; rows_each += 1 + rows_each / 2) {
      const std::int64_t rows = rows_each * s.experts;
      for (const char* profile : {"h200_decode_ep8", "h200_prefill_ep8", "h200_tp8"})
        visit(indexed(profile, s.n, s.k, s.experts, rows));
      visit(masked(s.n, s.k, s.experts, std::min<std::int64_t>(rows_each, 256)));
      visit(contiguous(s.n, s.k, s.experts, rows));
    }
}

Decision decided(GemmDescriptor descriptor, Epilogue epilogue, Policy policy) {
  descriptor.epilogue = epilogue;
  const Result<Decision> decision = solve(descriptor, {}, policy);
  EXPECT_TRUE(decision.ok()) << error_text(decision);
  return decision.ok() ? *decision : Decision{};
}

TEST(Epilogues, SwigluIsNeverResidentAndKeepsWgmmaToWideColumnsAndNarrowRows) {
  int resident_without = 0, wgmma = 0;
  for (const Policy policy : {Policy::measured, Policy::published})
    for_each_size([&](const GemmDescriptor& d) {
      const KernelSchedule kernel = decided(d, Epilogue::swiglu, policy).kernel;
      ASSERT_EQ(kernel.epilogue, Epilogue::swiglu);
      ASSERT_NE(kernel.mainloop, abi::Mainloop::resident);
      resident_without += abi::is_resident(decided(d, Epilogue::none, policy).kernel);
      if (kernel.mainloop != abi::Mainloop::wgmma) return;
      ++wgmma;
      ASSERT_GE(kernel.tile_n, 256);
      ASSERT_LE(kernel.tile_m, 104);
    });
  // Else this test would show nothing.
  EXPECT_GT(resident_without, 0);
  EXPECT_GT(wgmma, 0);
}

TEST(Epilogues, WeightedChangesNothingButItself) {
  for (const Policy policy : {Policy::measured, Policy::published})
    for_each_size([&](const GemmDescriptor& d) {
      const Decision plain = decided(d, Epilogue::none, policy);
      Decision weighted = decided(d, Epilogue::weighted, policy);
      ASSERT_EQ(plain.kernel.epilogue, Epilogue::none);
      ASSERT_EQ(weighted.kernel.epilogue, Epilogue::weighted);
      weighted.kernel.epilogue = Epilogue::none;
      ASSERT_EQ(weighted.kernel, plain.kernel);
      ASSERT_EQ(weighted.schedule, plain.schedule);
    });
}

TEST(Epilogues, NoneIsThePlanOfADescriptorThatSaysNothing) {
  for_each_size([](const GemmDescriptor& d) {
    const Result<Decision> silent = solve(d, {}, Policy::measured);
    ASSERT_TRUE(silent.ok()) << error_text(silent);
    const Decision none = decided(d, Epilogue::none, Policy::measured);
    ASSERT_EQ(silent->descriptor, none.descriptor);
    ASSERT_EQ(silent->kernel, none.kernel);
    ASSERT_EQ(silent->kernel.epilogue, Epilogue::none);
  });
}

TEST(Epilogues, PinsThatSwigluCanNotRunAreRefused) {
  const char* const kWhy = "epilogue swiglu is for mma, and for wgmma with tile_n 256 or 512";
  GemmDescriptor d = indexed("h200_tp8", 7168, 256, 384, 40000);
  Overrides resident;
  resident.mainloop = abi::Mainloop::resident;
  ASSERT_TRUE(solve(d, resident, Policy::measured).ok());
  Overrides narrow = pin(&Overrides::tile_n, 128);
  narrow.mainloop = abi::Mainloop::wgmma;
  ASSERT_TRUE(solve(d, narrow, Policy::measured).ok());
  d.epilogue = Epilogue::swiglu;
  EXPECT_REFUSED(solve(d, resident, Policy::measured), "resident", kWhy);
  EXPECT_REFUSED(solve(d, narrow, Policy::measured), "wgmma", "tile_n 128", kWhy);
  narrow.tile_n = 256;
  EXPECT_TRUE(solve(d, narrow, Policy::measured).ok());
}

TEST(Epilogues, OutOfRangeAreRefused) {
  for (const int value : {-1, 3, 99}) {
    GemmDescriptor d = indexed("h200_decode_ep8", 4096, 7168, 48, 160);
    d.epilogue = static_cast<Epilogue>(value);
    EXPECT_REFUSED(solve(d, {}, Policy::measured), "epilogue is " + std::to_string(value),
                   "none, swiglu or weighted");
    EXPECT_REFUSED(tabulate(d, {}, Policy::measured), "epilogue is " + std::to_string(value));
  }
}

LayerDescriptor fused_layer() {
  LayerDescriptor layer = *shard_layer(*builtin_model("kimi-k2.5"), {ShardAxis::expert, 8});
  layer.rows = 160;
  layer.gate_up_epilogue = Epilogue::swiglu;
  layer.down_epilogue = Epilogue::weighted;
  return layer;
}

TEST(Epilogues, OfALayerGoToTheirProjections) {
  const Result<LayerPlan> plan = solve_layer(fused_layer(), {}, Policy::measured);
  ASSERT_TRUE(plan.ok()) << error_text(plan);
  EXPECT_EQ(plan->gate_up.kernel.epilogue, Epilogue::swiglu);
  EXPECT_EQ(plan->down.kernel.epilogue, Epilogue::weighted);
}

TEST(Epilogues, OfTheWrongProjectionAreRefused) {
  LayerDescriptor layer = fused_layer();
  layer.gate_up_epilogue = Epilogue::weighted;
  EXPECT_REFUSED(solve_layer(layer, {}, Policy::measured), "gate_up_epilogue is weighted",
                 "gate/up has none or swiglu");
  layer = fused_layer();
  layer.down_epilogue = Epilogue::swiglu;
  EXPECT_REFUSED(solve_layer(layer, {}, Policy::measured), "down_epilogue is swiglu",
                 "down has none or weighted");
}

TEST(Epilogues, OfADeploymentAreInEveryKernelOfIt) {
  Deployment deployment;
  deployment.model = *builtin_model("kimi-k2.5");
  deployment.shard = {ShardAxis::expert, 8};
  deployment.roles = {Role::decode, Role::prefill};
  deployment.gate_up_epilogue = Epilogue::swiglu;
  deployment.down_epilogue = Epilogue::weighted;
  const Result<std::vector<Decision>> all = expand(deployment, {}, Policy::measured);
  ASSERT_TRUE(all.ok()) << error_text(all);
  const LayerDescriptor layer = fused_layer();
  int gate_up = 0, down = 0;
  for (const Decision& decision : *all) {
    const bool is_gate_up = decision.descriptor.n == layer.gate_up_n;
    (is_gate_up ? gate_up : down) += 1;
    EXPECT_EQ(decision.kernel.epilogue, is_gate_up ? Epilogue::swiglu : Epilogue::weighted);
    EXPECT_EQ(decision.descriptor.epilogue, decision.kernel.epilogue);
  }
  EXPECT_GT(gate_up, 0);
  EXPECT_GT(down, 0);
}

}  // namespace
}  // namespace chord::heuristics
