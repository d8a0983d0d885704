// Measurements as JSON and as a table, and the file that keeps one row of every case. Knows no GPU.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/bench/measure.h"

namespace chord::bench {

using Json = nlohmann::ordered_json;

struct RunHeader {
  std::string gpu;
  std::string driver;
  std::string nvrtc;
  std::string kernel_digest;
  std::string command;
  Flush flush = Flush::write;
  Policy policy = Policy::measured;
  std::string date;
};

Json json_of(const RunHeader& header, const std::vector<Measurement>& measurements);
Json json_of(const Measurement& measurement, const RunHeader& header);

// What names a row of a results file: profile, projection, n, k, experts, draw and size.
std::string row_key(const Json& row);

// Puts the rows of a run into a results file (an empty object for none yet): exactly one row per
// key. A run with write flush and the measured policy replaces a row, but keeps further fields that
// were measured with the same kernel; a run with read flush or the published policy adds its time
// as a further field of a row that is there. Refuses the rows of another GPU, wrong results, and
// rows without a time.
Result<Json> merge(Json file, const Json& run);

Result<Json> read_results(const std::string& path);  // an empty object if there is no such file
// Replaces the file in one step, so that a reader never sees half of it.
Status write_results(const std::string& path, const Json& file);

std::string table_head();
std::string table_line(const Measurement& measurement);
std::string table_foot(const std::vector<Measurement>& measurements);

// The same for a run with ablations: times of the kernel's parts, each with its share of the read.
std::string ablation_head();
std::string ablation_line(const Measurement& measurement);
std::string ablation_foot(const std::vector<Measurement>& measurements);

// "580.159.03" out of the text of /proc/driver/nvidia/version; empty if it is not there.
std::string driver_release(const std::string& version_text);

}  // namespace chord::bench
