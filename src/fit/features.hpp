// SPDX-License-Identifier: Apache-2.0
// A run as a sum over passes: in a closed loop the order of passes hardly depends on how long they
// take, so mean TTFT and TPOT are weighted sums of pass times, and a fit can try other coefficients
// without running again.
//
//   Features features = condense(*run_row(*made, {.passes = true}), cost);
//   Engine times = engine_times(features, perf::pass_cost_of(placement, coefficients));
#pragma once

#include <cstdint>
#include <vector>

#include "fit/trajectory.hpp"
#include "perf/pass_cost.hpp"

namespace servecast::fit {

// Passes of nearly one shape, as their mean shape.
struct Piece {
  perf::StepShape shape = {};
  // What a millisecond more in each of these passes adds to the mean TTFT and the mean TPOT.
  double ttft = 0.0, tpot = 0.0;
};

// What the way between engine and client depends on.
struct ClientLoad {
  double first_wave = 0.0;     // share of the requests that are there when the run starts
  double concurrency = 0.0;    // their number
  double input_tokens = 0.0;   // mean of all
  double tokens_a_step = 1.0;  // above 1 with speculation
};
// requires: some request completed.
ClientLoad client_load_of(const Trajectory& run);

struct Features {
  std::vector<Piece> pieces = {};
  ClientLoad load = {};
};

// Of the ranks of a pass the one that takes longest by `cost` stands for all.
Features condense(const Trajectory& run, const perf::PassCost& cost);

// Means over requests, in ms.
struct Times {
  double ttft_ms = 0.0, tpot_ms = 0.0;
};
// As the engine would log them.
Times engine_times(const Features& features, const perf::PassCost& cost);

// What the client sees beyond the engine: tokeniser and front end, tokens that are sent a few at a
// time, requests taken in one after the other, kernels that compile in the first pass
// (accuracy-notes.md 2.2). TPOT is the engine's.
double client_ttft_ms(const ClientLoad& load, const Times& engine,
                      const perf::Coefficients& coefficients);
// What the median request waits beyond the engine: it is not among the first.
double client_delay_p50_ms(const ClientLoad& load, double tpot_ms,
                           const perf::Coefficients& coefficients);

}  // namespace servecast::fit
