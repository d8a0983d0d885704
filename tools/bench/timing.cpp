// Events, flushes, graphs.
#include "tools/bench/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tools/bench/device/params.h"

namespace chord::bench {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{256} << 20;  // five times the L2 of an H200
constexpr int kMinWarmUps = 3;

// Between order statistics, linearly.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

const char* name(Flush flush) { return flush == Flush::write ? "write" : "read"; }

Result<Flush> parse_flush(std::string_view text) {
  if (text == "write") return Flush::write;
  if (text == "read") return Flush::read;
  return Error{ErrorCode::invalid_argument, fmt::format("flush '{}'", text), "not a way to flush",
               "write or read"};
}

Sample summarise(std::vector<double> times_us) {
  Sample sample;
  if (times_us.empty()) return sample;
  std::sort(times_us.begin(), times_us.end());
  sample.count = static_cast<int>(times_us.size());
  sample.median_us = quantile(times_us, 0.5);
  sample.mean_us = std::accumulate(times_us.begin(), times_us.end(), 0.0) / sample.count;
  sample.spread_us = quantile(times_us, 0.75) - quantile(times_us, 0.25);
  return sample;
}

Result<Timer> Timer::create(Rig& rig) {
  Timer timer(rig);
  CHORD_TRY(timer.written_, cuda::DeviceBuffer::allocate(kFlushBytes));
  CHORD_TRY(timer.read_, cuda::DeviceBuffer::allocate(kFlushBytes));
  CHORD_TRY(timer.sink_, cuda::DeviceBuffer::allocate(sizeof(u32)));
  CHORD_TRY(timer.read_.fill(0));
  return timer;
}

Status Timer::empty_l2(Flush flush) {
  const cuda::CUstream stream = rig_->stream.handle();
  CHORD_TRY(cuda::check(
      rig_->driver->memset_d32_async(written_.address(), 0, kFlushBytes / sizeof(u32), stream),
      "flush the L2 by a write"));
  if (flush == Flush::write) return {};
  ReadParams read{};
  read.from[0] = read_.pointer();
  read.chunks[0] = static_cast<i64>(kFlushBytes / 16);
  read.sink = static_cast<u32*>(sink_.pointer());
  return rig_->code->launch(Helper::read, kReadCtas, kReadThreads, &read, stream);
}

Result<Sample> Timer::time(const Launch& launch, Flush flush, int iterations) {
  const cuda::CUstream stream = rig_->stream.handle();
  const int warm_ups = std::max(kMinWarmUps, iterations / 10);
  CHORD_TRY(const cuda::Event begin, cuda::Event::create());
  CHORD_TRY(const cuda::Event end, cuda::Event::create());
  std::vector<double> times_us;
  for (int i = -warm_ups; i < iterations; ++i) {
    CHORD_TRY(empty_l2(flush));
    CHORD_TRY(begin.record(stream));
    CHORD_TRY(launch(stream));
    CHORD_TRY(end.record(stream));
    CHORD_TRY(end.synchronize());
    CHORD_TRY(const double ms, end.ms_since(begin));
    if (i >= 0) times_us.push_back(ms * 1000);
  }
  return summarise(std::move(times_us));
}

Result<Graph> Graph::capture(Rig& rig, const Launch& launch) {
  const cuda::DriverApi* driver = rig.driver;
  const cuda::CUstream stream = rig.stream.handle();
  CHORD_TRY(
      cuda::check(driver->stream_begin_capture(stream, cuda::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                  "begin a stream capture"));
  const Status launched = launch(stream);
  cuda::CUgraph graph = nullptr;
  const Status ended =
      cuda::check(driver->stream_end_capture(stream, &graph), "end a stream capture");
  cuda::CUgraphExec exec = nullptr;
  Status made;
  if (launched.ok() && ended.ok())
    made = cuda::check(driver->graph_instantiate(&exec, graph, 0), "instantiate a graph");
  if (graph != nullptr) driver->graph_destroy(graph);
  CHORD_TRY(launched);
  CHORD_TRY(ended);
  CHORD_TRY(made);
  return Graph(driver, exec);
}

Graph::Graph(Graph&& other) noexcept
    : driver_(other.driver_), exec_(std::exchange(other.exec_, nullptr)) {}

Graph::~Graph() {
  if (exec_ != nullptr) driver_->graph_exec_destroy(exec_);
}

Status Graph::launch(cuda::CUstream stream) const {
  return cuda::check(driver_->graph_launch(exec_, stream), "launch a graph");
}

}  // namespace chord::bench
