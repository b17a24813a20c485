// SPDX-License-Identifier: Apache-2.0
// The timers. Each is made once per role and shared by its ranks.
//
//   auto timer = perf::fixed_timer({.prefill_ms = 10.0, .decode_ms = 2.0});
//   if (!timer) return report(timer.error());
//   perf::StepTime t = (*timer)->time({.decode_requests = 1, .decode_context = 9});
#pragma once

#include <memory>
#include <optional>

#include "base/problem.hpp"
#include "catalog/step_model.hpp"
#include "perf/placement.hpp"
#include "perf/step_timer.hpp"

namespace servecast::perf {

// Divisors of modelled durations (engine-vllm.md 2). 0 leaves a duration as it is.
struct SpeedRatios {
  double step = 1.0;    // `speedup_ratio`: divides vision, prefill and decode
  double decode = 1.0;  // `decode_speedup_ratio`: divides decode once more
};

// Milliseconds of every pass that prefills, of every pass that decodes, and of every image that a
// pass encodes; without the last one images have no price.
struct FixedDurations {
  double prefill_ms = 0.0;
  double decode_ms = 0.0;
  std::optional<double> vision_ms = {};
};

using Timer = std::shared_ptr<const StepTimer>;

// Problems: a duration or a ratio that is negative or not finite, or a duration beyond the range of
// simulated time once it is scaled (code "timing.invalid_duration" or "timing.invalid_ratio").
Result<Timer> fixed_timer(const FixedDurations& durations, const SpeedRatios& ratios = {});

// The built-in polynomial of engine-vllm.md 5.7. Problems: ratios as above.
Result<Timer> polynomial_timer(const SpeedRatios& ratios = {});

// Durations from the model's operators: bytes and operations of each, divided by what the hardware
// reaches, plus collectives and host cost (docs/reference/performance-model.md). One rank's batch
// decides; with attention-data ranks the others are taken to hold the same. Monotone in tokens,
// context and batch. Does not ask whether the placement fits into memory: ask kv_capacity first.
// Problems: those of check(placement), ratios as above, context parallelism ("timing.unsupported").
Result<Timer> analytic_timer(const Placement& placement, const SpeedRatios& ratios = {},
                             const catalog::StepModel& model = catalog::shipped_step_model());

}  // namespace servecast::perf
