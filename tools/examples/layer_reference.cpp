// The FP64 reference: work is cut by expert, because reading an expert's weights is what costs.
#include "tools/examples/layer_reference.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "tools/examples/bf16.h"

namespace chord::examples {
namespace {

using Values = std::vector<double>;

double sigmoid(double value) { return 1.0 / (1.0 + std::exp(-value)); }
double silu(double value) { return value * sigmoid(value); }

// Four sums, so that one addition does not wait for the one before it.
double dot(const double* a, const double* b, std::int64_t count) {
  double sums[4] = {};
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (int j = 0; j < 4; ++j) sums[j] += a[i + j] * b[i + j];
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void dequantise_row(const QuantizedMatrix& matrix, std::int64_t row, Values& weights) {
  const std::uint32_t* words = matrix.words.data() + row * (matrix.k / kCodesInWord);
  const std::uint16_t* scales = matrix.scales.data() + row * (matrix.k / kGroup);
  double values[16] = {};
  for (std::int64_t k = 0; k < matrix.k; ++k) {
    if (k % kGroup == 0) {
      const float scale = float_of_bf16(scales[k / kGroup]);
      for (int code = 0; code < 16; ++code)
        values[code] = float_of_bf16(bf16_of_float(static_cast<float>(code - 8) * scale));
    }
    weights[static_cast<std::size_t>(k)] =
        values[words[k / kCodesInWord] >> (4 * (k % kCodesInWord)) & 15];
  }
}

// y[i][n] = sum over k of x[i][k] * w[n][k]
std::vector<Values> multiply(const QuantizedMatrix& matrix, const std::vector<Values>& rows) {
  std::vector<Values> out(rows.size(), Values(static_cast<std::size_t>(matrix.n)));
  Values weights(static_cast<std::size_t>(matrix.k));
  for (std::int64_t n = 0; n < matrix.n; ++n) {
    dequantise_row(matrix, n, weights);
    for (std::size_t i = 0; i < rows.size(); ++i)
      out[i][static_cast<std::size_t>(n)] = dot(rows[i].data(), weights.data(), matrix.k);
  }
  return out;
}

Values swiglu(const Values& gate_up) {
  const std::size_t half = gate_up.size() / 2;
  Values out(half);
  for (std::size_t i = 0; i < half; ++i) out[i] = silu(gate_up[i]) * gate_up[half + i];
  return out;
}

Values row_of(const std::vector<std::uint16_t>& x, std::int64_t row, std::int64_t columns) {
  Values values(static_cast<std::size_t>(columns));
  for (std::int64_t i = 0; i < columns; ++i)
    values[static_cast<std::size_t>(i)] =
        float_of_bf16(x[static_cast<std::size_t>(row * columns + i)]);
  return values;
}

// On this thread and threads - 1 others; returns when all are done.
void run_on(int threads, const std::function<void()>& work) {
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
}

// One row of one expert: where it comes from, where it goes, with which weight.
struct Use {
  std::size_t sample = 0;
  std::int64_t token = 0;
  std::int64_t order = 0;  // of the sum: by route, the shared expert last
  double weight = 0;
};

using Uses = std::map<std::int64_t, std::vector<Use>>;  // by slot

Uses uses_of(const LayerShape& shape, const Routes& routes,
             const std::vector<std::int64_t>& sample) {
  Uses uses;
  for (std::size_t s = 0; s < sample.size(); ++s) {
    for (std::int64_t route = 0; route < routes.top_k; ++route) {
      const auto at = static_cast<std::size_t>(sample[s] * routes.top_k + route);
      const std::int64_t slot = routes.experts[at] - shape.first_expert;
      if (slot < 0 || slot >= shape.routed) continue;
      uses[slot].push_back({s, sample[s], route, routes.weights[at]});
    }
    if (shape.shared_slot) uses[shape.routed].push_back({s, sample[s], routes.top_k, 1.0});
  }
  return uses;
}

Result<std::vector<Values>> run_expert(const LayerSource& source, std::int64_t slot,
                                       const std::vector<Use>& uses,
                                       const std::vector<std::uint16_t>& x) {
  std::vector<Values> rows;
  for (const Use& use : uses) rows.push_back(row_of(x, use.token, source.shape().hidden));
  CHORD_TRY(const QuantizedMatrix gate_up, source.gate_up(slot));
  std::vector<Values> inner = multiply(gate_up, rows);
  for (Values& row : inner) row = swiglu(row);
  CHORD_TRY(const QuantizedMatrix down, source.down(slot));
  return multiply(down, inner);
}

}  // namespace

std::vector<double> reference_logits(const std::vector<std::uint16_t>& x, const Router& router,
                                     std::int64_t hidden, int threads) {
  const std::size_t experts = router.bias.size();
  const std::int64_t tokens = static_cast<std::int64_t>(x.size()) / hidden;
  std::vector<Values> gate;
  for (std::size_t e = 0; e < experts; ++e)
    gate.push_back(row_of(router.gate, static_cast<std::int64_t>(e), hidden));
  std::vector<double> logits(static_cast<std::size_t>(tokens) * experts);
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    for (std::int64_t token = next++; token < tokens; token = next++) {
      const Values row = row_of(x, token, hidden);
      for (std::size_t e = 0; e < experts; ++e)
        logits[static_cast<std::size_t>(token) * experts + e] =
            dot(row.data(), gate[e].data(), hidden);
    }
  };
  run_on(threads, work);
  return logits;
}

Routes reference_routes(const std::vector<double>& logits, const std::vector<float>& bias,
                        const RoutingRule& rule) {
  const std::size_t experts = bias.size();
  Routes routes;
  routes.top_k = rule.top_k;
  for (std::size_t first = 0; first < logits.size(); first += experts) {
    std::vector<std::int32_t> order(experts);
    std::iota(order.begin(), order.end(), 0);
    const auto choice = [&](std::int32_t e) { return sigmoid(logits[first + e]) + bias[e]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return choice(a) > choice(b); });
    order.resize(static_cast<std::size_t>(rule.top_k));
    double sum = 0;
    for (const std::int32_t e : order) sum += sigmoid(logits[first + e]);
    for (const std::int32_t e : order) {
      routes.experts.push_back(e);
      routes.weights.push_back(sigmoid(logits[first + e]) / (rule.normalise ? sum : 1.0) *
                               rule.scaling);
    }
  }
  return routes;
}

