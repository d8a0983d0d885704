// Flags that name a deployment: a model and its shard, roles, architectures, families and rows.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "chord/descriptor.h"
#include "chord/status.h"
#include "tools/cli_model.h"

namespace chord::tools {

struct DeploymentFlags {
  ModelFlags model;
  std::string role = "decode";
  std::vector<std::string> archs, families;
  std::string rows;
  int num_sms = 0;

  bool any() const { return model.any(); }
};

void add_deployment_flags(CLI::App& app, DeploymentFlags& flags);
Result<Deployment> deployment_of(const DeploymentFlags& flags);

}  // namespace chord::tools
