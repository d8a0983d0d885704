// Puts the parts together.
#include "tools/bench/rig.h"

namespace chord::bench {

Result<std::unique_ptr<Rig>> Rig::create(Options options, int ordinal) {
  CHORD_TRY(const cuda::DriverApi* driver, cuda::driver_api());
  CHORD_TRY(cuda::Context context, cuda::retain_primary_context(ordinal));
  CHORD_TRY(const cuda::Device device, cuda::current_device());
  CHORD_TRY(Engine engine, Engine::create(std::move(options)));
  CHORD_TRY(cuda::OwnedStream stream, cuda::OwnedStream::create());
  CHORD_TRY(std::unique_ptr<DeviceCode> code, DeviceCode::create(engine));
  CHORD_TRY(code->load(device.arch));
  return std::make_unique<Rig>(Rig{std::move(context), device, driver, std::move(engine),
                                   std::move(stream), std::move(code)});
}

}  // namespace chord::bench
