// SPDX-License-Identifier: Apache-2.0
#include "fit/fit_rows.hpp"

#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "fit/physics.hpp"
#include "fit/row_case.hpp"
#include "fit/trajectory.hpp"

namespace servecast::fit {
namespace {

// Passes are the larger part of a run's memory; they are condensed at once.
tl::expected<FitRow, std::string> fit_row(const JudgedRow& judged, std::size_t index,
                                          const StepModelPointer& step_model) {
  const auto made = case_of(judged, step_model);
  if (!made) return tl::unexpected(made.error().reason);
  if (std::string reason = impossible_reason(judged.row, *made); !reason.empty())
    return tl::unexpected(std::move(reason));
  const auto run = run_row(*made, {.passes = true});
  if (!run) return tl::unexpected(run.error().front().message);
  FitRow row;
  row.index = index;
  row.placement = made->deployed.placement;
  row.labels = perf::labels_of(row.placement);
  row.labels[catalog::Label::Source] = source_of(judged.protocol);
  row.group = perf::group_of(row.placement);
  const perf::Coefficients coefficients(step_model ? *step_model : catalog::shipped_step_model(),
                                        row.labels);
  row.features = condense(*run, perf::pass_cost_of(row.placement, coefficients));
  row.ttft_ms = judged.row.ttft_ms;
  row.tpot_ms = judged.row.tpot_ms;
  row.curve_output_tokens = judged.row.output_tokens.value_or(0);
  row.special = judged.status == Status::Special;
  return row;
}

}  // namespace

std::string_view source_of(Protocol protocol) {
  return protocol == Protocol::InferenceMax ? "inferencemax" : "other";
}

FitRows fit_rows(const std::vector<JudgedRow>& judged, const FitRowsOptions& options) {
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const bool counts = judged[i].status == Status::Use || judged[i].status == Status::Special;
    if (counts && !judged[i].assumed_concurrency &&
        (judged[i].row.ttft_ms || judged[i].row.tpot_ms))
      wanted.push_back(i);
  }
  std::vector<tl::expected<FitRow, std::string>> made(wanted.size());
  std::atomic<std::size_t> next{0};
  std::mutex told;
  std::uint64_t count = 0;
  const auto work = [&] {
    for (std::size_t at = next++; at < wanted.size(); at = next++) {
      made[at] = fit_row(judged[wanted[at]], wanted[at], options.step_model);
      if (!options.progress) continue;
      const std::scoped_lock lock(told);
      options.progress(++count, wanted.size());
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < options.threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();

  FitRows done;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (made[i])
      done.rows.push_back(*std::move(made[i]));
    else
      done.left_out.emplace_back(wanted[i], made[i].error());
  }
  return done;
}

}  // namespace servecast::fit
