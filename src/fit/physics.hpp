// SPDX-License-Identifier: Apache-2.0
// What no hardware can do: measurements that claim it are wrong about their run
// (accuracy-notes.md 1.9).
#pragma once

#include <string>

#include "fit/row_case.hpp"

namespace servecast::fit {

// Bounds for the row's TPOT and rate, both on the safe side: peaks of the card, no overhead.
struct Limits {
  // To read the weights that one decode pass touches, in ms a generated token. Of routed experts a
  // share of those that evenly chosen ones would touch: real routers choose unevenly.
  double tpot_ms = 0;
  // The measured rate of all requests, as a share of the peak FLOP rate of their GPUs; 0 where TTFT
  // or TPOT is missing.
  double flops_share = 0;
};
Limits limits_of(const MeasuredRow& row, const RowCase& made);

// Why the row cannot be true; empty: it can.
std::string impossible_reason(const MeasuredRow& row, const RowCase& made);

}  // namespace servecast::fit
