// SPDX-License-Identifier: Apache-2.0
// What happened in the simulation of a row: when each request reached which point and, if asked
// for, every pass with its shape. From it come the row's figures, and a fit's features.
//
//   Result<Trajectory> run = run_row(*row_case, {.passes = true});
//   Figures figures = figures_of(*run);
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/problem.hpp"
#include "base/time.hpp"
#include "fit/row_case.hpp"
#include "perf/step_timer.hpp"
#include "replay/records.hpp"

namespace servecast::fit {

// Of one completed request.
struct Milestones {
  Time arrival, first_admit, first_token, last_token;
  std::uint32_t input_tokens = 0, output_tokens = 0;
  std::uint32_t rank = 0;
};

// One rank's part of one pass.
struct PassShape {
  Time start, end;
  std::uint32_t rank = 0;
  perf::StepShape shape = {};
  // Requests of all ranks that had arrived and had no first token before this pass ended: so many
  // first tokens wait for it.
  std::uint64_t awaiting_first = 0;
};

struct Trajectory {
  std::vector<Milestones> requests = {};  // in order of completion
  std::vector<PassShape> passes = {};     // in order of (end, rank), if asked for
  replay::RunTotals totals = {};
  std::uint32_t streams = 1;  // of RowCase: so many workers share their GPUs
};

struct TrajectoryOptions {
  bool passes = false;  // slower: every pass is told one by one
};

// Problems: a run that could not go on, or one in which a request did not complete
// ("fit.incomplete").
Result<Trajectory> run_row(const RowCase& made, const TrajectoryOptions& options = {});

// Times in ms, over requests; rates of output tokens from first arrival to end of the run.
struct Figures {
  std::optional<double> ttft_ms, ttft_p50_ms, tpot_ms, e2e_ms;  // TPOT: of outputs above one token
  std::optional<double> output_tok_s_per_gpu;
};
Figures figures_of(const Trajectory& trajectory);

}  // namespace servecast::fit
