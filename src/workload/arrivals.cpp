// SPDX-License-Identifier: Apache-2.0
#include "workload/arrivals.hpp"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "base/check.hpp"

namespace servecast::workload {
namespace {

// Extremes of the draws, since 1 - unit() is at least 2^-53: -ln(2^-53), and sqrt(2 * that) for a
// normal.
constexpr double kExponentialMax = 36.7368005696771;
constexpr double kNormalMax = 8.57166268;

// A uniform that a logarithm can take.
double open_unit(Random& random) {
  return std::fmax(1.0 - random.unit(), std::numeric_limits<double>::min());
}

}  // namespace

Arrivals::Arrivals(const Load& load)
    : kind_(load.kind),
      mean_ms_(load.kind == Load::Kind::Burst ? 0.0 : 1000.0 / load.per_second),
      shape_(load.smoothness),
      random_(load.seed) {}

double Arrivals::gap_ms() {
  switch (kind_) {
    case Load::Kind::Burst:
      return 0.0;
    case Load::Kind::ConstantRate:
      return mean_ms_;
    case Load::Kind::Poisson:
      return -mean_ms_ * std::log(open_unit(random_));
    case Load::Kind::Gamma: {
      const double scale = mean_ms_ / shape_;
      if (shape_ >= 1) return scale * gamma(shape_);
      // A shape below 1 is drawn one higher and scaled back; the exponent belongs to the uniform.
      const double draw = gamma(shape_ + 1);
      return scale * draw * std::pow(open_unit(random_), 1 / shape_);
    }
    case Load::Kind::Concurrency:
    case Load::Kind::TraceTimestamps:
      break;
  }
  SERVECAST_CHECK(kind_ != Load::Kind::Concurrency && kind_ != Load::Kind::TraceTimestamps);
  return 0.0;
}

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
double Arrivals::gamma(double shape) {
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double z = random_.normal();
    const double root = 1.0 + c * z;
    const double v = root * root * root;
    if (v <= 0) continue;
    const double u = open_unit(random_);
    if (u < 1.0 - 0.0331 * z * z * z * z) return d * v;
    if (std::log(u) < 0.5 * z * z + d * (1.0 - v + std::log(v))) return d * v;
  }
}

double Arrivals::gap_ms_max() const {
  if (kind_ == Load::Kind::Poisson) return mean_ms_ * kExponentialMax;
  if (kind_ != Load::Kind::Gamma) return mean_ms_;
  const double d = (shape_ < 1 ? shape_ + 1 : shape_) - 1.0 / 3.0;
  const double root = 1.0 + kNormalMax / std::sqrt(9.0 * d);
  return mean_ms_ / shape_ * d * root * root * root;
}

double Arrivals::next_ms() {
  if (started_) now_ms_ += gap_ms();
  started_ = true;
  return now_ms_;
}

Time Arrivals::next() {
  const auto ns = ns_from_ms(next_ms());
  SERVECAST_CHECK(ns.has_value());
  return Time{*ns};
}

std::optional<Problem> check_arrivals(const Load& load, std::string_view rate_field,
                                      std::uint64_t count) {
  if (load.kind == Load::Kind::Burst) return std::nullopt;
  if (!std::isfinite(1000.0 / load.per_second)) {
    return Problem{"workload.rate_too_small",
                   fmt::format("{} is {}: too small, the mean gap 1000 / rate "
                               "milliseconds is infinite",
                               rate_field, load.per_second),
                   {},
                   "the longest simulated time is 146 years"};
  }
  Arrivals arrivals(load);
  const double count_double = static_cast<double>(count);
  if (ns_from_ms(arrivals.gap_ms_max() * count_double).has_value()) return std::nullopt;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double ms = arrivals.next_ms();
    if (ns_from_ms(ms).has_value()) continue;
    return Problem{"workload.arrival_out_of_range",
                   fmt::format("{} is {}: arrival {} of {} would be at {} ms, "
                               "past the range of simulated time",
                               rate_field, load.per_second, i + 1, count, ms),
                   {},
                   "the longest simulated time is 146 years; raise the rate or lower the count"};
  }
  return std::nullopt;
}

}  // namespace servecast::workload
