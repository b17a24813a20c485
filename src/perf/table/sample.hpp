// SPDX-License-Identifier: Apache-2.0
// One measured or interpolated duration, and how the interpolation asks for physical bounds.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <span>

namespace servecast::perf {

struct Sample {
  double ms = 0.0;
  double watts = std::numeric_limits<double>::quiet_NaN();  // mean power while it ran; NaN: unknown

  bool has_power() const { return !std::isnan(watts); }
};

// Physical bound in ms at coordinates in the order of a slice's axes; not positive or not finite
// where there is none.
using BoundAt = std::function<double(std::span<const double>)>;

inline bool usable(double x) {
  return std::isfinite(x) && x > 0.0;
}

// Weighted between two samples; power only where both have it.
inline double blended(double low, double high, double weight) {
  return low * (1.0 - weight) + high * weight;
}

}  // namespace servecast::perf
