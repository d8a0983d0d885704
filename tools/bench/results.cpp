// JSON of a run, and merging it into the results file.
#include "tools/bench/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>

#include "src/base/posix_file_system.h"
#include "src/explain.h"

namespace chord::bench {
namespace {

// Times that a write-flush run of the same kernel leaves alone.
constexpr const char* kFurtherFields[] = {"read_flush_us",       "read_flush_spread_us",
                                          "read_flush_read_us",  "graph_us",
                                          "published_policy_us", "cublas_us"};
constexpr const char* kSizeFields[] = {"tokens_per_gpu", "tokens_total", "rows_per_expert",
                                       "tokens_per_expert"};

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json rounded(double value) { return std::round(value * 1000) / 1000; }

void add_times(Json& row, const Measurement& m) {
  row["median_us"] = m.time ? rounded(m.time->median_us) : Json(nullptr);
  row["mean_us"] = m.time ? rounded(m.time->mean_us) : Json(nullptr);
  row["spread_us"] = m.time ? rounded(m.time->spread_us) : Json(nullptr);
  row["read_us"] = m.read ? rounded(m.read->median_us) : Json(nullptr);
  if (m.time && m.read) {
    row["tb_s"] = rounded(m.bytes / m.time->median_us * 1e-6);
    row["tflop_s"] = rounded(m.operations / m.time->median_us * 1e-6);
    row["share_of_read"] = rounded(m.read->median_us / m.time->median_us);
  }
  if (m.graph) row["graph_us"] = rounded(m.graph->median_us);
  if (m.read_flush_time) row["read_flush_us"] = rounded(m.read_flush_time->median_us);
  if (m.read_flush_time) row["read_flush_spread_us"] = rounded(m.read_flush_time->spread_us);
  if (m.read_flush_read) row["read_flush_read_us"] = rounded(m.read_flush_read->median_us);
  if (m.published_policy) row["published_policy_us"] = rounded(m.published_policy->median_us);
  row["cublas_us"] = m.cublas ? rounded(m.cublas->median_us) : Json(nullptr);
  if (!m.cublas) row["cublas_missing"] = m.cublas_missing;
}

void add_ablations(Json& row, const Measurement& m) {
  for (const auto& [ablation, time] : m.ablations)
    row["ablation"][name(ablation)] = {
        {"median_us", rounded(time.median_us)},
        {"spread_us", rounded(time.spread_us)},
        {"share_of_read", rounded(m.read->median_us / time.median_us)}};
}

}  // namespace

Json json_of(const Measurement& m, const RunHeader& header) {
  Explanation explanation;
  explanation.decision = m.decision;
  explanation.shared_bytes = abi::shared_bytes(m.decision.kernel);
  explanation.threads = abi::threads(m.decision.kernel);
  const Json explained = chord::json_of(explanation);
  Json row{{"profile", m.one.profile},
           {"family", chord::name(m.one.family)},
           {"projection", m.one.projection},
           {"n", m.one.n},
           {"k", m.one.k},
           {"experts", m.one.experts},
           {"top_k", m.one.top_k},
           {m.one.size_key, m.one.size},
           {"routed_rows", m.one.routed_rows},
           {"draw", m.one.draw}};
  add_times(row, m);
  add_ablations(row, m);
  row["rel_l2"] = m.comparison.rel_l2;
  row["worst_row_l2"] = m.comparison.worst_row_l2;
  row["worst_expert_l2"] = m.comparison.worst_expert_l2;
  if (const std::string violation = m.comparison.violation(); !violation.empty())
    row["wrong"] = violation;
  row["chord_us"] = or_null(m.one.chord_us);
  row["humming_us"] = or_null(m.one.humming_us);
  row["schedule"] = explained.at("schedule");
  row["kernel"] = explained.at("kernel");
  row["origin"] = explained.at("origin");
  row["key"] = m.key;
  row["kernel_digest"] = m.kernel_digest;
  row["date"] = header.date;
  return row;
}

Json json_of(const RunHeader& header, const std::vector<Measurement>& measurements) {
  Json run{{"gpu", header.gpu},
           {"driver", header.driver},
           {"nvrtc", header.nvrtc},
           {"kernel_digest", header.kernel_digest},
           {"command", header.command},
           {"flush", name(header.flush)},
           {"policy", chord::name(header.policy)},
           {"date", header.date},
           {"rows", Json::array()}};
  for (const Measurement& m : measurements) run["rows"].push_back(json_of(m, header));
  return run;
}

std::string row_key(const Json& row) {
  std::string key;
  for (const char* field : {"profile", "projection", "n", "k", "experts", "draw"})
    key += (row.contains(field) ? row[field].dump() : "?") + " ";
  for (const char* field : kSizeFields)
    if (row.contains(field)) key += fmt::format("{} {}", field, row[field].dump());
  return key;
}

namespace {

Error refused(const std::string& found, const std::string& help) {
  return Error{ErrorCode::invalid_argument, "merge a run into a results file", found, help};
}

Json* find_row(Json& rows, const std::string& key) {
  for (Json& row : rows)
    if (row_key(row) == key) return &row;
  return nullptr;
}

Status check_run(const Json& file, const Json& run) {
  if (run["flush"] == "read" && run["policy"] == "published")
    return refused("read flush with the published policy", "a row has no field for both");
  if (file.contains("gpu") && file["gpu"] != run["gpu"])
    return refused(
        fmt::format("the file is of {}, the run of {}", file["gpu"].dump(), run["gpu"].dump()),
        "keep a file per GPU");
  for (const Json& row : run["rows"]) {
    if (row.contains("wrong")) return refused(row_key(row) + " is wrong", "make it right first");
    if (row["median_us"].is_null()) return refused(row_key(row) + " has no time", "");
  }
  return {};
}

// A row measured as the file wants it.
Json replaced(const Json* old, Json row) {
  const std::string digest = row.value("kernel_digest", "");
  if (old == nullptr || old->value("kernel_digest", "") != digest) return row;
  for (const char* field : kFurtherFields) {
    const bool is_new = row.contains(field) && !row[field].is_null();
    if (is_new || !old->contains(field) || (*old)[field].is_null()) continue;
    row[field] = (*old)[field];
    if (std::string_view(field) == "cublas_us") row.erase("cublas_missing");
  }
  return row;
}

Status add_further(Json* old, const Json& row, bool is_read_flush) {
  if (old == nullptr || old->value("kernel_digest", "") != row.value("kernel_digest", ""))
    return refused(row_key(row) + " has no row of this kernel yet",
                   "measure with write flush and the measured policy first");
  if (is_read_flush) {
    (*old)["read_flush_us"] = row["median_us"];
    (*old)["read_flush_spread_us"] = row["spread_us"];
    (*old)["read_flush_read_us"] = row["read_us"];
  } else {
    (*old)["published_policy_us"] = row["median_us"];
  }
  return {};
}

}  // namespace

Result<Json> merge(Json file, const Json& run) {
  CHORD_TRY(check_run(file, run));
  Json rows = file.contains("rows") ? file["rows"] : Json::array();
  const bool is_read_flush = run["flush"] == "read";
  const bool is_main = !is_read_flush && run["policy"] == "measured";
  for (const Json& row : run["rows"]) {
    Json* old = find_row(rows, row_key(row));
    if (!is_main) {
      CHORD_TRY(add_further(old, row, is_read_flush));
    } else if (old != nullptr) {
      *old = replaced(old, row);
    } else {
      rows.push_back(row);
    }
  }
  if (is_main) {
    file = run;
    file["about"] = "Written by chord-bench --merge: one row per case, the newest of each.";
  }
  file["rows"] = std::move(rows);
  return file;
}

Result<Json> read_results(const std::string& path) {
  base::PosixFileSystem posix;
  FileSystem& files = posix;
  std::string bytes;
  const FileError error = files.read(path, bytes);
  if (error && error.error_number == ENOENT) return Json::object();
  if (error) return Error{ErrorCode::io_error, "read " + path, error.message(), ""};
  Json file = Json::parse(bytes, nullptr, false);
  const bool is_results = file.is_object() && file.contains("rows") && file["rows"].is_array();
  if (is_results) return file;
  return Error{ErrorCode::invalid_argument, "read " + path, "not a results file of chord-bench",
               "give --merge a file that chord-bench wrote, or a new one"};
}

Status write_results(const std::string& path, const Json& file) {
  base::PosixFileSystem posix;
  FileSystem& files = posix;
  const std::string temporary = path + ".new";
  const auto failed = [&](const FileError& error) {
    return Error{ErrorCode::io_error, "write " + path, error.message(), ""};
  };
  (void)files.remove(temporary);
  if (const FileError error = files.write_exclusive(temporary, text_of(file) + "\n"); error)
    return failed(error);
  if (const FileError error = files.rename(temporary, path); error) return failed(error);
  return {};
}

std::string driver_release(const std::string& version_text) {
  std::size_t at = 0;
  while (at < version_text.size()) {
    std::size_t end = version_text.find_first_of(" \n\t", at);
    end = std::min(end, version_text.size());
    const std::string word = version_text.substr(at, end - at);
    const bool is_release =
        std::count(word.begin(), word.end(), '.') >= 1 &&
        std::all_of(word.begin(), word.end(), [](char c) { return std::isdigit(c) || c == '.'; });
    if (is_release) return word;
    at = end + 1;
  }
  return "";
}

}  // namespace chord::bench
