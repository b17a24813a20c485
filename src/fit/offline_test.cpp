// SPDX-License-Identifier: Apache-2.0
#include "fit/offline.hpp"

#include <gtest/gtest.h>

#include "fit/a_row.hpp"
#include "fit/row_case.hpp"
#include "fit/trajectory.hpp"

namespace servecast::fit {
namespace {

// A peak of Llama-3.1-8B, or of another model, by TensorRT-LLM.
MeasuredRow peak(std::string model = "meta-llama/Llama-3.1-8B-Instruct") {
  MeasuredRow row = a_row();
  row.model = std::move(model);
  row.engine = "trtllm";
  row.rate = "inf (offline max throughput)";
  row.concurrency.reset();
  row.ttft_ms.reset();
  row.tpot_ms.reset();
  row.output_tok_s_per_gpu = 1000;
  row.input_tokens = 2048;
  row.output_tokens = 128;
  return row;
}

TEST(Offline, ShortRequestsComeInGreaterNumber) {
  EXPECT_EQ(offline_requests(128, 128), 30000U);
  EXPECT_EQ(offline_requests(20000, 2000), 1000U);
  EXPECT_EQ(offline_requests(7, 9), 3000U);
  const auto made = case_of(judged(peak()));
  ASSERT_TRUE(made) << made.error().reason;
  EXPECT_EQ(made->config.traffic.stop.count, 3000U);
  EXPECT_EQ(made->config.engine.rank.max_sequences, 2048U);
}

TEST(Offline, MixturesRanWithAttentionDataParallelism) {
  const perf::Parallelism ran = offline_widths({.tensor = 8, .moe_tensor = 8}, true);
  EXPECT_EQ(ran.tensor, 1U);
  EXPECT_EQ(ran.attention_data, 8U);
  EXPECT_EQ(ran.moe_tensor, 1U);
  EXPECT_EQ(ran.moe_expert, 8U);
  EXPECT_EQ(offline_widths({.tensor = 8}, false).tensor, 8U);
  EXPECT_EQ(offline_widths({.tensor = 2, .attention_data = 4, .moe_expert = 8}, true).tensor, 2U);
}

TEST(Offline, MicroBatchesOfAPipelineOverlap) {
  MeasuredRow row = peak();
  row.requests = 256;
  const auto one = case_of(judged(row));
  row.widths.pipeline = 4;
  const auto four = case_of(judged(row));
  ASSERT_TRUE(four) << four.error().reason;
  EXPECT_EQ(four->streams, 4U);
  EXPECT_EQ(four->deployed.deployment.workers, 4U);
  EXPECT_GT(four->deployed.deployment.rank.blocks, one->deployed.deployment.rank.blocks);
  // Computing bounds prompts of 2048 tokens: four GPUs do nearly four times the work of one.
  const Figures alone = figures_of(*run_row(*one)), together = figures_of(*run_row(*four));
  EXPECT_NEAR(*together.output_tok_s_per_gpu / *alone.output_tok_s_per_gpu, 1.0, 0.2);
}

TEST(Offline, ASubmissionFillsItsGpusWithTheSmallestWorkers) {
  MeasuredRow row = peak("meta-llama/Llama-3.1-70B");
  row.is_submission = true;
  row.widths.tensor.reset();
  row.gpus = 8;
  const auto h100 = case_of(judged(row));  // fp8: 71 GB of weights
  ASSERT_TRUE(h100) << h100.error().reason;
  EXPECT_EQ(h100->config.engine.parallelism.tensor, 2U);
  EXPECT_EQ(h100->config.engine.replicas, 4U);
  EXPECT_EQ(h100->config.engine.precisions->dense, catalog::Precision::Fp8);
  EXPECT_EQ(h100->config.traffic.stop.count, 12000U);
  EXPECT_EQ(std::get<workload::SyntheticSource>(h100->config.traffic.source).output.max, 255U);
  row.rate = "90";
  row.protocol = "open_loop";
  const auto server = case_of(judged(row));
  EXPECT_EQ(server->config.traffic.stop.count, 54000U);  // ten minutes
  EXPECT_EQ(server->config.engine.rank.max_sequences, 2048U);
  row.system = "b200";
  const auto b200 = case_of(judged(row));
  EXPECT_EQ(b200->config.engine.parallelism.tensor, 1U);
  EXPECT_EQ(b200->config.engine.precisions->dense, catalog::Precision::Nvfp4);
}

}  // namespace
}  // namespace servecast::fit
