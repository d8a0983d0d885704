// Reading, choosing and planning of cases.
#include "tools/bench/bench_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/bench/embedded.h"

namespace chord::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSizeKeys[] = {"tokens_per_gpu", "tokens_total", "rows_per_expert",
                                     "tokens_per_expert"};

std::optional<double> optional_number(const Json& json, const char* field) {
  if (!json.contains(field) || json[field].is_null()) return std::nullopt;
  return json[field].get<double>();
}

void read_size(const Json& json, BenchCase& one) {
  for (const char* key : kSizeKeys) {
    if (!json.contains(key)) continue;
    one.size_key = key;
    one.size = json[key].get<std::int64_t>();
  }
}

// Throws what the JSON library throws; the caller turns that into an error.
Result<BenchCase> read_case(const Json& json) {
  BenchCase one;
  json.at("set").get_to(one.set);
  json.at("profile").get_to(one.profile);
  CHORD_TRY(one.family, parse_family(json.at("family").get<std::string>()));
  json.at("projection").get_to(one.projection);
  json.at("n").get_to(one.n);
  json.at("k").get_to(one.k);
  json.at("experts").get_to(one.experts);
  json.at("top_k").get_to(one.top_k);
  json.at("routed_rows").get_to(one.routed_rows);
  json.at("draw").get_to(one.draw);
  json.at("counts").get_to(one.counts);
  for (const Json& arch : json.at("archs")) {
    CHORD_TRY(const Architecture parsed, parse_architecture(arch.get<std::string>()));
    one.archs.push_back(parsed);
  }
  one.chord_us = optional_number(json, "chord_us");
  one.humming_us = optional_number(json, "humming_us");
  one.max_m = json.value("max_m", std::int64_t{0});
  if (json.contains("routed_by")) {
    json["routed_by"].at(0).get_to(one.routed_by_n);
    json["routed_by"].at(1).get_to(one.routed_by_k);
  }
  read_size(json, one);
  return one;
}

}  // namespace

bool BenchCase::runs_on(Architecture arch) const {
  return std::find(archs.begin(), archs.end(), arch) != archs.end();
}

std::string BenchCase::label() const {
  return fmt::format("{} {} {}x{} e{} {} {} {}", profile, projection, n, k, experts, size_key, size,
                     draw);
}

Result<std::vector<BenchCase>> parse_cases(std::string_view json, std::string_view origin) {
  const auto broken = [&](const std::string& found) {
    return Error{ErrorCode::corrupt, fmt::format("read the cases of {}", origin), found, ""};
  };
  std::vector<BenchCase> cases;
  try {
    const Json file = Json::parse(json);
    for (const Json& entry : file.at("cases")) {
      CHORD_TRY(BenchCase one, read_case(entry));
      if (one.size_key.empty()) return broken(one.label() + " has no size");
      cases.push_back(std::move(one));
    }
  } catch (const nlohmann::json::exception& error) {
    return broken(error.what());
  }
  return cases;
}

Result<std::vector<BenchCase>> embedded_cases() {
  std::vector<BenchCase> all;
  for (std::size_t i = 0; i < embedded_file_count; ++i) {
    const EmbeddedFile& file = embedded_files[i];
    if (std::strncmp(file.name, "tools/cases/", 12) != 0) continue;
    CHORD_TRY(const std::vector<BenchCase> cases, parse_cases({file.text, file.size}, file.name));
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

Result<std::vector<BenchCase>> choose_cases(const std::vector<BenchCase>& cases,
                                            const std::string& set,
                                            const std::vector<std::string>& parts) {
  std::vector<BenchCase> chosen;
  for (const BenchCase& one : cases) {
    const std::string label = one.label();
    const bool named = std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return label.find(part) != std::string::npos;
    });
    if ((set == "all" || set == one.set) && (parts.empty() || named)) chosen.push_back(one);
  }
  if (!chosen.empty()) return chosen;
  return Error{ErrorCode::invalid_argument,
               fmt::format("cases of set {} with '{}'", set, fmt::join(parts, "' or '")),
               fmt::format("none of {} cases", cases.size()), "chord-bench --list shows them all"};
}

Result<Decision> plan_case(const Engine& engine, const BenchCase& one, Architecture arch,
                           int num_sms) {
  GemmDescriptor descriptor;
  descriptor.family = one.family;
  descriptor.arch = arch;
  descriptor.num_sms = num_sms;
  descriptor.n = one.n;
  descriptor.k = one.k;
  descriptor.experts = one.experts;
  if (one.family == Family::grouped_masked) {
    descriptor.max_m = one.max_m;
    descriptor.expected_m = one.size;
  } else {
    descriptor.rows =
        one.family == Family::indexed ? one.routed_rows : routing_of(one, 0).source_rows;
  }
  if (one.family == Family::indexed) descriptor.profile = one.profile;
  if (one.routed_by_n != 0) {
    GemmDescriptor first = descriptor;
    first.n = one.routed_by_n;
    first.k = one.routed_by_k;
    // Kernel fields are pinned for this case, not for the one before; the blocks do not ask for
    // them.
    Options options = engine.options();
    options.overrides =
        Overrides{.block_m = options.overrides ? options.overrides->block_m : std::nullopt};
    CHORD_TRY(const Engine plain, Engine::create(options));
    CHORD_TRY(const Decision planned, plain.plan(first));
    descriptor.block_m = planned.schedule.block_m;
  }
  return engine.plan(descriptor);
}

Routing routing_of(const BenchCase& one, int block_m) {
  if (one.family == Family::grouped_contiguous)
    return one.draw == "exact" ? padded_rows(one.counts)
                               : ragged_rows(one.counts, abi::ContiguousSpelling::offsets64, 0);
  if (one.family == Family::grouped_masked) return masked(one.counts, one.max_m);
  const auto chosen = random_top_k(one.routed_rows / one.top_k, one.experts, one.top_k);
  return indexed(chosen, one.experts, one.projection == "down" ? 1 : one.top_k, block_m);
}

}  // namespace chord::bench
