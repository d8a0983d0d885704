// The short table: one line per case.
#include <fmt/format.h>

#include <cmath>

#include "tools/bench/results.h"

namespace chord::bench {
namespace {

std::string number(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

std::optional<double> ratio(const std::optional<double>& published, const Measurement& m) {
  if (!published || !m.time) return std::nullopt;
  return *published / m.time->median_us;
}

// What --graph, --complete and --cublas add.
std::string further(const Measurement& m) {
  std::string text;
  if (m.graph) text += fmt::format("  graph {:.1f}", m.graph->median_us);
  if (m.read_flush_time)
    text += fmt::format("  read flush {:.1f} (read {:.1f})", m.read_flush_time->median_us,
                        m.read_flush_read->median_us);
  if (m.published_policy)
    text += fmt::format("  published policy {:.1f}", m.published_policy->median_us);
  if (m.cublas) text += fmt::format("  cuBLAS BF16 {:.1f}", m.cublas->median_us);
  return text;
}

std::string time_and_share(const Sample& time, const Measurement& m) {
  return fmt::format("{:>8.1f} {:>4.0f}%", time.median_us,
                     100 * m.read->median_us / time.median_us);
}

int count_wrong(const std::vector<Measurement>& measurements) {
  int wrong = 0;
  for (const Measurement& m : measurements) wrong += m.comparison.violation().empty() ? 0 : 1;
  return wrong;
}

}  // namespace

std::string table_head() {
  return fmt::format("{:<68} {:>8} {:>6} {:>8} {:>6} {:>7} {:>5} {:>8} {:>5} {:>8} {:>5}  {}\n",
                     "case", "us", "+-", "mean", "TB/s", "TFLOP/s", "read%", "Chord", "x",
                     "Humming", "x", "rel L2");
}

std::string table_line(const Measurement& m) {
  const std::string violation = m.comparison.violation();
  if (!violation.empty()) return fmt::format("{:<68} WRONG: {}\n", m.one.label(), violation);
  if (!m.time)
    return fmt::format("{:<68} right, relative L2 {:.2e}, worst row {:.2e}\n", m.one.label(),
                       m.comparison.rel_l2, m.comparison.worst_row_l2);
  const double us = m.time->median_us;
  return fmt::format(
      "{:<68} {:>8.1f} {:>6.1f} {:>8.1f} {:>6.2f} {:>7.1f} {:>5.0f} {:>8} {:>5} {:>8} {:>5}  "
      "{:.1e}{}\n",
      m.one.label(), us, m.time->spread_us, m.time->mean_us, m.bytes / us * 1e-6,
      m.operations / us * 1e-6, 100 * m.read->median_us / us, number(m.one.chord_us, 1),
      number(ratio(m.one.chord_us, m), 2), number(m.one.humming_us, 1),
      number(ratio(m.one.humming_us, m), 2), m.comparison.rel_l2, further(m));
}

std::string table_foot(const std::vector<Measurement>& measurements) {
  int published = 0;
  double log_sum = 0;
  for (const Measurement& m : measurements) {
    const std::optional<double> faster = ratio(m.one.chord_us, m);
    if (!faster) continue;
    ++published;
    log_sum += std::log(*faster);
  }
  std::string text =
      fmt::format("{} cases, {} wrong", measurements.size(), count_wrong(measurements));
  if (published > 0)
    text += fmt::format("; geometric mean against published Chord over {} rows: {:.3f} x",
                        published, std::exp(log_sum / published));
  return text +
         "\n+- is the interquartile range; read% is the time of a pure read of the same bytes in "
         "this run over ours; x is published time over ours\n";
}

std::string ablation_head() {
  return fmt::format("{:<68} {:>8} {:>14} {:>14} {:>14} {:>14}\n", "case", "read us", "loads",
                     "+ dequant.", "+ mma, raw", "all");
}

std::string ablation_line(const Measurement& m) {
  if (m.ablations.empty()) return table_line(m);
  std::string text = fmt::format("{:<68} {:>8.1f}", m.one.label(), m.read->median_us);
  for (const AblationTime& part : m.ablations) text += " " + time_and_share(part.time, m);
  return text + " " + time_and_share(*m.time, m) + "\n";
}

std::string ablation_foot(const std::vector<Measurement>& measurements) {
  return fmt::format(
      "{} cases, {} wrong; loads: nothing of a stage is read; + dequant.: and dequantised, no mma; "
      "+ mma, raw: multiplied, not dequantised; % is the time of the read over this one\n",
      measurements.size(), count_wrong(measurements));
}

}  // namespace chord::bench
