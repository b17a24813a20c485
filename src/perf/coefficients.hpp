// SPDX-License-Identifier: Apache-2.0
// What a pass costs beyond bytes and operations, and how much of the hardware's peak kernels reach:
// the coefficients of one placement, looked up in what was learnt from measurements
// (catalog/step_model.hpp).
#pragma once

#include <array>

#include "catalog/step_model.hpp"
#include "perf/placement.hpp"

namespace servecast::perf {

// Format of most weights that every token passes: of the dense part, or where experts take its
// place, of attention.
catalog::Precision main_precision(const Placement& placement);

// Where the placement stands among the cases that were measured. `source` stays empty.
catalog::LabelValues labels_of(const Placement& placement);

// In the order and the units of catalog::Coefficient. Shares are at most 1: what measurements say
// above that is another coefficient's error, and no pass is faster than its bound.
class Coefficients {
 public:
  Coefficients(const catalog::StepModel& model, const catalog::LabelValues& labels);

  double operator[](catalog::Coefficient c) const { return values_[static_cast<std::size_t>(c)]; }
  // For fits and tests.
  void set(catalog::Coefficient c, double value);

 private:
  std::array<double, catalog::kCoefficients> values_;
};

// Latency of a small collective over `gpus` GPUs relative to two: a quarter more for each doubling.
double collective_growth(std::uint64_t gpus);

// "network system engine formats" of StepModel::groups.
std::string group_of(const Placement& placement);

}  // namespace servecast::perf
