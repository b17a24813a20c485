// SPDX-License-Identifier: Apache-2.0
#include "perf/ops/op_time.hpp"

#include <algorithm>

namespace servecast::perf {
namespace {

constexpr double kCoverageMin = 0.9;  // of a pass's time, for its power to be worth printing

bool neutral(const OpTime& time) {
  return time.ms == 0.0 && time.energy_mj == 0.0;
}

TimeSource merged(const OpTime& a, const OpTime& b) {
  if (neutral(a)) return b.source;
  if (neutral(b) || a.source == b.source) return a.source;
  return TimeSource::Mixed;
}

}  // namespace

std::string_view to_string(TimeSource source) {
  switch (source) {
    case TimeSource::None:
      return "none";
    case TimeSource::Silicon:
      return "silicon";
    case TimeSource::Empirical:
      return "empirical";
    case TimeSource::Sol:
      return "sol";
    case TimeSource::Estimated:
      return "estimated";
    case TimeSource::Mixed:
      return "mixed";
  }
  return "";
}

OpTime operator+(const OpTime& a, const OpTime& b) {
  return {a.ms + b.ms, a.energy_mj + b.energy_mj, merged(a, b)};
}

OpTime overlapped(const OpTime& a, const OpTime& b) {
  return {std::max(a.ms, b.ms), a.energy_mj + b.energy_mj, merged(a, b)};
}

std::optional<double> mean_watts(const OpTime& total, double covered_ms) {
  if (total.ms <= 0.0 || covered_ms / total.ms < kCoverageMin) return std::nullopt;
  return total.energy_mj / total.ms;
}

}  // namespace servecast::perf
