// What a PreparedKernel holds: the decision, the loaded function and what a launch needs.
#pragma once

#include "chord/engine.h"
#include "src/launch/launch.h"
#include "src/launch/parameters.h"
#include "src/module/module.h"

namespace chord {

struct PreparedKernel::State {
  Decision decision;
  KernelFacts facts;
  std::string key;
  launch::LaunchShape shape;
  std::shared_ptr<const module::LoadedModule> module;
  const cuda::DriverApi* driver = nullptr;

  launch::Grid grid(bool programmatic_dependent_launch) const {
    return {static_cast<unsigned>(shape.ctas), static_cast<unsigned>(facts.threads),
            static_cast<unsigned>(facts.shared_bytes), programmatic_dependent_launch};
  }
};

}  // namespace chord
