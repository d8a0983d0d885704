// Profile files to values. Refuses what it does not know: a misspelt field, a hole between rows, a
// measured row without evidence.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "chord/abi/problem.h"
#include "heuristics/json_fields.h"
#include "heuristics/pins.h"
#include "heuristics/profile.h"

namespace chord::heuristics {
namespace {

constexpr std::int64_t kMaxExperts = 16384;

// An enum's own error, with file and field in front of it.
Error not_a_name(const Fields& fields, const char* field, const std::string& text,
                 const Error& error) {
  return fields.wrong(field, fmt::format("found \"{}\": {}", text, error.found), error.help);
}

template <class Value>
Result<Value> named(const Fields& fields, const char* field,
                    Result<Value> (*parse)(std::string_view)) {
  CHORD_TRY(const std::string text, fields.text(field));
  Result<Value> value = parse(text);
  if (value.ok()) return value;
  return not_a_name(fields, field, text, value.error());
}

template <class Value>
Result<std::vector<Value>> all_named(const Fields& fields, const char* field,
                                     Result<Value> (*parse)(std::string_view)) {
  CHORD_TRY(const std::vector<std::string> texts, fields.texts(field));
  std::vector<Value> values;
  for (const std::string& text : texts) {
    Result<Value> value = parse(text);
    if (!value.ok()) return not_a_name(fields, field, text, value.error());
    values.push_back(*value);
  }
  return values;
}

Result<ShardAxis> parse_axis(std::string_view text) {
  for (const ShardAxis axis : {ShardAxis::expert, ShardAxis::tensor})
    if (text == name(axis)) return axis;
  return Error{ErrorCode::invalid_argument, fmt::format("axis '{}'", text), "no such axis",
               "one of: ep, tp"};
}

Result<int> pin_value(const Fields& fields, const PinField& pin) {
  CHORD_TRY(const std::int64_t value, fields.integer(pin.field, pin.range.first, pin.range.last));
  if (!pin.range.holds(static_cast<int>(value)))
    return fields.wrong(pin.field, fmt::format("found {}", value),
                        "it has to be " + describe(pin.range));
  return static_cast<int>(value);
}

template <class Pins>
Status read_pins(const Fields& fields, const Pins& pins, Overrides& into) {
  for (const PinField& pin : pins)
    if (fields.has(pin.field)) {
      CHORD_TRY(into.*pin.member, pin_value(fields, pin));
    }
  return {};
}

struct RowsRange {
  std::int64_t min_rows = 0;
  std::int64_t max_rows = kMaxTableRows;
};

Result<RowsRange> rows_range(const Fields& fields) {
  RowsRange range;
  CHORD_TRY(range.min_rows, fields.integer_or("min_rows", 0, 0, kMaxTableRows - 1));
  CHORD_TRY(range.max_rows,
            fields.integer_or("max_rows", kMaxTableRows, range.min_rows + 1, kMaxTableRows));
  return range;
}

enum class States { block_m_and_block_n, block_n, block_m };

// Every field of an indexed schedule has to be stated, but block_m where a rule gives it and
// block_n where it follows from N.
Result<PublishedSchedule> indexed_schedule(const Fields& fields, States states) {
  CHORD_TRY(fields.only({"block_m", "block_n", "block_k", "num_stages", "ctas_per_sm", "swap_ab",
                         "stream_k", "why"}));
  const bool states_block_m = states != States::block_n;
  const bool states_block_n = states != States::block_m;
  if (fields.has("block_m") && !states_block_m)
    return fields.wrong("block_m", "block_m_rule already gives it", "leave it out");
  if (fields.has("block_n") && !states_block_n)
    return fields.wrong("block_n", "it follows from N", "leave it out");
  PublishedSchedule schedule;
  if (states_block_m) {
    CHORD_TRY(schedule.block_m, pin_value(fields, kPublishedPins[0]));
  }
  if (states_block_n) {
    CHORD_TRY(schedule.block_n, pin_value(fields, kPublishedPins[1]));
  }
  CHORD_TRY(schedule.block_k, pin_value(fields, kPublishedPins[2]));
  CHORD_TRY(schedule.num_stages, pin_value(fields, kPublishedPins[5]));
  CHORD_TRY(const std::int64_t ctas, fields.integer("ctas_per_sm", 1, 8));
  schedule.ctas_per_sm = static_cast<int>(ctas);
  CHORD_TRY(schedule.swap_ab, fields.boolean("swap_ab"));
  CHORD_TRY(schedule.stream_k, fields.boolean("stream_k"));
  return schedule;
}

Result<ProfileRow> profile_row(const Fields& fields, BlockMRule rule) {
  CHORD_TRY(fields.only({"min_rows", "max_rows", "min_block_m", "max_block_m", "schedule", "why"}));
  ProfileRow row;
  CHORD_TRY(const RowsRange range, rows_range(fields));
  row.min_rows = range.min_rows;
  row.max_rows = range.max_rows;
  CHORD_TRY(const std::int64_t least, fields.integer_or("min_block_m", 8, 8, 256));
  CHORD_TRY(const std::int64_t most, fields.integer_or("max_block_m", 256, least, 256));
  row.min_block_m = static_cast<int>(least);
  row.max_block_m = static_cast<int>(most);
  const bool by_row = rule == BlockMRule::by_row;
  if (by_row && (fields.has("min_block_m") || fields.has("max_block_m")))
    return fields.wrong("min_block_m", "the rows of a by_row shape are found by rows alone",
                        "leave it out");
  CHORD_TRY(const Fields schedule, fields.object("schedule"));
  CHORD_TRY(row.schedule,
            indexed_schedule(schedule, by_row ? States::block_m_and_block_n : States::block_n));
  CHORD_TRY(row.why, fields.text("why"));
  return row;
}

// Rows change at their own limits only, so one probe behind every limit sees every hole.
Status check_cover(const Fields& shape, const std::vector<ProfileRow>& rows) {
  std::set<std::int64_t> row_probes{1};
  for (const ProfileRow& row : rows)
    if (row.max_rows < kMaxTableRows) row_probes.insert(row.max_rows + 1);
  for (const ProfileRow& row : rows) row_probes.insert(row.min_rows + 1);
  for (const std::int64_t probe : row_probes)
    for (int block_m = 8; block_m <= 256; block_m += 8)
      if (std::none_of(rows.begin(), rows.end(),
                       [&](const ProfileRow& row) { return row.applies(probe, block_m); }))
        return shape.wrong("rows",
                           fmt::format("no row applies to {} rows with block_m {}", probe, block_m),
                           "the rows have to cover (0, 2^30] and block_m 8..256");
  return {};
}

Result<ProfileShape> profile_shape(const Fields& fields) {
  CHORD_TRY(fields.only({"projection", "n", "k", "experts", "block_m_rule", "rows"}));
  ProfileShape shape;
  CHORD_TRY(shape.projection, fields.text("projection"));
  if (shape.projection != "gate_up" && shape.projection != "down")
    return fields.wrong("projection", fmt::format("found \"{}\"", shape.projection),
                        "it has to be gate_up or down");
  CHORD_TRY(shape.n, fields.integer("n", 64, INT32_MAX));
  CHORD_TRY(shape.k, fields.integer("k", 64, INT32_MAX));
  if (!abi::is_legal_shape(shape.n, shape.k))
    return fields.wrong("n", fmt::format("found {} x {}", shape.n, shape.k),
                        "n and k have to be multiples of 64");
  if (fields.has("experts")) {
    CHORD_TRY(shape.experts, fields.integer("experts", 1, kMaxExperts));
  }
  CHORD_TRY(shape.block_m_rule, named(fields, "block_m_rule", parse_block_m_rule));
  CHORD_TRY(const std::vector<Fields> rows, fields.objects("rows"));
  for (const Fields& row : rows) {
    CHORD_TRY(ProfileRow parsed, profile_row(row, shape.block_m_rule));
    shape.rows.push_back(std::move(parsed));
  }
  CHORD_TRY(check_cover(fields, shape.rows));
  return shape;
}

Result<Evidence> evidence_of(const Fields& fields) {
  CHORD_TRY(fields.only({"gpu", "driver", "kernel_digest", "median_us", "date"}));
  Evidence evidence;
  CHORD_TRY(evidence.gpu, fields.text("gpu"));
  CHORD_TRY(evidence.driver, fields.text("driver"));
  CHORD_TRY(evidence.kernel_digest, fields.text("kernel_digest"));
  CHORD_TRY(evidence.median_us, fields.positive_number("median_us"));
  CHORD_TRY(evidence.date, fields.text("date"));
  return evidence;
}

Status read_measured_schedule(const Fields& fields, Family family, MeasuredRow& row) {
  CHORD_TRY(fields.only({"block_m", "block_n", "block_k", "num_stages", "ctas_per_sm", "swap_ab",
                         "stream_k", "cluster_m", "cluster_n"}));
  CHORD_TRY(read_pins(fields, kPublishedPins, row.pins));
  const bool indexed = family == Family::indexed;
  for (const char* field : {"cluster_m", "cluster_n"})
    if (indexed && fields.has(field))
      return fields.wrong(field, "indexed schedules have no cluster", "leave it out");
  for (const char* field : {"ctas_per_sm", "swap_ab", "stream_k"})
    if (!indexed && fields.has(field))
      return fields.wrong(field, "grouped schedules do not have it", "leave it out");
  if (fields.has("ctas_per_sm")) {
    CHORD_TRY(row.ctas_per_sm, fields.integer("ctas_per_sm", 1, 8));
  }
  if (fields.has("swap_ab")) {
    CHORD_TRY(row.swap_ab, fields.boolean("swap_ab"));
  }
  if (fields.has("stream_k")) {
    CHORD_TRY(row.stream_k, fields.boolean("stream_k"));
  }
  return {};
}

Status read_measured_kernel(const Fields& fields, MeasuredRow& row) {
  std::vector<const char*> known;
  for (const PinField& pin : kKernelPins) known.push_back(pin.field);
  for (const NamedPin& pin : kNamedPins)
    if (pin.is_measured) known.push_back(pin.field);
  CHORD_TRY(fields.only(known));
  CHORD_TRY(read_pins(fields, kKernelPins, row.pins));
  for (const NamedPin& pin : kNamedPins) {
    if (!pin.is_measured || !fields.has(pin.field)) continue;
    CHORD_TRY(const std::string text, fields.text(pin.field));
    const Status parsed = pin.parse(row.pins, text);
    if (!parsed) return not_a_name(fields, pin.field, text, parsed.error());
  }
  return {};
}

Result<MeasuredRow> measured_row(const Fields& fields, Family family) {
  CHORD_TRY(fields.only({"arch", "n", "k", "experts", "min_rows", "max_rows", "schedule", "kernel",
                         "why", "evidence"}));
  MeasuredRow row;
  CHORD_TRY(row.arch, named(fields, "arch", parse_architecture));
  CHORD_TRY(row.n, fields.integer("n", 64, INT32_MAX));
  CHORD_TRY(row.k, fields.integer("k", 64, INT32_MAX));
  if (fields.has("experts")) {
    CHORD_TRY(row.experts, fields.integer("experts", 1, kMaxExperts));
  }
  CHORD_TRY(const RowsRange range, rows_range(fields));
  row.min_rows = range.min_rows;
  row.max_rows = range.max_rows;
  if (!fields.has("schedule") && !fields.has("kernel"))
    return fields.wrong("schedule", "neither schedule nor kernel is stated",
                        "a measured row states the fields that it pins");
  if (fields.has("schedule")) {
    CHORD_TRY(const Fields schedule, fields.object("schedule"));
    CHORD_TRY(read_measured_schedule(schedule, family, row));
  }
  if (fields.has("kernel")) {
    CHORD_TRY(const Fields kernel, fields.object("kernel"));
    CHORD_TRY(read_measured_kernel(kernel, row));
  }
  CHORD_TRY(row.why, fields.text("why"));
  CHORD_TRY(const Fields evidence, fields.object("evidence"));
  CHORD_TRY(row.evidence, evidence_of(evidence));
  return row;
}

Status read_indexed_part(const Fields& fields, Profile& profile) {
  CHORD_TRY(profile.axis, named(fields, "axis", parse_axis));
  CHORD_TRY(profile.roles, all_named(fields, "roles", parse_role));
  CHORD_TRY(const Fields fallback, fields.object("fallback"));
  CHORD_TRY(profile.fallback, indexed_schedule(fallback, States::block_m));
  CHORD_TRY(const std::vector<Fields> shapes, fields.objects("shapes"));
  for (const Fields& shape : shapes) {
    CHORD_TRY(ProfileShape parsed, profile_shape(shape));
    profile.shapes.push_back(std::move(parsed));
  }
  return {};
}

Status check_name(const Fields& fields, const Profile& profile) {
  if (profile.file != profile.name + ".json")
    return fields.wrong("profile", fmt::format("found \"{}\"", profile.name),
                        "a file is named after its profile");
  return {};
}

}  // namespace

Result<Profile> parse_profile(std::string_view text, std::string_view file) {
  CHORD_TRY(const nlohmann::json json, parse_json(text, file));
  CHORD_TRY(const Fields fields, Fields::of(json, std::string(file), ""));
  Profile profile;
  profile.file = file;
  CHORD_TRY(profile.name, fields.text("profile"));
  CHORD_TRY(check_name(fields, profile));
  CHORD_TRY(profile.family, named(fields, "family", parse_family));
  CHORD_TRY(profile.why, fields.text("why"));
  CHORD_TRY(profile.archs, all_named(fields, "architectures", parse_architecture));
  if (profile.family == Family::indexed) {
    CHORD_TRY(fields.only({"profile", "family", "why", "architectures", "axis", "roles", "fallback",
                           "shapes", "measured"}));
    CHORD_TRY(read_indexed_part(fields, profile));
  } else {
    CHORD_TRY(fields.only({"profile", "family", "why", "architectures", "measured"}));
  }
  CHORD_TRY(const std::vector<Fields> measured, fields.objects("measured"));
  for (const Fields& row : measured) {
    CHORD_TRY(MeasuredRow parsed, measured_row(row, profile.family));
    profile.measured.push_back(std::move(parsed));
  }
  return profile;
}

}  // namespace chord::heuristics
