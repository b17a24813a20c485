// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "perf/ratios.hpp"
#include "perf/rounding.hpp"
#include "perf/shape_sums.hpp"
#include "perf/timers.hpp"

namespace servecast::perf {
namespace {

class FixedTimer final : public StepTimer {
 public:
  FixedTimer(Duration prefill, Duration decode) : prefill_(prefill), decode_(decode) {}

  StepTime time(const StepShape& shape) const override {
    return {.prefill = prefill_tokens_of_means(shape) > 0 ? prefill_ : Duration{},
            .decode = shape.decode_requests > 0 ? decode_ : Duration{}};
  }
  void decode_run(std::uint32_t requests, std::uint64_t, std::uint64_t,
                  std::span<Duration> out) const override {
    std::fill(out.begin(), out.end(), requests > 0 ? decode_ : Duration{});
  }
  Provenance provenance() const override { return Provenance::Fixed; }
  std::uint32_t run_passes_max() const override { return 256; }

 private:
  Duration prefill_;
  Duration decode_;
};

}  // namespace

Result<Timer> fixed_timer(const FixedDurations& durations, const SpeedRatios& ratios) {
  Problems problems;
  check_ratios(ratios, problems);
  const double decode_ratio = ratios.step * ratios.decode;
  check_duration("prefill_ms", durations.prefill_ms, ratios.step, problems);
  check_duration("decode_ms", durations.decode_ms, decode_ratio, problems);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return std::make_shared<const FixedTimer>(quantised(durations.prefill_ms, ratios.step),
                                            quantised(durations.decode_ms, decode_ratio));
}

}  // namespace servecast::perf
