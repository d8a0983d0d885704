// What a descriptor may hold. Runs before any rule, so that rules need no checks of their own.
#pragma once

#include "chord/descriptor.h"
#include "chord/status.h"
#include "heuristics/profile.h"

namespace chord::heuristics {

inline constexpr std::int64_t kMaxExpertsPerGpu = 16384;
inline constexpr int kMaxSms = 4096;

// Whether the descriptor's rows (or expected_m) are a question or run over a table's whole axis.
enum class RowsField { one_size, whole_axis };

// The descriptor with its defaults filled in, or the first field that can not be.
Result<GemmDescriptor> completed(const ProfileSet& profiles, const GemmDescriptor& descriptor,
                                 RowsField rows);

// "indexed 4096x7168, 48 experts, 160 rows"
std::string label(const GemmDescriptor& descriptor);

// The field that a table's axis stands for: expected_m (grouped_masked) or rows.
std::int64_t axis_value(const GemmDescriptor& descriptor);
GemmDescriptor with_axis_value(GemmDescriptor descriptor, std::int64_t value);

}  // namespace chord::heuristics
