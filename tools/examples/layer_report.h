// The report of a session as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/examples/layer_session.h"

namespace chord::examples {

std::string text_of(const SessionReport& report, const SessionOptions& options,
                    const std::string& label);
nlohmann::ordered_json json_of(const SessionReport& report, const SessionOptions& options,
                               const std::string& label);
// The plan alone, with what was found in the checkpoint.
nlohmann::ordered_json json_of(const LayerPlan& plan);

}  // namespace chord::examples
