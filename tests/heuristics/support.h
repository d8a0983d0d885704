// What the solver's tests share: descriptors, golden files, readable failures.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "heuristics/solver.h"

namespace chord::heuristics {

inline std::string golden_text(const std::string& file) {
  std::ifstream stream(std::string(CHORD_SOURCE_DIR "/tests/golden/") + file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline GemmDescriptor indexed(const std::string& profile, std::int64_t n, std::int64_t k,
                              std::int64_t experts, std::int64_t rows) {
  GemmDescriptor d;
  d.n = n;
  d.k = k;
  d.experts = experts;
  d.rows = rows;
  d.profile = profile;
  if (profile.starts_with("blackwell")) d.arch = Architecture::sm_100a;
  return d;
}

inline GemmDescriptor masked(std::int64_t n, std::int64_t k, std::int64_t experts,
                             std::int64_t expected_m) {
  GemmDescriptor d;
  d.family = Family::grouped_masked;
  d.n = n;
  d.k = k;
  d.experts = experts;
  d.max_m = 256;
  d.expected_m = expected_m;
  return d;
}

inline GemmDescriptor contiguous(std::int64_t n, std::int64_t k, std::int64_t experts,
                                 std::int64_t rows) {
  GemmDescriptor d;
  d.family = Family::grouped_contiguous;
  d.n = n;
  d.k = k;
  d.experts = experts;
  d.rows = rows;
  return d;
}

inline Overrides pin(std::optional<int> Overrides::*field, int value, Overrides overrides = {}) {
  overrides.*field = value;
  return overrides;
}

template <class Value>
std::string error_text(const Result<Value>& result) {
  return result.ok() ? "no error" : result.error().message();
}

// The error is there and its message names what it has to.
#define EXPECT_REFUSED(result, ...)                                                 \
  do {                                                                              \
    const auto& refused_result = (result);                                          \
    ASSERT_FALSE(refused_result.ok());                                              \
    const std::string refused_text = refused_result.error().message();              \
    for (const std::string& part : std::initializer_list<std::string>{__VA_ARGS__}) \
      EXPECT_NE(refused_text.find(part), std::string::npos)                         \
          << "'" << part << "' is not in: " << refused_text;                        \
  } while (false)

inline std::string text_of(const PublishedSchedule& s) {
  nlohmann::ordered_json json{{"block_m", s.block_m},
                              {"block_n", s.block_n},
                              {"block_k", s.block_k},
                              {"num_stages", s.num_stages}};
  if (s.ctas_per_sm) json["ctas_per_sm"] = *s.ctas_per_sm;
  if (s.swap_ab) json["swap_ab"] = *s.swap_ab;
  if (s.stream_k) json["stream_k"] = *s.stream_k;
  if (s.cluster_m) json["cluster_m"] = *s.cluster_m;
  if (s.cluster_n) json["cluster_n"] = *s.cluster_n;
  if (s.smem_bytes) json["smem_bytes"] = *s.smem_bytes;
  return json.dump();
}

inline bool has_reason(const Decision& decision, const std::string& rule) {
  for (const Reason& reason : decision.reasons)
    if (reason.rule == rule) return true;
  return false;
}

}  // namespace chord::heuristics
