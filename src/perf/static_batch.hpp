// SPDX-License-Identifier: Apache-2.0
// A batch of equal requests that starts and ends together: one pass over all prompts, then a decode
// pass a token (perfmodel.md 8.1).
//
//   StaticTimes times = static_times(*timer, {.input_tokens = 1024, .output_tokens = 128});
//   double ttft_ms = to_ms(times.prefill), tpot_ms = times.tpot_ms();
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "perf/step_timer.hpp"

namespace servecast::perf {

struct StaticBatch {
  std::uint32_t input_tokens = 1;     // of each request, >= 1
  std::uint32_t output_tokens = 1;    // of each request, >= 1
  std::uint32_t requests = 1;         // of one rank, >= 1
  std::uint64_t capacity_tokens = 0;  // as StepShape::capacity_tokens

  // The pass over the prompts gives the first token.
  std::uint32_t decode_passes() const { return output_tokens - 1; }
};

StepShape prefill_shape(const StaticBatch& batch);
// requires: pass < decode_passes().
StepShape decode_shape(const StaticBatch& batch, std::uint32_t pass);

struct StaticTimes {
  Duration prefill = {};
  Duration decode = {};  // of all decode passes
  std::uint32_t decode_passes = 0;

  Duration request() const { return prefill + decode; }
  // Mean decode pass, in whole picoseconds as a run's report has it; 0 without decode passes.
  double tpot_ms() const;
};

// Every pass as the timer has it, in a run: what a replay of this batch takes, where its engine
// makes the same passes.
StaticTimes static_times(const StepTimer& timer, const StaticBatch& batch);

}  // namespace servecast::perf
