// SPDX-License-Identifier: Apache-2.0
// What the formulas of engine-vllm.md 5.7 read from a StepShape.
#pragma once

#include <cstdint>

#include "perf/step_timer.hpp"

namespace servecast::perf {

// New prompt tokens of a pass as the engines' formula sees them: count times the difference of the
// two means, each mean rounded down. 0 when nothing is new or when rounding hides it.
inline std::uint64_t prefill_tokens_of_means(const StepShape& shape) {
  if (shape.prefill_requests == 0) return 0;
  const std::uint64_t isl_mean = shape.prefill_isl / shape.prefill_requests;
  const std::uint64_t prefix_mean = shape.prefill_prefix / shape.prefill_requests;
  if (isl_mean <= prefix_mean) return 0;
  return shape.prefill_requests * (isl_mean - prefix_mean);
}

// Signed first: half the cost of a conversion from 64 unsigned bits. requires: tokens < 2^63.
inline double as_double(std::uint64_t tokens) {
  return static_cast<double>(static_cast<std::int64_t>(tokens));
}

}  // namespace servecast::perf
