// SPDX-License-Identifier: Apache-2.0
#include "fit/row_case.hpp"

#include <gtest/gtest.h>

#include "fit/a_row.hpp"
#include "fit/physics.hpp"
#include "fit/trajectory.hpp"

namespace servecast::fit {
namespace {

const workload::SyntheticSource& source_of(const RowCase& made) {
  return std::get<workload::SyntheticSource>(made.config.traffic.source);
}

TEST(RowCase, InferenceMaxDrawsLengthsAndRunsTenRequestsAPlace) {
  const auto made = case_of(judged(a_row()));
  ASSERT_TRUE(made);
  EXPECT_EQ(source_of(*made).input.min, 102U);  // floor(0.8 * 128)
  EXPECT_EQ(source_of(*made).input.max, 128U);
  EXPECT_EQ(made->config.traffic.stop.count, 40U);
  EXPECT_EQ(made->config.traffic.load.concurrency, 4U);
  EXPECT_EQ(made->config.engine.rank.max_batched_tokens, 8192U);
  EXPECT_FALSE(made->config.engine.rank.prefix_caching);
}

TEST(RowCase, OtherProtocolsDrawTheirOwnLengthsAndCounts) {
  MeasuredRow row = a_row();
  row.id = "other";
  const auto fixed = case_of(judged(row));
  EXPECT_EQ(source_of(*fixed).input.min, 114U);  // 0.89 * 128 = 113.9
  EXPECT_EQ(source_of(*fixed).input.max, 142U);
  row.protocol = "static";
  const auto batch = case_of(judged(row));
  EXPECT_EQ(source_of(*batch).input.fixed, 128U);
  EXPECT_EQ(batch->config.traffic.stop.count, 4U);
  row.protocol = "open_loop";
  EXPECT_EQ(case_of(judged(row)).error().reason, "rate  is no number");
  row.rate = "2.5";
  EXPECT_EQ(case_of(judged(row))->config.traffic.load.per_second, 2.5);
}

TEST(RowCase, EnginesHaveTheirOwnLimits) {
  MeasuredRow row = a_row();
  row.engine = "trtllm";
  const auto trtllm = case_of(judged(row));
  EXPECT_EQ(trtllm->config.engine.rank.max_batched_tokens, 128U + 4 + 64);
  EXPECT_TRUE(trtllm->config.engine.rank.rules.promises_output);
  row.engine = "sglang";
  const auto sglang = case_of(judged(row));
  EXPECT_EQ(sglang->config.engine.rank.sglang->chunked_prefill_size, 16384U);
  row.engine = "llama.cpp";
  EXPECT_EQ(case_of(judged(row)).error().reason, "unknown engine llama.cpp");
}

TEST(RowCase, TensorRtLlmHoldsPromptsBackWhereAttentionIsDataParallel) {
  MeasuredRow row = a_row();
  row.engine = "trtllm";
  row.model = "deepseek-ai/DeepSeek-R1";
  row.system = "b200_sxm";
  row.precision = "fp4";
  row.widths.attention_data = 8;
  row.widths.moe_expert = 8;
  const auto made = case_of(judged(row));
  ASSERT_TRUE(made) << made.error().reason;
  EXPECT_EQ(made->deployed.deployment.rank.prefill_schedule_interval, 60U);
  EXPECT_EQ(made->deployed.deployment.ranks_per_worker, 8U);
  row.widths.attention_data = 1;
  row.widths.tensor = 8;
  EXPECT_EQ(case_of(judged(row))->deployed.deployment.rank.prefill_schedule_interval, 1U);
}

TEST(RowCase, ImpossibleWidthsLeaveTheDenominator) {
  MeasuredRow row = a_row();
  row.model = "openai/gpt-oss-120b";
  row.widths.moe_tensor = 2;
  const auto made = case_of(judged(row));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, Status::Impossible);
}

TEST(RowCase, WhatDoesNotFitIsUnanswerable) {
  MeasuredRow row = a_row();
  row.model = "meta-llama/Llama-3.1-405B";
  const auto made = case_of(judged(row));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, Status::Unanswerable);
  EXPECT_NE(made.error().reason.find("does not fit"), std::string::npos);
}

TEST(Physics, ATpotBelowTheReadOfTheWeightsCannotBe) {
  MeasuredRow row = a_row();
  const auto made = case_of(judged(row));
  // 15 GB without the embedding at 3.35 TB/s.
  EXPECT_NEAR(limits_of(row, *made).tpot_ms, 4.48, 0.05);
  EXPECT_EQ(impossible_reason(row, *made), "");
  row.tpot_ms = 4.3;
  EXPECT_EQ(impossible_reason(row, *made),
            "TPOT is below the 4.48 ms that reading the weights takes");
}

TEST(Physics, ARateAboveThePeakCannotBe) {
  MeasuredRow row = a_row();
  row.id = "nvidia_qwen3_32b_nvfp4";
  row.model = "nvidia/Qwen3-32B-NVFP4";
  row.system = "gb200";
  row.engine = "trtllm";
  row.precision = "fp4";
  row.widths.tensor = 2;
  row.input_tokens = 15000;
  row.output_tokens = 500;
  row.concurrency = 416;
  row.ttft_ms = 1000;
  row.tpot_ms = 13.7;
  const auto made = case_of(judged(row));
  ASSERT_TRUE(made) << made.error().reason;
  EXPECT_GT(limits_of(row, *made).flops_share, 2);
  EXPECT_NE(impossible_reason(row, *made).find("peak FLOP rate"), std::string::npos);
}

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

TEST(Trajectory, CapturingPassesChangesNoFigure) {
  const auto made = case_of(judged(a_row()));
  const auto plain = run_row(*made), told = run_row(*made, {.passes = true});
  EXPECT_EQ(plain->totals.fingerprint, told->totals.fingerprint);
  EXPECT_TRUE(plain->passes.empty());
}

}  // namespace
}  // namespace servecast::fit
