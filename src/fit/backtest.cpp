// SPDX-License-Identifier: Apache-2.0
#include "fit/backtest.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "fit/features.hpp"
#include "fit/fit_rows.hpp"
#include "fit/physics.hpp"
#include "fit/row_case.hpp"

namespace servecast::fit {
namespace {

std::string text_of(const perf::Parallelism& p) {
  std::string text = fmt::format("tp{}", p.tensor);
  if (p.pipeline > 1) text += fmt::format(" pp{}", p.pipeline);
  if (p.attention_data > 1) text += fmt::format(" dp{}", p.attention_data);
  if (p.moe_tensor > 1 && p.moe_expert > 1) text += fmt::format(" moe{}", p.moe_tensor);
  if (p.moe_expert > 1) text += fmt::format(" ep{}", p.moe_expert);
  return text;
}

void give_up(RowResult& result, Status status, std::string reason) {
  result.judged.status = status;
  result.judged.reason = std::move(reason);
}

// Value times and divided by what 9 of 10 rows with this support are off by.
std::optional<Range> range_of(std::optional<double> value, double half_width) {
  if (!value || half_width <= 0.0) return std::nullopt;
  return Range{*value * std::exp(-half_width), *value * std::exp(half_width)};
}

// From the engine's times to the client's, with their intervals.
void add_client(RowResult& result, const RowCase& made, const Trajectory& run,
                const catalog::StepModel& model) {
  catalog::LabelValues labels = perf::labels_of(made.deployed.placement);
  labels[catalog::Label::Source] = source_of(result.judged.protocol);
  const perf::Coefficients coefficients(model, labels);
  const ClientLoad load = client_load_of(run);
  Figures& figures = *result.predicted;
  const double tpot = figures.tpot_ms.value_or(0.0);
  const double delay = client_ttft_ms(load, {.ttft_ms = 0.0, .tpot_ms = tpot}, coefficients);
  if (figures.ttft_ms) *figures.ttft_ms += delay;
  if (figures.e2e_ms) *figures.e2e_ms += delay;
  if (figures.ttft_p50_ms) *figures.ttft_p50_ms += client_delay_p50_ms(load, tpot, coefficients);
  result.support = support_of(labels, perf::group_of(made.deployed.placement), model.groups);
  add_intervals(result, model);
}

void run_case(RowResult& result, const RowCase& made, const catalog::StepModel& model) {
  const perf::Parallelism& widths = made.config.engine.parallelism;
  result.gpus = perf::gpus_per_worker(widths);
  result.widths = text_of(widths);
  result.repaired = made.repaired;
  if (result.judged.status == Status::Use) {
    if (std::string reason = impossible_reason(result.judged.row, made); !reason.empty())
      return give_up(result, Status::Excluded, std::move(reason));
  }
  const Result<Trajectory> run = run_row(made);
  if (!run) return give_up(result, Status::Unanswerable, run.error().front().message);
  result.predicted = figures_of(*run);
  add_client(result, made, *run, model);
}

}  // namespace

void add_intervals(RowResult& result, const catalog::StepModel& model) {
  const catalog::Interval* interval = interval_of(model, result.support);
  if (interval == nullptr) return;
  result.ttft_90 = range_of(result.predicted->ttft_ms, interval->ttft);
  result.tpot_90 = range_of(result.predicted->tpot_ms, interval->tpot);
}

void name_cards(RowResult& result) {
  const MeasuredRow& row = result.judged.row;
  const auto model = model_of(row.model);
  const auto system = system_of(row.system);
  result.model = model ? model->name : row.model;
  result.system = system ? system->name : row.system;
}

RowResult run_judged(JudgedRow judged, const StepModelPointer& step_model) {
  RowResult result{.judged = std::move(judged)};
  name_cards(result);
  if (result.judged.status != Status::Use && result.judged.status != Status::Special) return result;
  auto made = case_of(result.judged, step_model);
  if (made) {
    run_case(result, *made, step_model ? *step_model : catalog::shipped_step_model());
  } else {
    give_up(result, made.error().status, std::move(made.error().reason));
  }
  return result;
}

Backtest run_backtest(std::vector<JudgedRow> rows, const BacktestOptions& options) {
  Backtest done;
  done.rows.resize(rows.size());
  // Long runs first, so that no thread ends with the longest of all.
  std::vector<std::size_t> order(rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto work = [&](std::size_t i) {
    const MeasuredRow& row = rows[i].row;
    return std::uint64_t{row.concurrency.value_or(0)} * row.output_tokens.value_or(0);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return work(a) > work(b); });
  std::atomic<std::size_t> next{0};
  std::mutex told;
  std::uint64_t count = 0;
  std::exception_ptr broken;  // of a thread that memory ran out for
  const auto run_rows = [&] {
    for (std::size_t at = next++; at < order.size(); at = next++) {
      const std::size_t i = order[at];
      done.rows[i] = run_judged(std::move(rows[i]), options.step_model);
      if (!options.progress) continue;
      const std::scoped_lock lock(told);
      options.progress(++count, order.size());
    }
  };
  const auto run = [&] {
    try {
      run_rows();
    } catch (...) {
      const std::scoped_lock lock(told);
      broken = std::current_exception();
      next = order.size();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < options.threads; ++i) threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
  if (broken) std::rethrow_exception(broken);
  return done;
}

}  // namespace servecast::fit
