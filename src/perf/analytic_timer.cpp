// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "perf/pass_cost.hpp"
#include "perf/ratios.hpp"
#include "perf/rounding.hpp"
#include "perf/shape_sums.hpp"
#include "perf/timers.hpp"

namespace servecast::perf {
namespace {

class AnalyticTimer final : public StepTimer {
 public:
  AnalyticTimer(PassCost cost, const SpeedRatios& ratios)
      : cost_(std::move(cost)),
        step_ratio_(ratios.step),
        decode_ratio_(ratios.step * ratios.decode) {}

  StepTime time(const StepShape& shape) const override {
    StepTime t;
    Duration decode;  // of the decode batch by itself, unscaled
    double attention_ms = 0.0;
    if (shape.decode_requests > 0) {
      const DecodeBatch batch = cost_.decode_batch(shape.decode_requests, shape.decode_tokens_each);
      attention_ms = batch.attention_ms(as_double(shape.decode_context));
      decode = quantised(batch.ms(shape.decode_context), 1.0);
      t.decode = scaled(decode, decode_ratio_);
    }
    const std::uint64_t fresh =
        shape.prefill_isl - std::min(shape.prefill_isl, shape.prefill_prefix);
    if (shape.prefill_requests == 0 || fresh == 0) return t;
    // One fused batch: weights are read once for prompts and decodes together. Prefill is what it
    // takes beyond the decode batch by itself, so that the parts of an unscaled pass sum to its
    // total.
    const std::uint64_t sequences = std::uint64_t{shape.prefill_requests} + shape.decode_requests;
    const std::uint64_t decoded = std::uint64_t{shape.decode_requests} * shape.decode_tokens_each;
    const double total_ms =
        cost_.batch_ms(fresh + decoded, sequences, shape.prefill_requests + decoded) +
        cost_.host.per_prefill_pass +
        cost_.prefill_attention_ms(fresh, shape.prefill_isl, shape.prefill_attention) +
        attention_ms;
    const Duration total = quantised(total_ms, 1.0);
    t.prefill = scaled(std::max(Duration{}, total - decode), step_ratio_);
    return t;
  }

  void decode_run(std::uint32_t requests, std::uint64_t context, std::uint64_t,
                  std::span<Duration> out) const override {
    if (requests == 0) {
      std::fill(out.begin(), out.end(), Duration{});
      return;
    }
    const DecodeBatch batch = cost_.decode_batch(requests, 1);
    for (Duration& d : out) {
      d = quantised(batch.ms(context), decode_ratio_);
      context += requests;
    }
  }

  Provenance provenance() const override { return Provenance::Analytic; }
  std::uint32_t run_passes_max() const override { return 64; }

 private:
  PassCost cost_;
  double step_ratio_;
  double decode_ratio_;
};

}  // namespace

Result<Timer> analytic_timer(const Placement& placement, const SpeedRatios& ratios) {
  Problems problems = check(placement);
  check_ratios(ratios, problems);
  if (placement.parallelism.context > 1)
    problems.push_back({.code = "timing.unsupported",
                        .message = "parallelism.context is above 1; the analytic timer does not "
                                   "model context parallelism",
                        .place = {},
                        .hint = "use fixed or polynomial timing"});
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return std::make_shared<const AnalyticTimer>(pass_cost_of(placement), ratios);
}

}  // namespace servecast::perf
