// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "base/check.hpp"
#include "perf/ratios.hpp"
#include "perf/rounding.hpp"
#include "perf/shape_sums.hpp"
#include "perf/timers.hpp"

namespace servecast::perf {
namespace {

class FixedTimer final : public StepTimer {
 public:
  FixedTimer(Duration prefill, Duration decode, std::optional<Duration> vision, double vision_ratio)
      : prefill_(prefill), decode_(decode), vision_(vision), vision_ratio_(vision_ratio) {}

  StepTime time(const StepShape& shape) const override {
    if (shape.mixed_chunk) return time(without_mixed_chunk(shape));
    StepTime time{.prefill = prefill_tokens_of_means(shape) > 0 ? prefill_ : Duration{},
                  .decode = shape.decode_requests > 0 ? decode_ : Duration{}};
    if (shape.images > 0) time.vision = vision_of(shape.images, time.prefill);
    return time;
  }
  void decode_run(const DecodeRun& run, std::span<Duration> out) const override {
    std::fill(out.begin(), out.end(), run.requests > 0 ? decode_ : Duration{});
  }
  Provenance provenance() const override { return Provenance::Fixed; }
  bool prices_images() const override { return vision_.has_value(); }
  std::uint32_t run_passes_max() const override { return 256; }

 private:
  // Priced in one call (engine-sglang.md S10), so the sum is scaled and not each image. With the
  // prefill behind it, it stays as long as one part may be.
  Duration vision_of(std::uint32_t images, Duration prefill) const {
    SERVECAST_CHECK(vision_);
    const double raw_ns = static_cast<double>(vision_->ns) * images;
    const Duration raw{round_nonnegative(std::min(raw_ns, kPartMaxNs))};
    return std::min(scaled(raw, vision_ratio_), Duration{std::int64_t(kPartMaxNs)} - prefill);
  }

  Duration prefill_;
  Duration decode_;
  std::optional<Duration> vision_;  // of one image, not scaled yet
  double vision_ratio_;
};

}  // namespace

Result<Timer> fixed_timer(const FixedDurations& durations, const SpeedRatios& ratios) {
  Problems problems;
  check_ratios(ratios, problems);
  const double decode_ratio = ratios.step * ratios.decode;
  check_duration("prefill_ms", durations.prefill_ms, ratios.step, problems);
  check_duration("decode_ms", durations.decode_ms, decode_ratio, problems);
  if (durations.vision_ms) check_duration("vision_ms", *durations.vision_ms, ratios.step, problems);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  std::optional<Duration> vision;
  if (durations.vision_ms) vision = quantised(*durations.vision_ms, 1.0);
  return std::make_shared<const FixedTimer>(quantised(durations.prefill_ms, ratios.step),
                                            quantised(durations.decode_ms, decode_ratio), vision,
                                            ratios.step);
}

}  // namespace servecast::perf
