// SPDX-License-Identifier: Apache-2.0
// When synthetic requests or sessions start (replay.md 10.2). Drawn from load.seed alone, so that
// the load never changes what the requests contain.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/problem.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "workload/spec.hpp"

namespace servecast::workload {

// requires: load.kind is Poisson, ConstantRate, Gamma or Burst, and check_arrivals found nothing.
class Arrivals {
 public:
  explicit Arrivals(const Load& load);
  Time next();       // the first is 0; gaps add up in double milliseconds
  double next_ms();  // the same arrival before it is rounded to nanoseconds
  // No gap is longer: the generator's uniforms stop at 2^-53.
  double gap_ms_max() const;

 private:
  double gap_ms();
  double gamma(double shape);  // of scale 1
  Load::Kind kind_;
  double mean_ms_;
  double shape_;
  Random random_;
  double now_ms_ = 0;
  bool started_ = false;
};

// What makes `count` arrivals impossible: a mean gap that is infinite, or times past the range of
// the clock. `rate_field` is the name of the rate in messages.
std::optional<Problem> check_arrivals(const Load& load, std::string_view rate_field,
                                      std::uint64_t count);

}  // namespace servecast::workload
