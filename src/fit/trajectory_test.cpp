// SPDX-License-Identifier: Apache-2.0
#include "fit/trajectory.hpp"

#include <gtest/gtest.h>

#include "fit/a_row.hpp"

namespace servecast::fit {
namespace {

TEST(Trajectory, PassesHaveTheShapesThatWereTimed) {
  for (const char* engine : {"vllm", "trtllm", "sglang"}) {
    for (const std::uint32_t drafts : {0U, 2U}) {
      MeasuredRow row = a_row();
      row.engine = engine;
      row.nextn = drafts;
      const auto made = case_of(judged(row));
      ASSERT_TRUE(made) << made.error().reason;
      const auto run = run_row(*made, {.passes = true});
      ASSERT_TRUE(run);
      ASSERT_EQ(run->requests.size(), 40U);
      ASSERT_EQ(run->passes.size(), run->totals.passes);
      for (const PassShape& pass : run->passes) {
        const perf::StepTime time = made->deployed.deployment.timer->time(pass.shape);
        EXPECT_EQ((pass.end - pass.start).ns, time.sum().ns) << engine << drafts;
      }
    }
  }
}

TEST(Trajectory, EveryFirstTokenIsAwaitedInThePassThatGivesIt) {
  const auto run = run_row(*case_of(judged(a_row())), {.passes = true});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->passes.front().awaiting_first, 4U);
  std::uint64_t given = 0;
  for (const PassShape& pass : run->passes) {
    std::uint64_t firsts = 0;
    for (const Milestones& request : run->requests) firsts += request.first_token == pass.end;
    EXPECT_LE(firsts, pass.awaiting_first);
    given += firsts;
  }
  EXPECT_EQ(given, run->requests.size());
}

TEST(Trajectory, FiguresAreMeansOverRequests) {
  Trajectory run;
  const auto add = [&](std::int64_t first_ms, std::int64_t last_ms, std::uint32_t tokens) {
    Milestones& request = run.requests.emplace_back();
    request.first_token = {first_ms * 1'000'000};
    request.last_token = {last_ms * 1'000'000};
    request.output_tokens = tokens;
  };
  add(10, 30, 3);
  add(20, 20, 1);
  run.totals.workers = 1;
  run.totals.gpus_per_worker = 2;
  run.totals.first_arrival = {0};
  run.totals.end = {40'000'000};
  const Figures figures = figures_of(run);
  EXPECT_EQ(figures.ttft_ms, 15);
  EXPECT_EQ(figures.ttft_p50_ms, 15);
  EXPECT_EQ(figures.tpot_ms, 10);
  EXPECT_EQ(figures.e2e_ms, 25);
  EXPECT_EQ(figures.output_tok_s_per_gpu, 50);
}

// Identities of published rows (realdata.md 2.2-6): latency is TTFT and the mean output's steps,
// and the places turn over as fast as tokens come out, less the end when places run empty.
TEST(Trajectory, FiguresOfAClosedLoopAgreeWithEachOther) {
  MeasuredRow row = a_row();
  row.input_tokens = row.output_tokens = 1024;
  row.concurrency = 32;
  const auto run = run_row(*case_of(judged(row)));
  ASSERT_TRUE(run);
  const Figures figures = figures_of(*run);
  constexpr double kMeanOutput = 921.5;
  const double steps_ms = *figures.ttft_ms + *figures.tpot_ms * (kMeanOutput - 1);
  EXPECT_GT(steps_ms / *figures.e2e_ms, 1 - 0.018);
  EXPECT_LT(steps_ms / *figures.e2e_ms, 1 + 0.028);
  const double turnover = 32 * kMeanOutput / (*figures.e2e_ms / 1e3);
  EXPECT_GT(turnover / *figures.output_tok_s_per_gpu, 1.001);
  EXPECT_LT(turnover / *figures.output_tok_s_per_gpu, 1.051);
}

// The first wave queues behind itself: with w and s the means of the first and of later waves, b
// waves have (w + (b - 1) s) / b. Measured on gpt-oss-120b to 1.6 % (realdata.md 2.7).
TEST(Trajectory, TheFirstWaveIsWhatMakesShortRunsSlow) {
  const auto ttft_ms = [](std::uint32_t waves) {
    MeasuredRow row = a_row();
    row.model = "openai/gpt-oss-120b";
    row.system = "h200_sxm";
    row.input_tokens = 8000;
    row.output_tokens = 1000;
    row.concurrency = 64;
    row.requests = 64 * waves;
    return *figures_of(*run_row(*case_of(judged(row)))).ttft_ms;
  };
  const double first = ttft_ms(1);
  const double later = (10 * ttft_ms(10) - first) / 9;
  EXPECT_GT(first, 5 * later);
  EXPECT_NEAR(ttft_ms(5) / ((first + 4 * later) / 5), 1, 0.05);
}

TEST(Trajectory, CapturingPassesChangesNoFigure) {
  const auto made = case_of(judged(a_row()));
  const auto plain = run_row(*made), told = run_row(*made, {.passes = true});
  EXPECT_EQ(plain->totals.fingerprint, told->totals.fingerprint);
  EXPECT_TRUE(plain->passes.empty());
}

}  // namespace
}  // namespace servecast::fit
