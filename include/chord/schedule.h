// What was decided, and why. A schedule has two parts: the published fields (what the published
// rules answer; names as in the golden schedules) and the kernel fields of ours (what the code is
// built from, chord/abi/schedule.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chord/abi/schedule.h"
#include "chord/descriptor.h"
#include "chord/export.h"

namespace chord {

// A field that a family does not have is empty.
struct PublishedSchedule {
  int block_m = 0;
  int block_n = 0;
  int block_k = 0;
  int num_stages = 0;
  std::optional<int> ctas_per_sm{};  // indexed
  std::optional<bool> swap_ab{};     // indexed
  std::optional<bool> stream_k{};    // indexed
  std::optional<int> cluster_m{};    // grouped
  std::optional<int> cluster_n{};    // grouped
  std::optional<std::int64_t>
      smem_bytes;  // grouped; of the published kernel, never what a launch asks

  bool operator==(const PublishedSchedule&) const = default;
};

using KernelSchedule = abi::Schedule;

CHORD_API const char* name(abi::Mainloop);
CHORD_API const char* name(abi::Dequantisation);
CHORD_API const char* name(abi::Split);
CHORD_API const char* name(abi::Release);
CHORD_API const char* name(abi::Epilogue);
CHORD_API Result<abi::Mainloop> parse_mainloop(std::string_view);
CHORD_API Result<abi::Dequantisation> parse_dequantisation(std::string_view);
CHORD_API Result<abi::Split> parse_split(std::string_view);
CHORD_API Result<abi::Release> parse_release(std::string_view);
CHORD_API Result<abi::Epilogue> parse_epilogue(std::string_view);

enum class Origin { override_value, measured, rule, fallback };  // "override" is a keyword

CHORD_API const char* name(Origin origin);  // "override", "measured", "rule", "fallback"

enum class Policy { measured, published };

CHORD_API const char* name(Policy policy);
CHORD_API Result<Policy> parse_policy(std::string_view);

struct Reason {
  std::string rule;  // a stable short name: "tokens_per_expert_below_80"
  std::string text;  // the sentence with its numbers
};

struct Rejected {
  std::string candidate;  // "cluster 2x1"
  std::string reason;
};

// A published field that today's kernel does not honour.
struct Unhonoured {
  std::string field;
  std::string published;
  std::string kernel;
  std::string reason;
};

struct Decision {
  GemmDescriptor descriptor;  // with every default filled in
  PublishedSchedule schedule;
  KernelSchedule kernel;
  Origin origin = Origin::rule;
  std::vector<Reason> reasons;
  std::vector<Rejected> rejected;
  std::vector<Unhonoured> unhonoured;
};

struct TableRow {  // rows in (min_rows, max_rows]; grouped_masked: expected_m
  std::int64_t min_rows = 0;
  std::int64_t max_rows = 0;
  PublishedSchedule schedule;
  KernelSchedule kernel;
  Origin origin = Origin::rule;
};

inline constexpr std::int64_t kMaxTableRows = std::int64_t{1} << 30;

struct ScheduleTable {
  GemmDescriptor descriptor;
  std::vector<TableRow> rows;  // cover (0, kMaxTableRows] without a hole

  CHORD_API const TableRow& at(std::int64_t rows_or_expected_m) const;
};

// gate/up and down share one routing, hence one block_m: the down projection takes gate/up's.
struct LayerPlan {
  Decision gate_up;
  Decision down;
  int block_m = 0;
};

}  // namespace chord
