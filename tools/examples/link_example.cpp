#include <chord/engine.h>
#include <chord/model.h>

#include <cstdio>

chord::Status plan_kimi() {
  CHORD_TRY(auto engine, chord::Engine::create());
  CHORD_TRY(auto layer, chord::shard_layer(*chord::builtin_model("kimi-k2.5"), {.ways = 8}));
  layer.rows = 160;  // 20 tokens per GPU, 8 routes each
  CHORD_TRY(auto plan, engine.plan_layer(layer));
  std::printf("block_m %d, tile %d x %d\n", plan.block_m, plan.gate_up.kernel.tile_m,
              plan.gate_up.kernel.tile_n);
  return {};  // on a GPU: engine.prepare(plan.gate_up), then engine.launch(...)
}

int main() {
  const auto status = plan_kimi();
  if (!status) std::fprintf(stderr, "%s\n", status.error().message().c_str());
  return status ? 0 : 1;
}
