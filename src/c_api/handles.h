// What the opaque pointers of the C face point to.
#pragma once

#include <atomic>

#include "chord/chord.h"
#include "chord/engine.h"

struct chord_handle {
  chord::Engine engine;
  int device = -1;  // below 0: any
};

struct chord_plan {
  chord::Decision decision;
};

// Knows no handle: it outlives the one that made it.
struct chord_kernel {
  chord::PreparedKernel prepared;
  int device = -1;
  std::atomic<int> owners{1};
};

struct chord_layer_kernels {
  chord::LayerKernels loaded;
  int device = -1;
};

struct chord_report {
  chord::PrewarmReport report;
};