Result<std::vector<double>> reference_layer(const LayerSource& source,
                                            const std::vector<std::uint16_t>& x,
                                            const Routes& routes,
                                            const std::vector<std::int64_t>& sample, int threads) {
  const Uses uses = uses_of(source.shape(), routes, sample);
  std::vector<std::int64_t> slots;
  for (const auto& [slot, rows] : uses) slots.push_back(slot);
  std::vector<std::vector<Values>> outputs(slots.size());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::optional<Error> first_error;
  const auto work = [&] {
    for (std::size_t i = next++; i < slots.size(); i = next++) {
      Result<std::vector<Values>> made = run_expert(source, slots[i], uses.at(slots[i]), x);
      if (made.ok()) {
        outputs[i] = std::move(*made);
        continue;
      }
      const std::lock_guard lock(mutex);
      if (!first_error) first_error = made.error();
    }
  };
  run_on(threads, work);
  if (first_error) return *first_error;

  // In the order of the routes, so that the number of threads does not show.
  const std::int64_t hidden = source.shape().hidden;
  std::vector<double> sums(sample.size() * static_cast<std::size_t>(hidden), 0.0);
  for (std::int64_t order = 0; order <= routes.top_k; ++order)
    for (std::size_t i = 0; i < slots.size(); ++i)
      for (std::size_t row = 0; row < outputs[i].size(); ++row) {
        const Use& use = uses.at(slots[i])[row];
        if (use.order != order) continue;
        double* const to = sums.data() + use.sample * static_cast<std::size_t>(hidden);
        for (std::int64_t n = 0; n < hidden; ++n)
          to[n] += use.weight * outputs[i][row][static_cast<std::size_t>(n)];
      }
  return sums;
}

LayerError layer_error(const std::vector<double>& expected, const std::vector<std::uint16_t>& found,
                       std::int64_t columns) {
  LayerError error;
  double all_difference = 0, all_norm = 0;
  const std::int64_t rows = static_cast<std::int64_t>(expected.size()) / columns;
  for (std::int64_t row = 0; row < rows; ++row) {
    double difference = 0, norm = 0;
    for (std::int64_t i = row * columns; i < (row + 1) * columns; ++i) {
      const double value = float_of_bf16(found[static_cast<std::size_t>(i)]);
      const double wanted = expected[static_cast<std::size_t>(i)];
      error.has_non_finite =
          error.has_non_finite || !std::isfinite(value) || !std::isfinite(wanted);
      difference += (value - wanted) * (value - wanted);
      norm += wanted * wanted;
    }
    all_difference += difference;
    all_norm += norm;
    // A row that no expert of this GPU serves has to be exactly zero.
    const double row_l2 = norm > 0 ? std::sqrt(difference / norm) : (difference > 0 ? INFINITY : 0);
    if (!(row_l2 <= error.worst_row_l2)) {
      error.worst_row_l2 = row_l2;
      error.worst_row = row;
    }
  }
  error.rel_l2 =
      all_norm > 0 ? std::sqrt(all_difference / all_norm) : (all_difference > 0 ? INFINITY : 0);
  return error;
}

}  // namespace chord::examples
