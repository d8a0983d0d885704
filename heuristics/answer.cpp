// Who speaks: an override, a measured row, the rule, the fallback. Knows no clock, no environment
// and no device; descriptors come completed.
#include "heuristics/answer.h"

#include <algorithm>

#include "heuristics/grouped.h"
#include "heuristics/kernel_mapping.h"
#include "heuristics/pins.h"
#include "heuristics/validate.h"

namespace chord::heuristics {
namespace {

struct Draft {
  PublishedSchedule schedule;
  Origin origin = Origin::rule;
};

const Profile* profile_of(const ProfileSet& profiles, const GemmDescriptor& d) {
  return d.family == Family::indexed ? profiles.indexed(d.profile) : profiles.grouped(d.family);
}

// A profile answers for another role only by its fallback.
bool lacks_role(const Profile& profile, const GemmDescriptor& d) {
  return d.role && !profile.serves(*d.role);
}

const ProfileShape* shape_of(const Profile& profile, const GemmDescriptor& d) {
  return lacks_role(profile, d) ? nullptr : profile.shape(d.n, d.k, d.experts);
}

bool concerns(const MeasuredRow& row, const GemmDescriptor& d) {
  return row.arch == d.arch && row.n == d.n && row.k == d.k &&
         row.experts.value_or(d.experts) == d.experts;
}

const MeasuredRow* measured_row(const Situation& s, const GemmDescriptor& d) {
  const Profile* profile = profile_of(s.profiles, d);
  if (s.policy != Policy::measured || !profile) return nullptr;
  const std::int64_t rows = axis_value(d);
  for (const MeasuredRow& row : profile->measured) {
    if (!concerns(row, d) || rows <= row.min_rows || rows > row.max_rows) continue;
    // Measured with its own block_m: it says nothing about another.
    if (s.overrides.block_m && s.overrides.block_m != row.pins.block_m) continue;
    return &row;
  }
  return nullptr;
}

std::string shape_text(const GemmDescriptor& d) {
  return fmt::format("{}x{} with {} experts", d.n, d.k, d.experts);
}

int largest_dividing_block_n(std::int64_t n) {
  int block_n = 256;
  while (n % block_n != 0) block_n /= 2;
  return block_n;
}

PublishedSchedule fallback_schedule(const Profile& profile, const GemmDescriptor& d,
                                    const Overrides& pins, Trace& trace) {
  PublishedSchedule schedule = profile.fallback;
  schedule.block_n = largest_dividing_block_n(d.n);
  if (pins.block_m) schedule.block_m = *pins.block_m;
  const std::string lacking =
      lacks_role(profile, d) ? fmt::format("role {}", name(*d.role)) : shape_text(d);
  trace.because(
      "fallback_untuned",
      "profile {} has no row for {}: fallback, untuned (block_n {} is the largest power of "
      "two up to 256 that divides N)",
      profile.name, lacking, schedule.block_n);
  return schedule;
}

Result<PublishedSchedule> row_schedule(const ProfileShape& shape, const GemmDescriptor& d,
                                       const Overrides& pins, Trace& trace) {
  int block_m = pins.block_m.value_or(8);
  const bool by_row = shape.block_m_rule == BlockMRule::by_row;
  if (!pins.block_m && !by_row)
    block_m = block_m_by_rule(shape.block_m_rule, d.k, d.experts, d.rows, trace);
  const auto row = std::find_if(shape.rows.begin(), shape.rows.end(),
                                [&](const ProfileRow& r) { return r.applies(d.rows, block_m); });
  if (row == shape.rows.end())  // the parser refuses holes
    return Error{ErrorCode::internal, "plan of " + label(d), "a hole between profile rows", ""};
  PublishedSchedule schedule = row->schedule;
  if (!by_row || pins.block_m) schedule.block_m = block_m;
  trace.because("profile_row", "{} {}: {}", d.profile, shape.projection, row->why);
  return schedule;
}

std::int64_t pipeline_bytes(const PublishedSchedule& s) {
  return s.num_stages * published_stage_bytes(s.block_m, s.block_n, s.block_k);
}

// A pinned field can ask for more shared memory than there is. Depth goes first, then columns, then
// stages; a pinned one stays. Without pins every published row fits.
Status make_fit(PublishedSchedule& s, const GemmDescriptor& d, const Overrides& pins,
                Trace& trace) {
  if (s.block_n == 0 || d.n % s.block_n != 0)
    return Error{ErrorCode::invalid_argument, pinned_text(pins),
                 fmt::format("block_n {} does not divide N {}", s.block_n, d.n),
                 "choose a multiple of 64 that divides N"};
  if (d.k % s.block_k != 0)
    return Error{ErrorCode::invalid_argument, pinned_text(pins),
                 fmt::format("block_k {} does not divide K {}", s.block_k, d.k),
                 "choose a multiple of 64 that divides K"};
  const PublishedSchedule wanted = s;
  while (pipeline_bytes(s) > kPublishedSharedBytes) {
    if (!pins.block_k && s.block_k % 128 == 0)
      s.block_k /= 2;
    else if (!pins.block_n && s.block_n % 128 == 0)
      s.block_n /= 2;
    else if (!pins.num_stages && s.num_stages > 2)
      --s.num_stages;
    else
      return Error{
          ErrorCode::invalid_argument, pinned_text(pins),
          fmt::format("{} stages of a {}x{}x{} tile need {} bytes of shared memory, {} fit",
                      s.num_stages, s.block_m, s.block_n, s.block_k, pipeline_bytes(s),
                      kPublishedSharedBytes),
          "pin fewer fields, or smaller blocks"};
  }
  const std::int64_t resident = kPublishedSharedBytes / pipeline_bytes(s);
  if (s.ctas_per_sm && *s.ctas_per_sm > resident) s.ctas_per_sm = static_cast<int>(resident);
  if (s != wanted)
    trace.because("reduced_to_fit_shared_memory",
                  "{}x{}x{} with {} stages does not fit: {}x{}x{} with {} stages, {} CTA(s) per SM",
                  wanted.block_m, wanted.block_n, wanted.block_k, wanted.num_stages, s.block_m,
                  s.block_n, s.block_k, s.num_stages, s.ctas_per_sm.value_or(1));
  return {};
}

void explain_given_block_m(const GemmDescriptor& d, int own, Trace& trace) {
  if (*d.block_m == own)
    trace.because("block_m_given", "block_m {} is given, as the rules say", own);
  else
    trace.because("block_m_given",
                  "block_m {} is given by the routing, the rules say {}; block_n and block_k stay",
                  *d.block_m, own);
}

Result<Draft> draft_indexed(const Situation& s, const GemmDescriptor& d, const Overrides& pins,
                            const MeasuredRow* measured, Trace& trace) {
  if (pins.cluster_m || pins.cluster_n)
    return Error{ErrorCode::invalid_argument, pinned_text(pins),
                 "indexed schedules have no cluster: CHORD_W4A16_CM and CHORD_W4A16_CN are for the "
                 "grouped families",
                 "unset it"};
  const Profile& profile = *s.profiles.indexed(d.profile);
  const ProfileShape* shape = shape_of(profile, d);
  Draft draft;
  if (shape) {
    CHORD_TRY(draft.schedule, row_schedule(*shape, d, pins, trace));
  } else {
    draft.schedule = fallback_schedule(profile, d, pins, trace);
    draft.origin = Origin::fallback;
  }
  PublishedSchedule& schedule = draft.schedule;
  if (pins.block_n) schedule.block_n = *pins.block_n;
  if (pins.block_k) schedule.block_k = *pins.block_k;
  if (pins.num_stages) schedule.num_stages = *pins.num_stages;
  if (measured && measured->ctas_per_sm) schedule.ctas_per_sm = measured->ctas_per_sm;
  if (measured && measured->swap_ab) schedule.swap_ab = measured->swap_ab;
  if (measured && measured->stream_k) schedule.stream_k = measured->stream_k;
  if (d.block_m) {
    explain_given_block_m(d, schedule.block_m, trace);
    schedule.block_m = *d.block_m;
  }
  CHORD_TRY(make_fit(schedule, d, pins, trace));
  return draft;
}

Result<Draft> draft_grouped(const GemmDescriptor& d, const Overrides& pins, Trace& trace) {
  const GroupedProblem problem = grouped_problem(d);
  Draft draft;
  if (is_blackwell(d.arch)) {
    draft.origin = Origin::fallback;
    trace.because("fallback_grouped_rules_are_sm90",
                  "the published heuristic of {} is for sm_90a: its answer for {} is untuned",
                  name(d.family), name(d.arch));
  }
  CHORD_TRY(draft.schedule, solve_grouped(problem, d.block_m, pins, trace));
  if (d.block_m) trace.because("block_m_given", "block_m {} is given", *d.block_m);
  return draft;
}

void explain_measured(const Profile& profile, const MeasuredRow& row, Trace& trace) {
  trace.because("measured_row", "{}: {} (measured on {}, driver {}, kernel {}: {:.1f} us, {})",
                profile.name, row.why, row.evidence.gpu, row.evidence.driver,
                row.evidence.kernel_digest, row.evidence.median_us, row.evidence.date);
}

void explain_tile(const GemmDescriptor& d, const KernelSchedule& kernel, const Overrides& pins,
                  Trace& trace) {
  if (pins.tile_m || !trace.keeps()) return;
  const double mean = d.family == Family::grouped_masked
                          ? static_cast<double>(d.expected_m)
                          : static_cast<double>(d.rows) / static_cast<double>(d.experts);
  const bool uses_wgmma = abi::uses_wgmma(kernel);
  if (is_blackwell(d.arch))
    trace.because("kernel_mainloop", "mma: the only one for {}", name(d.arch));
  else if (!pins.mainloop)
    trace.because("kernel_mainloop", "{}: {:.3g} rows per expert, {} than {}{}",
                  name(kernel.mainloop), mean, uses_wgmma ? "more" : "not more", most_mma_rows(d),
                  abi::is_resident(kernel)
                      ? fmt::format(", whose whole K of {} stays in shared memory", d.k)
                      : "");
  if (uses_wgmma)
    trace.because(
        "kernel_tile",
        "{} width(s) up to tile_m {} for {:.3g} rows per expert: an expert's rows are cut "
        "into even tiles, and each runs in the narrowest width that takes it",
        kernel.widths, kernel.tile_m, mean);
  else
    trace.because("kernel_tile",
                  "tile_m {} for blocks of {} and {:.3g} rows per expert: tiles hold the mean and "
                  "two standard deviations, at most 40 rows; more rows read the weights again",
                  kernel.tile_m, kernel.block_m, mean);
}

// The descriptor's answer with the situation's overrides as pins.
Result<Answer> draft(const Situation& s, const GemmDescriptor& d, Trace& trace) {
  const MeasuredRow* measured = measured_row(s, d);
  const Overrides pins = measured ? merged(s.overrides, measured->pins) : s.overrides;
  if (measured) explain_measured(*profile_of(s.profiles, d), *measured, trace);
  CHORD_TRY(Draft drafted, d.family == Family::indexed ? draft_indexed(s, d, pins, measured, trace)
                                                       : draft_grouped(d, pins, trace));
  Answer answer;
  answer.schedule = drafted.schedule;
  answer.origin = measured ? Origin::measured : drafted.origin;
  CHORD_TRY(answer.kernel, kernel_fields(d, answer.schedule, pins));
  explain_tile(d, answer.kernel, pins, trace);
  if (is_blackwell(d.arch) && !pins.dequantisation)
    trace.because(
        "ordinary_dequantisation_until_checked",
        "the fused form needs a BF16 fma that keeps subnormals; that is not yet checked on "
        "{}, so the ordinary form is used",
        name(d.arch));
  return answer;
}

// A BM that only repeats the routing's block_m pins nothing; another one contradicts it.
Result<Overrides> effective_overrides(const Overrides& overrides, const GemmDescriptor& d) {
  CHORD_TRY(check_overrides(overrides));
  Overrides effective = overrides;
  if (d.block_m && overrides.block_m && *overrides.block_m != *d.block_m)
    return Error{ErrorCode::invalid_argument, fmt::format("CHORD_W4A16_BM={}", *overrides.block_m),
                 fmt::format("the routing was aligned to block_m {}", *d.block_m),
                 "unset the variable, or align the routing to it"};
  if (d.block_m) effective.block_m.reset();
  return effective;
}

}  // namespace

Overrides pins_at(const Situation& s, const GemmDescriptor& d) {
  const MeasuredRow* measured = measured_row(s, d);
  return measured ? merged(s.overrides, measured->pins) : s.overrides;
}

GroupedProblem grouped_problem(const GemmDescriptor& d) {
  return GroupedProblem{.masked = d.family == Family::grouped_masked,
                        .n = d.n,
                        .k = d.k,
                        .experts = d.experts,
                        .m = axis_value(d),
                        .num_sms = d.num_sms};
}

Result<Answer> answer(const Situation& situation, const GemmDescriptor& descriptor, Trace& trace) {
  static const Overrides kNone;
  const Situation plain_situation{situation.profiles, kNone, situation.policy};
  CHORD_TRY(const Overrides overrides, effective_overrides(situation.overrides, descriptor));
  if (overrides == kNone) return draft(plain_situation, descriptor, trace);

  Trace plain_trace(trace.keeps() ? Trace::Keep::everything : Trace::Keep::nothing);
  CHORD_TRY(Answer plain, draft(plain_situation, descriptor, plain_trace));
  trace.because("override", "pinned by hand: {}", pinned_text(overrides));
  const Situation pinned_situation{situation.profiles, overrides, situation.policy};
  CHORD_TRY(Answer pinned, draft(pinned_situation, descriptor, trace));
  if (pinned.schedule == plain.schedule && pinned.kernel == plain.kernel) {
    trace = std::move(plain_trace);
    return plain;
  }
  pinned.origin = Origin::override_value;
  return pinned;
}

std::vector<std::int64_t> data_limits(const Situation& s, const GemmDescriptor& d) {
  std::vector<std::int64_t> limits = tile_limits(d);
  const Profile* profile = profile_of(s.profiles, d);
  if (!profile) return limits;
  for (const MeasuredRow& row : profile->measured)
    if (concerns(row, d)) limits.insert(limits.end(), {row.min_rows, row.max_rows});
  if (d.family != Family::indexed) return limits;
  if (const ProfileShape* shape = shape_of(*profile, d))
    for (const ProfileRow& row : shape->rows)
      limits.insert(limits.end(), {row.min_rows, row.max_rows});
  return limits;
}

}  // namespace chord::heuristics
