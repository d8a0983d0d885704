// Explanations and tables as JSON: the form that programs read. The field names of `schedule` are
// those of the golden schedules, and a family's object has only the fields that the family has.
// Knows values, not where they came from: no engine, no cache, no GPU.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "chord/engine.h"

namespace chord {

// Both projections of a layer over all rows. One routing serves both, so a down row carries the
// block_m that gate/up has for the same rows.
struct LayerTable {
  ScheduleTable gate_up;
  ScheduleTable down;
};

// Splits down's rows where gate/up changes its block_m.
Result<LayerTable> layer_table(const Engine& engine, const LayerDescriptor& layer);

nlohmann::ordered_json json_of(const Explanation& explanation);
nlohmann::ordered_json json_of(const LayerExplanation& layer);
nlohmann::ordered_json json_of(const ScheduleTable& table);
nlohmann::ordered_json json_of(const LayerTable& table);
nlohmann::ordered_json json_of(const Error& error);  // {"error": {code, asked, found, help}}

// Indented text; bytes that are not UTF-8 become U+FFFD instead of an exception.
std::string text_of(const nlohmann::ordered_json& json);

std::string to_json(const Explanation& explanation);
std::string to_json(const LayerExplanation& layer);
std::string to_json(const ScheduleTable& table);
std::string to_json(const LayerTable& table);

}  // namespace chord
