// SPDX-License-Identifier: Apache-2.0
// Milliseconds of a timing formula to whole nanoseconds, inline because it stands in the loop over
// passes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace servecast::perf {

// Longest duration of one part of a pass: 2^61 ns, 73 years. Formulas that pass it stay there, so
// that the sum of two parts is representable and below kNever.
inline constexpr double kPartMaxNs = 2305843009213693952.0;

// Nearest integer, half upwards; equal to std::round without a call into the math library.
// requires: 0 <= x <= kPartMaxNs. Exact: x minus its integer part has no rounding error in binary.
inline std::int64_t round_nonnegative(double x) {
  const auto whole = static_cast<std::int64_t>(x);
  return whole + static_cast<std::int64_t>(x - static_cast<double>(whole) >= 0.5);
}

// Whole nanoseconds divided by a speed-up ratio, whole nanoseconds again; ratio 0 leaves them as
// they are. requires: ratio is finite and not negative, the duration is not negative.
inline Duration scaled(Duration raw, double ratio) {
  if (ratio == 0.0 || ratio == 1.0) return raw;
  return {round_nonnegative(std::min(static_cast<double>(raw.ns) / ratio, kPartMaxNs))};
}

// engine-vllm.md 5.7: the raw duration becomes whole nanoseconds before it is scaled.
// requires: as scaled; ms is not negative.
inline Duration quantised(double ms, double ratio) {
  return scaled({round_nonnegative(std::min(ms * 1e6, kPartMaxNs))}, ratio);
}

}  // namespace servecast::perf
