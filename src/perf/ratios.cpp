// SPDX-License-Identifier: Apache-2.0
#include "perf/ratios.hpp"

#include <fmt/core.h>

#include <cmath>

#include "perf/rounding.hpp"

namespace servecast::perf {
namespace {

void check_ratio(std::string_view field, double value, Problems& problems) {
  if (std::isfinite(value) && value >= 0.0) return;
  problems.push_back(
      {.code = "timing.invalid_ratio",
       .message = fmt::format("{} is {}; it must be finite and not negative", field, value),
       .place = {},
       .hint = "1 leaves durations as they are, 2 halves them"});
}

}  // namespace

void check_ratios(const SpeedRatios& ratios, Problems& problems) {
  check_ratio("speedup_ratio", ratios.step, problems);
  check_ratio("decode_speedup_ratio", ratios.decode, problems);
}

void check_duration(std::string_view field, double ms, double ratio, Problems& problems) {
  if (!std::isfinite(ms) || ms < 0.0) {
    problems.push_back(
        {.code = "timing.invalid_duration",
         .message = fmt::format("invalid duration: {} is {} ms; it must be finite and not negative",
                                field, ms),
         .place = {},
         .hint = "write milliseconds, 0 or more"});
    return;
  }
  const double scaled_ns = ratio > 0.0 ? ms * 1e6 / ratio : ms * 1e6;
  if (ms * 1e6 <= kPartMaxNs && scaled_ns <= kPartMaxNs) return;
  problems.push_back(
      {.code = "timing.invalid_duration",
       .message = fmt::format("invalid duration: {} is {} ms with a speed-up ratio of {}; "
                              "one pass may take at most {} ms",
                              field, ms, ratio, kPartMaxNs / 1e6),
       .place = {},
       .hint = "lower the duration or raise the ratio"});
}

}  // namespace servecast::perf
