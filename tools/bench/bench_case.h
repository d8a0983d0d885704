// Bench cases: data, embedded from tools/cases/*.json. Reading and choosing them needs no GPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chord/engine.h"
#include "tools/bench/routing.h"

namespace chord::bench {

struct BenchCase {
  std::string set;  // "decode" or "prefill"
  std::string profile;
  Family family = Family::indexed;
  std::string projection;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t experts = 0;
  int top_k = 1;
  std::string size_key;  // "tokens_per_gpu", "tokens_total", "rows_per_expert", "tokens_per_expert"
  std::int64_t size = 0;
  std::int64_t routed_rows = 0;
  std::string draw;  // "random", "exact", "drawn"
  std::vector<Architecture> archs;
  std::optional<double> chord_us, humming_us;     // published
  std::int64_t max_m = 0;                         // grouped_masked
  std::int64_t routed_by_n = 0, routed_by_k = 0;  // whose block_m the routing has; 0: its own
  std::vector<std::int64_t> counts;               // rows per expert

  bool runs_on(Architecture arch) const;
  // "h200_decode_ep8 gate_up 4096x7168 e48 tokens_per_gpu 20 random": --cases looks for parts of
  // it.
  std::string label() const;
};

Result<std::vector<BenchCase>> parse_cases(std::string_view json, std::string_view origin);

// All embedded cases.
Result<std::vector<BenchCase>> embedded_cases();

// Those of a set ("all": of any) whose label has one of `parts` (none: any). Refuses a choice that
// leaves none.
Result<std::vector<BenchCase>> choose_cases(const std::vector<BenchCase>& cases,
                                            const std::string& set,
                                            const std::vector<std::string>& parts);

// The plan of a case; a down projection takes the block_m of the projection that it is routed by.
Result<Decision> plan_case(const Engine& engine, const BenchCase& one, Architecture arch,
                           int num_sms);

Routing routing_of(const BenchCase& one, int block_m);

}  // namespace chord::bench
