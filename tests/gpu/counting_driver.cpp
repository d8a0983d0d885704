// One counting function per entry of the table.
#include "tests/gpu/counting_driver.h"

#include <array>

namespace chord::gpu_test {
namespace {

constexpr int kMost = 128;
std::array<const char*, kMost> names{};
std::array<int, kMost> calls{};
LastLaunch launched;

// Entry `Index` of the table, whatever its parameters.
template <int Index, class Function>
struct Counted;
template <int Index, class Value, class... Parameters>
struct Counted<Index, Value (*)(Parameters...)> {
  static inline Value (*real)(Parameters...) = nullptr;
  static Value call(Parameters... parameters) {
    ++calls[Index];
    return real(parameters...);
  }
};

template <int Index, class Function>
void count(Function& entry, const char* name) {
  static_assert(Index < kMost);
  names[Index] = name;
  Counted<Index, Function>::real = entry;
  entry = &Counted<Index, Function>::call;
}

cuda::CUresult (*counted_launch)(const cuda::CUlaunchConfig*, cuda::CUfunction, void**,
                                 void**) = nullptr;

cuda::CUresult remember_launch(const cuda::CUlaunchConfig* config, cuda::CUfunction function,
                               void** parameters, void** extra) {
  launched = {
      config->numAttrs,
      config->numAttrs == 1 &&
          config->attrs[0].id == cuda::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
          config->attrs[0].value.programmaticStreamSerializationAllowed == 1};
  return counted_launch(config, function, parameters, extra);
}

cuda::DriverApi count_all(cuda::DriverApi api) {
  constexpr int kFirst = __COUNTER__ + 1;
#define CHORD_COUNT_ENTRY(member, symbol, parameters) \
  count<__COUNTER__ - kFirst>(api.member, symbol);
  CHORD_DRIVER_ENTRIES(CHORD_COUNT_ENTRY)
#undef CHORD_COUNT_ENTRY
  counted_launch = api.launch_kernel_ex;
  api.launch_kernel_ex = &remember_launch;
  return api;
}

}  // namespace

std::map<std::string, int> driver_calls() {
  std::map<std::string, int> made;
  for (int i = 0; i < kMost; ++i)
    if (calls[i] != 0) made[names[i]] = calls[i];
  return made;
}

void reset_driver_calls() { calls = {}; }

LastLaunch last_launch() { return launched; }

const cuda::DriverApi& counting_driver(const cuda::DriverApi& real) {
  static const cuda::DriverApi table = count_all(real);
  return table;
}

PreparedKernel counted(const PreparedKernel& kernel) {
  auto state = std::make_shared<PreparedKernel::State>(kernel.state());
  state->driver = &counting_driver(*state->driver);
  return PreparedKernel(std::move(state));
}

}  // namespace chord::gpu_test
