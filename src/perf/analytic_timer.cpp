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
    const PassParts parts = parts_of(cost_, shape);
    const Duration decode = quantised(parts.decode_ms, 1.0);  // of the batch by itself, unscaled
    StepTime t{.prefill = {}, .decode = scaled(decode, decode_ratio_)};
    if (parts.total_ms == parts.decode_ms) return t;
    // The parts of an unscaled pass sum to its total.
    const Duration total = quantised(parts.total_ms, 1.0);
    t.prefill = scaled(std::max(Duration{}, total - decode), step_ratio_);
    return t;
  }

  void decode_run(const DecodeRun& run, std::span<Duration> out) const override {
    if (run.requests == 0) {
      std::fill(out.begin(), out.end(), Duration{});
      return;
    }
    const std::uint64_t group =
        run.group_tokens > 0 ? run.group_tokens : cost_.group_of(run.requests);
    const DecodeBatch batch = cost_.decode_batch(run.requests, 1, group);
    std::uint64_t context = run.context;
    for (Duration& d : out) {
      d = quantised(batch.ms(context), decode_ratio_);
      context += run.requests;
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

Result<Timer> analytic_timer(const Placement& placement, const SpeedRatios& ratios,
                             const catalog::StepModel& model) {
  Problems problems = check(placement);
  check_ratios(ratios, problems);
  if (placement.parallelism.context > 1)
    problems.push_back({.code = "timing.unsupported",
                        .message = "parallelism.context is above 1; the analytic timer does not "
                                   "model context parallelism",
                        .place = {},
                        .hint = "use fixed or polynomial timing"});
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return std::make_shared<const AnalyticTimer>(
      pass_cost_of(placement, Coefficients(model, labels_of(placement))), ratios);
}

}  // namespace servecast::perf
