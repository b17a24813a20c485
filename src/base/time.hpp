// SPDX-License-Identifier: Apache-2.0
// Simulated time is whole nanoseconds in signed 64 bits. Performance models compute in double
// milliseconds; this header is the only place that converts (round half away from zero,
// decisions.md 18).
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>

namespace servecast {

struct Duration {
  std::int64_t ns = 0;
  friend auto operator<=>(Duration, Duration) = default;
  friend Duration operator+(Duration a, Duration b) { return {a.ns + b.ns}; }
  friend Duration operator-(Duration a, Duration b) { return {a.ns - b.ns}; }
};

struct Time {
  std::int64_t ns = 0;
  friend auto operator<=>(Time, Time) = default;
  friend Time operator+(Time t, Duration d) { return {t.ns + d.ns}; }
  friend Duration operator-(Time a, Time b) { return {a.ns - b.ns}; }
};

// Later than every event of a run. 2^62 ns is 146 years, so sums of two stay representable.
inline constexpr Time kNever{std::int64_t{1} << 62};

// Nothing when `ms` is not finite or passes the range of simulated time.
inline std::optional<std::int64_t> ns_from_ms(double ms) {
  const double ns = std::round(ms * 1e6);
  if (!(std::abs(ns) <= 4.6e18)) return std::nullopt;
  return static_cast<std::int64_t>(ns);
}
inline double ms_from_ns(std::int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}
inline double to_ms(Duration d) {
  return ms_from_ns(d.ns);
}
inline double to_ms(Time t) {
  return ms_from_ns(t.ns);
}

}  // namespace servecast
