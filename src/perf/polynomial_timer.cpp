// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "perf/ratios.hpp"
#include "perf/rounding.hpp"
#include "perf/shape_sums.hpp"
#include "perf/timers.hpp"

namespace servecast::perf {
namespace {

// Largest value of the decode polynomial on [0, 1], reached at 1.
constexpr double kDecodeMaxMs = 34.01;

double prefill_ms(double tokens) {
  return 4.209989e-7 * tokens * tokens + 1.518344e-2 * tokens + 16.50142;
}

// The share of the pool that the batch holds decides; a pool without capacity counts as full.
double decode_ms(double context, double capacity) {
  const double share = capacity > 0.0 ? std::min(1.0, context / capacity) : 1.0;
  return std::max(1.0, -25.74 * share * share + 54.01 * share + 5.74);
}

class PolynomialTimer final : public StepTimer {
 public:
  explicit PolynomialTimer(const SpeedRatios& ratios)
      : prefill_ratio_(ratios.step), decode_ratio_(ratios.step * ratios.decode) {}

  StepTime time(const StepShape& shape) const override {
    if (shape.mixed_chunk) return time(without_mixed_chunk(shape));
    StepTime t;
    if (const std::uint64_t tokens = prefill_tokens_of_means(shape); tokens > 0)
      t.prefill = quantised(prefill_ms(as_double(tokens)), prefill_ratio_);
    if (shape.decode_requests > 0)
      t.decode =
          quantised(decode_ms(as_double(shape.decode_context), as_double(shape.capacity_tokens)),
                    decode_ratio_);
    return t;
  }

  void decode_run(const DecodeRun& run, std::span<Duration> out) const override {
    if (run.requests == 0) {
      std::fill(out.begin(), out.end(), Duration{});
      return;
    }
    const double capacity = as_double(run.capacity_tokens);
    std::uint64_t context = run.context;
    // Ratios 0 and 1 leave the duration alone; a loop without the second division is half as long.
    const bool scaled = decode_ratio_ != 0.0 && decode_ratio_ != 1.0;
    if (scaled) {
      for (Duration& d : out) {
        d = quantised(decode_ms(as_double(context), capacity), decode_ratio_);
        context += run.requests;
      }
      return;
    }
    for (Duration& d : out) {
      d = quantised(decode_ms(as_double(context), capacity), 1.0);
      context += run.requests;
    }
  }

  Provenance provenance() const override { return Provenance::Polynomial; }
  std::uint32_t run_passes_max() const override { return 256; }

 private:
  double prefill_ratio_;
  double decode_ratio_;
};

}  // namespace

Result<Timer> polynomial_timer(const SpeedRatios& ratios) {
  Problems problems;
  check_ratios(ratios, problems);
  check_duration("the longest decode pass", kDecodeMaxMs, ratios.step * ratios.decode, problems);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return std::make_shared<const PolynomialTimer>(ratios);
}

}  // namespace servecast::perf
