// SPDX-License-Identifier: Apache-2.0
#include "perf/estimate_timer.hpp"

#include <algorithm>

#include "perf/ratios.hpp"
#include "perf/rounding.hpp"
#include "perf/shape_sums.hpp"

namespace servecast::perf {
namespace {

class OperatorTimer final : public EstimateTimer {
 public:
  OperatorTimer(std::unique_ptr<PassEstimate> pass, Provenance provenance, double overhead_ms,
                const SpeedRatios& ratios)
      : pass_(std::move(pass)),
        provenance_(provenance),
        overhead_ms_(overhead_ms),
        step_ratio_(ratios.step),
        decode_ratio_(ratios.step * ratios.decode) {}

  StepTime time(const StepShape& given) const override {
    const StepShape shape = without_mixed_chunk(given);
    StepTime t;
    Duration decode;  // of the decode batch by itself, unscaled
    double attention_ms = 0.0;
    if (shape.decode_requests > 0) {
      auto curve = pass_->decode_curve(shape.decode_requests);
      attention_ms = curve.ms(mean_context(shape.decode_context, shape.decode_requests));
      const double base = base_ms(shape.decode_requests, shape.decode_tokens_each);
      decode = quantised(base + attention_ms, 1.0);
      t.decode = scaled(decode, decode_ratio_);
    }
    const std::uint64_t fresh =
        shape.prefill_isl - std::min(shape.prefill_isl, shape.prefill_prefix);
    if (shape.prefill_requests == 0 || fresh == 0) return t;
    // One fused batch, as the analytic timer has it: prefill is what it takes beyond the decode
    // batch by itself.
    const std::uint64_t decoded = std::uint64_t{shape.decode_requests} * shape.decode_tokens_each;
    const double total_ms =
        pass_->prefill_base_ms(fresh + decoded, shape.prefill_requests + decoded) + overhead_ms_ +
        pass_->prefill_attention_ms(shape) + attention_ms;
    t.prefill = scaled(std::max(Duration{}, quantised(total_ms, 1.0) - decode), step_ratio_);
    return t;
  }

  void decode_run(const DecodeRun& run, std::span<Duration> out) const override {
    const std::uint32_t requests = run.requests;
    std::uint64_t context = run.context;
    if (requests == 0) {
      std::fill(out.begin(), out.end(), Duration{});
      return;
    }
    auto curve = pass_->decode_curve(requests);
    const double base = base_ms(requests, 1);
    for (Duration& d : out) {
      d = quantised(base + curve.ms(mean_context(context, requests)), decode_ratio_);
      context += requests;
    }
  }

  Provenance provenance() const override { return provenance_; }
  std::uint32_t run_passes_max() const override { return 64; }
  std::vector<OpShare> shares(const StepShape& shape) const override {
    return pass_->shares(without_mixed_chunk(shape));
  }

 private:
  static double mean_context(std::uint64_t context, std::uint32_t requests) {
    return as_double(context) / static_cast<double>(requests);
  }
  double base_ms(std::uint32_t requests, std::uint32_t tokens_each) const {
    return pass_->decode_base_ms(requests, tokens_each) + overhead_ms_;
  }

  std::unique_ptr<PassEstimate> pass_;
  Provenance provenance_;
  double overhead_ms_, step_ratio_, decode_ratio_;
};

Provenance provenance_of(DataMode mode) {
  switch (mode) {
    case DataMode::Table:
      return Provenance::Table;
    case DataMode::Hybrid:
      return Provenance::Hybrid;
    case DataMode::Empirical:
      return Provenance::Empirical;
    case DataMode::Sol:
      return Provenance::Sol;
  }
  return Provenance::Sol;
}

}  // namespace

Result<std::shared_ptr<const EstimateTimer>> estimate_timer(EstimateSpec spec,
                                                            const SpeedRatios& ratios) {
  Problems problems;
  check_ratios(ratios, problems);
  check_duration("pass_overhead_ms", spec.pass_overhead_ms, ratios.step, problems);
  if (spec.mode != DataMode::Sol && spec.database == nullptr)
    problems.push_back({.code = "timing.no_data",
                        .message = "this estimator needs measured tables",
                        .place = {},
                        .hint = "name the directory that 'servecast perfdata import' wrote"});
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  auto estimator = std::make_shared<const Estimator>(
      std::move(spec.system), EstimatorSettings{.mode = spec.mode, .transfer = spec.transfer},
      std::move(spec.database));
  auto pass = std::make_unique<PassEstimate>(std::move(estimator), std::move(spec.lists));
  for (const std::string& miss : pass->misses())
    problems.push_back({.code = "timing.no_data",
                        .message = miss,
                        .place = {},
                        .hint = "import more tables, or use estimator hybrid"});
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return std::make_shared<const OperatorTimer>(std::move(pass), provenance_of(spec.mode),
                                               spec.pass_overhead_ms, ratios);
}

}  // namespace servecast::perf
