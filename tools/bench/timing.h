// Times one launch between two events, the L2 flushed before each, and sums the samples up.
#pragma once

#include <functional>
#include <vector>

#include "tools/bench/rig.h"

namespace chord::bench {

// How the L2 is emptied before every timed launch: by writing 256 MB (its dirty lines drain inside
// the timed launch, as in the published tables), or by reading 256 MB after that write.
enum class Flush { write, read };

const char* name(Flush flush);
Result<Flush> parse_flush(std::string_view text);

struct Sample {
  double median_us = 0;
  double mean_us = 0;
  double spread_us = 0;  // interquartile range
  int count = 0;
};

Sample summarise(std::vector<double> times_us);

using Launch = std::function<Status(cuda::CUstream)>;

class Timer {
 public:
  static Result<Timer> create(Rig& rig);

  // A tenth as many launches run first, untimed.
  Result<Sample> time(const Launch& launch, Flush flush, int iterations);

 private:
  explicit Timer(Rig& rig) : rig_(&rig) {}
  Status empty_l2(Flush flush);

  Rig* rig_;
  cuda::DeviceBuffer written_, read_, sink_;
};

// What `launch` enqueues, captured once and replayed.
class Graph {
 public:
  static Result<Graph> capture(Rig& rig, const Launch& launch);
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&&) = delete;
  ~Graph();

  Status launch(cuda::CUstream stream) const;

 private:
  Graph(const cuda::DriverApi* driver, cuda::CUgraphExec exec) : driver_(driver), exec_(exec) {}

  const cuda::DriverApi* driver_;
  cuda::CUgraphExec exec_;
};

}  // namespace chord::bench
