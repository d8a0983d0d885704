// One GPU with everything that runs on it: engine, context, helper kernels, a stream.
//
//   CHORD_TRY(auto rig, Rig::create({}));
//   CHORD_TRY(auto weights, Weights::make(*rig, {.experts = 48, .n = 4096, .k = 7168}, {}));
//   CHORD_TRY(auto kernel, rig->engine.prepare(descriptor));
//   CHORD_TRY(auto run, GemmRun::make(*rig, kernel, weights, routing, {}));
//   CHORD_TRY(run.launch(rig->stream.handle()));
//   CHORD_TRY(const Comparison comparison, run.compare());
#pragma once

#include <memory>

#include "chord/engine.h"
#include "src/cuda/device.h"
#include "src/cuda/memory.h"
#include "tools/bench/device_code.h"

namespace chord::bench {

struct Rig {
  cuda::Context context;  // the primary context of a GPU, current on this thread; goes last
  cuda::Device device;
  const cuda::DriverApi* driver;
  Engine engine;
  cuda::OwnedStream stream;
  std::unique_ptr<DeviceCode> code;

  // Fails where there is no driver or no GPU that the library has kernels for.
  static Result<std::unique_ptr<Rig>> create(Options options, int ordinal = 0);
};

}  // namespace chord::bench
