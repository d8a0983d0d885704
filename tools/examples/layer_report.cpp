// Lines and fields of a report.
#include "tools/examples/layer_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace chord::examples {
namespace {

using Json = nlohmann::ordered_json;

double mb(std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::string header_of(const SessionReport& report, const SessionOptions& options,
                      const std::string& label) {
  const LayerShape& shape = options.question.shape;
  std::string text = fmt::format("{}\n{}\n", report.gpu, label);
  const LoadFacts& load = report.load;
  text += fmt::format(
      "load:  {} experts, gate/up {} x {}, down {} x {}: {:.1f} MB packed in {:.1f} s\n"
      "       an engine's peak: {:.1f} MB, with {:.1f} MB of staging (one projection of one "
      "expert; "
      "the driver saw {:.1f} MB)\n",
      shape.slots(), 2 * shape.intermediate, shape.hidden, shape.hidden, shape.intermediate,
      mb(load.packed_bytes), load.seconds, mb(load.peak_bytes()), mb(load.staging_bytes),
      mb(load.measured_peak_bytes));
  if (load.second_order_bytes > 0)
    text += fmt::format("       not in it: {:.1f} MB, gate/up in a second row order to time both\n",
                        mb(load.second_order_bytes));
  text += fmt::format("route: {} tokens, {} routes each, {} of them to experts of this GPU\n",
                      options.question.tokens, options.question.top_k, report.local_routes);
  return text;
}

std::string line_of(const ForwardReport& forward, std::int64_t checked) {
  return fmt::format(
      "fused {}:\n"
      "  plan:  {}\n"
      "  check: {} tokens, relative L2 {:.2e}, worst row {:.2e} (token {}), two replays {}: {}\n",
      name(forward.fused), text_of(forward.plan), checked, forward.error.rel_l2,
      forward.error.worst_row_l2, forward.error.worst_row, forward.same_bits ? "alike" : "DIFFER",
      forward.same_bits && is_within_limits(forward.error) ? "right" : "WRONG");
}

std::string times_of(const ForwardReport& forward) {
  std::string text =
      fmt::format("  from router logits on, one graph {:8.2f} us, launches {:8.2f} us\n",
                  forward.graph.median_us, forward.eager.median_us);
  for (const PartTime& part : forward.parts)
    text += fmt::format("    {:<10} {:8.2f} us\n", part.part, part.time.median_us);
  return text;
}

Json json_of(const bench::Sample& sample) {
  return {
      {"median_us", sample.median_us}, {"spread_us", sample.spread_us}, {"count", sample.count}};
}

Json json_of(const ForwardReport& forward) {
  Json parts = Json::object();
  for (const PartTime& part : forward.parts) parts[part.part] = json_of(part.time);
  return {{"fused", name(forward.fused)},
          {"plan", examples::json_of(forward.plan)},
          {"is_right", forward.same_bits && is_within_limits(forward.error)},
          {"rel_l2", forward.error.rel_l2},
          {"worst_row_l2", forward.error.worst_row_l2},
          {"worst_token", forward.error.worst_row},
          {"has_non_finite", forward.error.has_non_finite},
          {"same_bits", forward.same_bits},
          {"ties", forward.ties},
          {"graph", json_of(forward.graph)},
          {"launches", json_of(forward.eager)},
          {"parts", parts}};
}

Json json_of(const Decision& decision) {
  return {{"mainloop", chord::name(decision.kernel.mainloop)},
          {"tile_m", decision.kernel.tile_m},
          {"tile_n", decision.kernel.tile_n},
          {"stages", decision.kernel.stages},
          {"origin", chord::name(decision.origin)}};
}

}  // namespace

Json json_of(const LayerPlan& plan) {
  return {
      {"block_m", plan.block_m}, {"gate_up", json_of(plan.gate_up)}, {"down", json_of(plan.down)}};
}

std::string text_of(const SessionReport& report, const SessionOptions& options,
                    const std::string& label) {
  std::string text = header_of(report, options, label);
  for (const ForwardReport& forward : report.forwards)
    text += line_of(forward, report.checked_tokens) + times_of(forward);
  if (report.forwards.size() == 2)
    text += fmt::format("fusing {}: {:.2f} times as fast\n", name(report.forwards[1].fused),
                        report.forwards[0].graph.median_us / report.forwards[1].graph.median_us);
  return text;
}

Json json_of(const SessionReport& report, const SessionOptions& options, const std::string& label) {
  Json forwards = Json::array();
  for (const ForwardReport& forward : report.forwards) forwards.push_back(json_of(forward));
  return {{"gpu", report.gpu},
          {"layer", label},
          {"tokens", options.question.tokens},
          {"top_k", options.question.top_k},
          {"slots", options.question.shape.slots()},
          {"local_routes", report.local_routes},
          {"checked_tokens", report.checked_tokens},
          {"timed_from", "router logits"},
          {"packed_bytes", report.load.packed_bytes},
          {"second_order_bytes", report.load.second_order_bytes},
          {"staging_bytes", report.load.staging_bytes},
          {"peak_bytes", report.load.peak_bytes()},
          {"measured_peak_bytes", report.load.measured_peak_bytes},
          {"load_seconds", report.load.seconds},
          {"is_right", report.is_right()},
          {"forwards", forwards}};
}

}  // namespace chord::examples
