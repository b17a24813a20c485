// SPDX-License-Identifier: Apache-2.0
// Timers that evaluate a model's operators one by one: from measured tables, from tables with
// formulas where they end, or from physical bounds (docs/reference/estimators.md).
//
//   auto timer = estimate_timer({.system = card, .lists = lists, .mode = DataMode::Hybrid,
//   .database = db});
#pragma once

#include <memory>

#include "perf/ops/estimator.hpp"
#include "perf/ops/op_lists.hpp"
#include "perf/ops/pass_estimate.hpp"
#include "perf/timers.hpp"

namespace servecast::perf {

struct EstimateSpec {
  catalog::SystemCard system;
  OpLists lists;  // not those of parity mode
  DataMode mode = DataMode::Hybrid;
  Transfer transfer = Transfer::ShapeAndPrecision;
  std::shared_ptr<const PerfDatabase> database = nullptr;  // not needed for bounds alone
  double pass_overhead_ms = 0.0;  // of the engine between two passes; operators do not hold it
};

class EstimateTimer : public StepTimer {
 public:
  // Each operator's part of the pass, and whether a table answered for it.
  virtual std::vector<OpShare> shares(const StepShape& shape) const = 0;
};

// Problems: "timing.no_data" for each operator that nothing answers, with system, engine, version
// and key; ratios as for the other timers; an overhead that is negative or not finite.
Result<std::shared_ptr<const EstimateTimer>> estimate_timer(EstimateSpec spec,
                                                            const SpeedRatios& ratios = {});

}  // namespace servecast::perf
