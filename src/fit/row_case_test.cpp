// SPDX-License-Identifier: Apache-2.0
#include "fit/row_case.hpp"

#include <gtest/gtest.h>

#include "fit/a_row.hpp"

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
  EXPECT_EQ(made->deployed.deployment.rank.prefill_schedule_interval, 30U);
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
  EXPECT_TRUE(made.error().reason.starts_with("engine: meta-llama/Llama-3.1-405B does not fit"));
  EXPECT_EQ(made.error().reason.find('('), std::string::npos);
}

}  // namespace
}  // namespace servecast::fit
