// Explanations and tables as text made to be read: one table with a column per projection, the
// reasons, what is not honoured, and the time against its floors. Plain ASCII, no colour.
#pragma once

#include <string>

#include "chord/engine.h"
#include "src/explain.h"

namespace chord {

std::string to_text(const Explanation& explanation);
std::string to_text(const LayerExplanation& layer);
std::string to_text(const ScheduleTable& table);
std::string to_text(const LayerTable& table);

}  // namespace chord
