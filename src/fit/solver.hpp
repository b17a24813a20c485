// SPDX-License-Identifier: Apache-2.0
// Which coefficients explain the measurements best, without leaving their priors for nothing.
//
//   catalog::StepModel fitted = fit_model(rows, catalog::shipped_step_model(), {.threads = 2});
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "catalog/step_model.hpp"
#include "fit/features.hpp"
#include "perf/placement.hpp"

namespace servecast::fit {

struct FitRow {
  std::size_t index = 0;  // of the row in its file
  perf::Placement placement = {};
  catalog::LabelValues labels = {};
  std::string group = {};  // perf::group_of
  Features features = {};
  std::optional<double> ttft_ms, tpot_ms;  // measured
  std::uint32_t curve_output_tokens = 0;   // as filed; tells curves of one group apart
  bool special = false;                    // its TTFT is known to be odd: it does not teach
};

// Both times of a row as a client sees them.
Times predicted(const FitRow& row, const perf::Coefficients& coefficients);

// Where the priors of a fit come from.
enum class Prior : unsigned char {
  Tables,  // the `prior` of each effect: a fit from nothing
  Fitted,  // its fitted value and spread: a fit that adds measurements to those of before
};

struct FitOptions {
  Prior prior = Prior::Tables;
  unsigned threads = 1;
  int iterations = 8;
};

// The effects of `model` and those that its deviations have for the rows, at the mode of prior and
// measurements: least squares of the logarithms of predicted over measured, robust against rows
// that no coefficient explains, by Gauss-Newton. Spreads are those of the normal distribution
// around the mode. The same bytes for any number of threads.
catalog::StepModel fit_model(const std::vector<const FitRow*>& rows,
                             const catalog::StepModel& model, const FitOptions& options);

}  // namespace servecast::fit
