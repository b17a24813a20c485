// SPDX-License-Identifier: Apache-2.0
// A back-test whose predictions come from fits that have not seen the row.
#include "fit/backtest.hpp"
#include "fit/fit_rows.hpp"

namespace servecast::fit {
namespace {

Figures figures_of(const Times& times) {
  Figures figures;
  figures.ttft_ms = times.ttft_ms;
  figures.tpot_ms = times.tpot_ms;
  return figures;
}

}  // namespace

Backtest run_cross_validation(std::vector<JudgedRow> judged, const CrossValidation& how,
                              const BacktestOptions& options) {
  const FitRows fit = fit_rows(
      judged,
      {.threads = options.threads, .step_model = options.step_model, .progress = options.progress});
  const catalog::StepModel& model =
      options.step_model ? *options.step_model : catalog::shipped_step_model();
  const std::vector<std::size_t> folds = folds_of(fit.rows, how.folds);
  const FitOptions solve{.prior = Prior::Tables, .threads = options.threads};
  const std::vector<Times> times = how.one_curve ? calibrated(fit.rows, folds, model, solve)
                                                 : cross_validated(fit.rows, folds, model, solve);
  Backtest done;
  for (JudgedRow& row : judged) {
    done.rows.push_back({.judged = std::move(row)});
    name_cards(done.rows.back());
  }
  for (const auto& [index, reason] : fit.left_out) {
    done.rows[index].judged.status = Status::Excluded;
    done.rows[index].judged.reason = reason;
  }
  std::vector<std::vector<std::string>> known(how.folds);  // groups outside each fold
  for (std::size_t i = 0; i < fit.rows.size(); ++i) {
    for (std::size_t fold = 0; fold < how.folds; ++fold) {
      if (folds[i] != fold) known[fold].push_back(fit.rows[i].group);
    }
  }
  for (std::size_t i = 0; i < fit.rows.size(); ++i) {
    if (times[i].tpot_ms == 0.0) continue;  // of the curve that was given
    RowResult& result = done.rows[fit.rows[i].index];
    result.gpus = perf::gpus_per_worker(fit.rows[i].placement.parallelism);
    result.predicted = figures_of(times[i]);
    result.support = how.one_curve
                         ? Support::Group
                         : support_of(fit.rows[i].labels, fit.rows[i].group, known[folds[i]]);
    add_intervals(result, model);
  }
  return done;
}

}  // namespace servecast::fit
