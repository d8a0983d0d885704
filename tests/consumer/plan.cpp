// Plans a layer of Kimi K2.5 through the C++ interface, and looks at an error on the way.
#include <chord/engine.h>
#include <chord/model.h>

#include <cstdio>

namespace {

chord::Result<chord::LayerPlan> plan_kimi() {
  CHORD_TRY(const auto model, chord::builtin_model("kimi-k2.5"));
  CHORD_TRY(auto layer, chord::shard_layer(model, {.ways = 8}));
  layer.rows = 160;
  CHORD_TRY(const auto engine, chord::Engine::create());
  return engine.plan_layer(layer);
}

}  // namespace

int main() {
  const auto unknown = chord::builtin_model("no-such-model");
  const auto plan = plan_kimi();
  if (unknown.ok() || !plan.ok()) {
    std::fprintf(stderr, "%s\n", plan.ok() ? "no error" : plan.error().message().c_str());
    return 1;
  }
  std::printf("block_m %d\n%s\n", plan->block_m, chord::name(unknown.error().code));
  return 0;
}
