// SPDX-License-Identifier: Apache-2.0
#include "fit/backtest.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "fit/a_row.hpp"
#include "fit/backtest_report.hpp"
#include "fit/errors.hpp"

namespace servecast::fit {
namespace {

std::vector<MeasuredRow> some_rows() {
  std::vector<MeasuredRow> rows;
  for (std::uint32_t i = 0; i < 6; ++i) {
    MeasuredRow& row = rows.emplace_back(a_row());
    row.id = "2026_" + std::to_string(i);
    row.concurrency = 1 << i;
    row.engine = i % 2 == 0 ? "vllm" : "sglang";
  }
  rows[4].model = "no/model";
  rows[5].mode = "disagg";
  rows.push_back(rows[0]);
  rows.back().id = "a \"quoted\", <copy>";
  return rows;
}

Backtest run(unsigned threads) {
  return run_backtest(judge(some_rows(), {}, {}), {.threads = threads, .progress = {}});
}

RowResult with_errors(double predicted, double measured, Status status = Status::Use) {
  RowResult row;
  row.judged.row = a_row();
  row.judged.row.tpot_ms = measured;
  row.judged.status = status;
  row.predicted = Figures{.ttft_ms = {},
                          .ttft_p50_ms = {},
                          .tpot_ms = predicted,
                          .e2e_ms = {},
                          .output_tok_s_per_gpu = {}};
  return row;
}

TEST(Backtest, ThreadsDoNotChangeAByte) {
  const Backtest one = run(1), three = run(3);
  EXPECT_EQ(backtest_json(one), backtest_json(three));
  EXPECT_EQ(backtest_csv(one), backtest_csv(three));
  EXPECT_EQ(backtest_html(one), backtest_html(three));
}

TEST(Backtest, CoverageCountsWhatCouldHaveBeenAnswered) {
  const Summary summary = summarise(run(2));
  EXPECT_EQ(summary.all.rows, 7U);
  EXPECT_EQ(summary.all.counted, 5U);  // without the copy and the disaggregated row
  EXPECT_EQ(summary.all.predicted, 4U);
  EXPECT_EQ(summary.all.coverage(), 0.8);
  EXPECT_EQ(summary.disaggregated, 1U);
  EXPECT_EQ(summary.assumed_pools, 1U);
  ASSERT_EQ(summary.left_out.size(), 3U);
  EXPECT_EQ(summary.left_out[0].reason, "no card of model no/model");
}

TEST(Backtest, ProgressCountsEveryRow) {
  std::vector<std::uint64_t> seen;
  run_backtest(judge(some_rows(), {}, {}),
               {.threads = 2, .progress = [&](std::uint64_t done, std::uint64_t all) {
                  EXPECT_EQ(all, 7U);
                  seen.push_back(done);
                }});
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7}));
}

TEST(Backtest, ATpotNoHardwareReachesIsExcluded) {
  MeasuredRow row = a_row();
  row.tpot_ms = 1;
  const RowResult result = run_judged(judged(row));
  EXPECT_EQ(result.judged.status, Status::Excluded);
  EXPECT_FALSE(result.predicted);
}

TEST(Errors, AreSignedPercentAndMissingWhereNothingWasMeasured) {
  EXPECT_DOUBLE_EQ(*error_percent(with_errors(9, 10), Metric::Tpot), -10);
  EXPECT_EQ(error_percent(with_errors(9, 10), Metric::Throughput), std::nullopt);
}

TEST(Errors, StatisticsAreOfTheSizes) {
  const auto stats = stats_of({-10, 20, 30, -40, 50});
  EXPECT_DOUBLE_EQ(stats->mape, 30);
  EXPECT_DOUBLE_EQ(stats->median_ape, 30);
  EXPECT_DOUBLE_EQ(stats->p90_ape, 46);  // 40 + 0.6 * 10
  EXPECT_DOUBLE_EQ(stats->bias, 10);
  EXPECT_EQ(stats_of({}), std::nullopt);
}

TEST(Errors, SpecialRowsAreInALineOfTheirOwn) {
  Backtest backtest;
  backtest.rows = {with_errors(11, 10), with_errors(30, 10, Status::Special)};
  const Summary summary = summarise(backtest);
  constexpr auto kTpot = static_cast<std::size_t>(Metric::Tpot);
  EXPECT_NEAR(summary.all.errors[kTpot]->mape, 105, 1e-9);
  EXPECT_NEAR(summary.regular.errors[kTpot]->mape, 10, 1e-9);
  EXPECT_EQ(summary.all.counted, 2U);
  EXPECT_NEAR(summary.special.errors[kTpot]->mape, 200, 1e-9);
}

TEST(Errors, GroupsOfConcurrencyStandInOrder) {
  std::vector<std::string> bands;
  for (const Group& group : summarise(run(1)).groups) {
    if (group.by == "concurrency") bands.push_back(group.value);
  }
  EXPECT_EQ(bands, (std::vector<std::string>{"1-8", "9-32"}));
}

TEST(BacktestReport, CsvHasALineARowAndQuotesWhatNeedsIt) {
  const std::string csv = backtest_csv(run(1));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 8);
  EXPECT_NE(csv.find("\n\"a \"\"quoted\"\", <copy>\",0,duplicate"), std::string::npos);
}

TEST(BacktestReport, HtmlTakesNothingFromOutsideAndEscapesIds) {
  Backtest backtest;
  backtest.rows = {with_errors(11, 10)};
  backtest.rows[0].judged.row.id = "<script src=x>";
  const std::string html = backtest_html(backtest);
  EXPECT_NE(html.find("&lt;script src=x&gt;: measured 10.00, predicted 11.00 (+10.0 %)"),
            std::string::npos);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("http"), std::string::npos);
}

TEST(BacktestReport, WhatWasNotMeasuredIsNull) {
  const std::string json = backtest_json(run(1));
  EXPECT_NE(json.find("\"throughput_mape\": null"), std::string::npos);
  EXPECT_NE(json.find("\"interval_hit_rate\": null"), std::string::npos);
  EXPECT_NE(json.find("\"coverage\": 0.8,"), std::string::npos);
}

}  // namespace
}  // namespace servecast::fit
