// SPDX-License-Identifier: Apache-2.0
// Where the time of one pass goes, and the least that the hardware allows for it.
//
//   PassCost cost = pass_cost_of(placement, coefficients), peak = peak_cost_of(placement);
//   Breakdown b = breakdown_of(cost, peak, shape, timer->time(shape).sum());
#pragma once

#include <array>
#include <vector>

#include "base/time.hpp"
#include "perf/pass_cost.hpp"

namespace servecast::perf {

struct PartTime {
  PartName name = PartName::HostAndLaunches;
  Duration time = {};
  double bound_ms = 0.0;
};

struct Breakdown {
  std::vector<PartTime> parts = {};  // in the order of PartName, without those that take no time
  Duration total = {};               // the sum of the parts, to the nanosecond
  double bound_ms = 0.0;             // the sum of their bounds
};

// Parts of a pass in ms, by PartName.
using PartSums = std::array<double, kPartNames>;

// As parts_of; the sum is its total_ms but for the last bits.
PartSums part_sums(const PassCost& cost, const StepShape& shape);

// The least time of each part: its bytes and operations at the peaks of the system card, where the
// shorter hides behind the longer; parts come one after another. Of routed experts the share that
// the timer takes for touched. requires: `peak` is a peak_cost_of.
PartSums part_bounds(const PassCost& peak, const StepShape& shape);
double bound_ms(const PassCost& peak, const StepShape& shape);

// `total` as the timer gives it, divided like part_sums; speed ratios divide all parts alike.
Breakdown breakdown_of(const PassCost& cost, const PassCost& peak, const StepShape& shape,
                       Duration total);

}  // namespace servecast::perf
