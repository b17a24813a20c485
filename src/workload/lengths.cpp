// SPDX-License-Identifier: Apache-2.0
#include "workload/lengths.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace servecast::workload {
namespace {

// The standard normal quantile of 0.95: ties p95 to sigma.
constexpr double kZ95 = 1.6448536269514722;

std::uint32_t rounded(double tokens, const Length& length) {
  return static_cast<std::uint32_t>(std::clamp(std::round(tokens), static_cast<double>(length.min),
                                               static_cast<double>(length.max)));
}

}  // namespace

LengthDraw::LengthDraw(const Length& length) : length_(length) {
  switch (length.kind) {
    case Length::Kind::Fixed:
      constant_ = true;
      value_ = length.fixed;
      return;
    case Length::Kind::Uniform:
      constant_ = length.min == length.max;
      value_ = length.min;
      return;
    case Length::Kind::Normal:
      constant_ = length.stddev == 0;
      value_ = rounded(length.mean, length);
      return;
    case Length::Kind::Lognormal:
      mu_ = std::log(length.p50);
      sigma_ = std::log(length.p95 / length.p50) / kZ95;
      constant_ = length.p50 == length.p95;
      value_ = rounded(length.p50, length);
      return;
  }
}

std::uint32_t LengthDraw::draw_spread(Random& random) const {
  switch (length_.kind) {
    case Length::Kind::Uniform: {
      const std::uint64_t span = std::uint64_t{length_.max} - length_.min + 1;
      return static_cast<std::uint32_t>(length_.min + random.below(span));
    }
    case Length::Kind::Normal:
      return rounded(length_.mean + random.normal() * std::abs(length_.stddev), length_);
    case Length::Kind::Lognormal:
      return rounded(std::exp(mu_ + sigma_ * random.normal()), length_);
    case Length::Kind::Fixed:
      break;
  }
  SERVECAST_CHECK(length_.kind != Length::Kind::Fixed);
  return 0;
}

}  // namespace servecast::workload
