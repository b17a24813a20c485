// SPDX-License-Identifier: Apache-2.0
#include "fit/solver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "fit/a_row.hpp"
#include "fit/fit_rows.hpp"
#include "fit/validation.hpp"

namespace servecast::fit {
namespace {

using catalog::Coefficient;
using catalog::Label;

MeasuredRow row_of(const char* engine, const char* model, std::uint32_t concurrency,
                   std::uint32_t attention_data = 1) {
  MeasuredRow row = a_row();
  row.engine = engine;
  row.model = model;
  row.system = "h200_sxm";
  row.precision = "";
  row.concurrency = concurrency;
  row.input_tokens = 600;
  row.output_tokens = 40;
  row.requests = 4 * concurrency;
  row.widths = {};
  if (attention_data > 1) row.widths.attention_data = row.widths.moe_expert = attention_data;
  return row;
}

// The rows of two engines, measured as the shipped model with `change` predicts them.
std::vector<FitRow> synthetic_rows(
    const std::function<void(const FitRow&, perf::Coefficients&)>& change) {
  std::vector<JudgedRow> judged_rows;
  for (const char* engine : {"vllm", "sglang"}) {
    for (const std::uint32_t concurrency : {1U, 4U, 16U, 48U})
      judged_rows.push_back(judged(row_of(engine, "Qwen/Qwen3-8B", concurrency)));
  }
  std::vector<FitRow> rows = fit_rows(judged_rows, {.threads = 1}).rows;
  for (FitRow& row : rows) {
    perf::Coefficients truth(catalog::shipped_step_model(), row.labels);
    change(row, truth);
    const Times times = predicted(row, truth);
    row.ttft_ms = times.ttft_ms;
    row.tpot_ms = times.tpot_ms;
  }
  return rows;
}

std::vector<const FitRow*> pointers(const std::vector<FitRow>& rows) {
  std::vector<const FitRow*> all;
  for (const FitRow& row : rows) all.push_back(&row);
  return all;
}

TEST(Features, SumUpToTheTimesOfTheRun) {
  for (const JudgedRow& row :
       {judged(row_of("vllm", "Qwen/Qwen3-8B", 16)), judged(row_of("sglang", "Qwen/Qwen3-8B", 16)),
        judged(row_of("trtllm", "Qwen/Qwen3-30B-A3B", 12)),
        judged(row_of("vllm", "Qwen/Qwen3-30B-A3B", 16, 4))}) {
    const auto made = case_of(row);
    ASSERT_TRUE(made) << made.error().reason;
    const Trajectory run = *run_row(*made, {.passes = true});
    const perf::Coefficients coefficients(catalog::shipped_step_model(),
                                          perf::labels_of(made->deployed.placement));
    const perf::PassCost cost = perf::pass_cost_of(made->deployed.placement, coefficients);
    const Times times = engine_times(condense(run, cost), cost);
    const Figures figures = figures_of(run);
    EXPECT_NEAR(times.tpot_ms / *figures.tpot_ms, 1.0, 0.01) << row.row.engine;
    EXPECT_NEAR(times.ttft_ms / *figures.ttft_ms, 1.0, 0.02) << row.row.engine;
  }
}

TEST(Features, TheClientWaitsLongerThanTheEngineLogs) {
  ClientLoad load{.first_wave = 0.25, .concurrency = 8, .input_tokens = 100, .tokens_a_step = 1};
  perf::Coefficients c(catalog::shipped_step_model(), {});
  c.set(Coefficient::ClientConstant, 5);
  c.set(Coefficient::ClientPerToken, 0.01);
  c.set(Coefficient::FlushPasses, 2);
  c.set(Coefficient::ColdStart, 40);
  c.set(Coefficient::Intake, 1);
  // 5 + 0.01 * 100 + 2 * 10 + 1, then a quarter of (40 + 1 * 8 / 2).
  EXPECT_DOUBLE_EQ(client_delay_p50_ms(load, 10, c), 27);
  EXPECT_DOUBLE_EQ(client_ttft_ms(load, {.ttft_ms = 100, .tpot_ms = 10}, c), 138);
}

TEST(Solver, FindsWhatOneEngineTakesLonger) {
  const auto rows = synthetic_rows([](const FitRow& row, perf::Coefficients& c) {
    if (row.labels[Label::Engine] == "sglang")
      c.set(Coefficient::LaunchPerLayer, 1.5 * c[Coefficient::LaunchPerLayer]);
  });
  const catalog::StepModel& before = catalog::shipped_step_model();
  const catalog::StepModel after = fit_model(pointers(rows), before, {.prior = Prior::Fitted});
  for (const FitRow& row : rows) {
    const Times times = predicted(row, perf::Coefficients(after, row.labels));
    EXPECT_NEAR(times.tpot_ms / *row.tpot_ms, 1.0, 0.05) << row.labels[Label::Engine];
    const double launch = perf::Coefficients(after, row.labels)[Coefficient::LaunchPerLayer] /
                          perf::Coefficients(before, row.labels)[Coefficient::LaunchPerLayer];
    if (row.labels[Label::Engine] == "sglang")
      EXPECT_GT(launch, 1.05);
    else
      EXPECT_NEAR(launch, 1.0, 0.05);
  }
}

TEST(Solver, LeavesAModelThatFitsAsItIs) {
  const auto rows = synthetic_rows([](const FitRow&, perf::Coefficients&) {});
  const catalog::StepModel& before = catalog::shipped_step_model();
  const catalog::StepModel after = fit_model(pointers(rows), before, {.prior = Prior::Fitted});
  for (std::size_t i = 0; i < before.effects.size(); ++i)
    EXPECT_NEAR(after.effects[i].factor / before.effects[i].factor, 1.0, 1e-4);
}

TEST(Solver, KnowsItsOwnEffectsAgain) {
  const auto rows = synthetic_rows([](const FitRow&, perf::Coefficients&) {});
  const catalog::StepModel& before = catalog::shipped_step_model();
  const catalog::StepModel once = fit_model(pointers(rows), before, {.iterations = 1});
  const catalog::StepModel read = *catalog::parse_step_model(to_json(once), "once.json");
  EXPECT_EQ(fit_model(pointers(rows), read, {.iterations = 1}).effects.size(), once.effects.size());
}

TEST(Solver, GivesTheSameBytesForAnyNumberOfThreads) {
  const auto rows = synthetic_rows([](const FitRow&, perf::Coefficients& c) {
    c.set(Coefficient::PerSequence, 2 * c[Coefficient::PerSequence]);
  });
  const catalog::StepModel& before = catalog::shipped_step_model();
  const std::string one = to_json(fit_model(pointers(rows), before, {.threads = 1}));
  EXPECT_EQ(one, to_json(fit_model(pointers(rows), before, {.threads = 3})));
  EXPECT_NE(one, to_json(before));
}

FitRow named(std::string group) {
  FitRow row;
  row.group = std::move(group);
  return row;
}

TEST(Validation, FoldsKeepGroupsWhole) {
  std::vector<FitRow> rows;
  for (const char* group : {"a s e f", "b s e f", "a s e f", "c s e f", "d s e f", "b s e f"})
    rows.push_back(named(group));
  const auto folds = folds_of(rows, 2);
  EXPECT_EQ(folds[0], folds[2]);
  EXPECT_EQ(folds[1], folds[5]);
  EXPECT_NE(folds[0], folds[1]);
  EXPECT_EQ(std::set<std::size_t>(folds.begin(), folds.end()).size(), 2U);
}

TEST(Validation, SupportIsTheNearestMeasuredGroup) {
  catalog::LabelValues labels;
  labels[Label::Network] = "net";
  labels[Label::Engine] = "vllm";
  const std::string group = "net h200 vllm bf16/none";
  EXPECT_EQ(support_of(labels, group, {"net h100 sglang x", group}), Support::Group);
  EXPECT_EQ(support_of(labels, group, {"other h200 vllm x", "net h100 vllm x"}),
            Support::EngineAndNetwork);
  EXPECT_EQ(support_of(labels, group, {"net h100 sglang x", "other h200 vllm x"}), Support::Engine);
  EXPECT_EQ(support_of(labels, group, {"net h100 sglang x"}), Support::None);
}

TEST(Validation, ShipsIntervalsThatWidenWithDistance) {
  const catalog::StepModel& model = catalog::shipped_step_model();
  ASSERT_EQ(model.intervals.size(), 4U);
  EXPECT_FALSE(model.groups.empty());
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_LE(model.intervals[i - 1].tpot, model.intervals[i].tpot);
    EXPECT_LE(model.intervals[i - 1].ttft, model.intervals[i].ttft);
  }
  EXPECT_LT(model.intervals[0].tpot, model.intervals[3].tpot);
}

}  // namespace
}  // namespace servecast::fit
