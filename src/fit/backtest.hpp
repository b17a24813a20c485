// SPDX-License-Identifier: Apache-2.0
// Replays every row that can be replayed and keeps what was predicted beside what was measured.
//
//   Backtest done = run_backtest(judge(rows, shipped_rules(), {}), {.threads = 2});
//   print(backtest_table(done));
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fit/hygiene.hpp"
#include "fit/trajectory.hpp"
#include "fit/validation.hpp"

namespace servecast::fit {

// A 90 % interval, ms.
struct Range {
  double low = 0.0, high = 0.0;
};

struct RowResult {
  JudgedRow judged = {};                // with the final status
  std::string model = {}, system = {};  // names of the cards; as filed where there are none
  std::uint64_t gpus = 0;               // 0: not known
  std::string widths = {};              // "tp8 ep8", those that ran
  std::string repaired = {};
  std::optional<Figures> predicted = {};  // as the client sees them
  Support support = Support::None;        // how near the step model's measurements are
  std::optional<Range> ttft_90 = {}, tpot_90 = {};
};

struct Backtest {
  std::vector<RowResult> rows = {};  // in the order of the file
};

struct BacktestOptions {
  unsigned threads = 1;
  StepModelPointer step_model = {};  // nothing: the one in the program
  // Called from any thread, one at a time, with (rows done, rows in all).
  std::function<void(std::uint64_t, std::uint64_t)> progress = {};
};

// The result does not depend on the number of threads.
Backtest run_backtest(std::vector<JudgedRow> rows, const BacktestOptions& options);

struct CrossValidation {
  std::size_t folds = 5;  // > 1
  // A fit also knows one curve of the row's own group; rows of that curve are not predicted.
  bool one_curve = false;
};

// As run_backtest, but each row as predicted by a fit to the groups of other folds, from the priors
// of the step model: TTFT and TPOT only. Rows that teach nothing are left out with the reason.
Backtest run_cross_validation(std::vector<JudgedRow> rows, const CrossValidation& how,
                              const BacktestOptions& options);

// Fills model and system.
void name_cards(RowResult& result);
// Fills the intervals of a row whose prediction and support stand.
void add_intervals(RowResult& result, const catalog::StepModel& model);

// One row, as run_backtest does it.
RowResult run_judged(JudgedRow judged, const StepModelPointer& step_model = {});

}  // namespace servecast::fit
