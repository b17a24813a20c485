// SPDX-License-Identifier: Apache-2.0
#include "config/deployment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace servecast::config {
namespace {

using ::testing::HasSubstr;

Input document(std::vector<std::string> sets) {
  return {
      .path = "run.yaml",
      .text =
          "engine:\n  model: Qwen/Qwen3-8B\n  hardware: h200_sxm\n  workers: {aggregated: {}}\n",
      .sets = std::move(sets),
      .seed = {}};
}

Result<Deployed> deployed(std::vector<std::string> sets) {
  const Result<Config> config = read(document(std::move(sets)));
  if (!config) return tl::unexpected(config.error());
  return deploy(*config);
}

std::string problems(std::vector<std::string> sets) {
  const Result<Deployed> result = deployed(std::move(sets));
  std::string all;
  if (result) return all;
  for (const Problem& problem : result.error()) all += problem.code + " " + to_text(problem) + "\n";
  return all;
}

TEST(Deployment, TakesCapacityAndContextFromModelAndHardware) {
  const auto result = deployed({});
  ASSERT_TRUE(result) << problems({});
  EXPECT_EQ(result->placement.model.name, "Qwen/Qwen3-8B");
  ASSERT_TRUE(result->memory);
  EXPECT_EQ(result->deployment.rank.blocks, result->memory->blocks);
  EXPECT_GT(result->deployment.rank.blocks, 1000u);
  EXPECT_EQ(result->deployment.rank.max_model_len, 40960u);
  EXPECT_EQ(result->deployment.timer->provenance(), perf::Provenance::Analytic);
}

// bugs.md A50: nobody compares an engine with another engine's scheduler by accident.
TEST(Deployment, AnEngineWithoutSchedulerSettingsRunsItsOwnScheduler) {
  const auto result = deployed({});
  ASSERT_TRUE(result);
  const scheduler::RankConfig& rank = result->deployment.rank;
  EXPECT_EQ(rank.max_batched_tokens, 8192u);  // vLLM's rank, engine-vllm.md 2
  EXPECT_EQ(rank.max_sequences, 256u);
  EXPECT_EQ(rank.block_tokens, 64u);
  EXPECT_TRUE(rank.chunked_prefill && rank.prefix_caching);
  EXPECT_EQ(rank.preemption_mode, scheduler::PreemptionMode::Lifo);
  EXPECT_THAT(problems({"engine.workers.aggregated.scheduler.policy=sjf"}),
              HasSubstr("engine.workers.aggregated.scheduler.policy"));
  EXPECT_THAT(problems({"engine.workers.aggregated.sglang={schedule_policy: lpm}"}),
              HasSubstr("sglang"));
}

TEST(Deployment, CountsWorkersAndTheirGpus) {
  const auto result =
      deployed({"engine.workers.aggregated.parallelism={replicas: 3, tensor: 2, pipeline: 2}"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->deployment.workers, 3u);
  EXPECT_EQ(result->deployment.gpus_per_worker, 4u);
}

// bugs.md, product.md 23.29: attention data parallelism is in the GPUs of a worker once.
TEST(Deployment, TellsTheTimerTheVersionOfTheEngine) {
  EXPECT_EQ(deployed({"engine.backend_version=0.19.0"})->placement.engine_version, "0.19.0");
  EXPECT_EQ(deployed({})->placement.engine_version, "");
}

TEST(Deployment, CountsTheGpusOfAttentionDataRanksOnce) {
  const auto result =
      deployed({"engine.model=Qwen3-30B-A3B",
                "engine.workers.aggregated.parallelism={replicas: 2, tensor: 2, attention_data: 4, "
                "moe_expert: 8}"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->deployment.workers, 2u);
  EXPECT_EQ(result->deployment.ranks_per_worker, 4u);
  EXPECT_EQ(result->deployment.gpus_per_worker, 8u);
}

// Each rank has the whole attention and a share of the experts, and the rest of its own GPU for KV.
TEST(Deployment, GivesEachAttentionDataRankThePoolOfItsGpu) {
  const auto one = deployed({"engine.model=Qwen3-30B-A3B"});
  const auto group = deployed({"engine.model=Qwen3-30B-A3B",
                               "engine.workers.aggregated.parallelism={attention_data: 8, "
                               "moe_expert: 8}"});
  ASSERT_TRUE(one && group);
  EXPECT_EQ(group->memory->kv_bytes_per_token, one->memory->kv_bytes_per_token);
  EXPECT_LT(group->memory->parts.weights, one->memory->parts.weights);
  EXPECT_GT(group->deployment.rank.blocks, one->deployment.rank.blocks);
  EXPECT_EQ(group->deployment.rank.blocks, group->memory->blocks);
}

TEST(Deployment, FindsTheCardOfAShortNameAndNamesUnknownModelsAndSystemsTogether) {
  const auto result = deployed({"engine.model=Meta-Llama-3.1-8B-Instruct"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->placement.model.name, "meta-llama/Llama-3.1-8B");
  const std::string text = problems({"engine.model=foo/bar", "engine.hardware=h999"});
  EXPECT_THAT(text, HasSubstr("engine.model: model \"foo/bar\""));
  EXPECT_THAT(text, HasSubstr("engine.hardware: system \"h999\""));
  EXPECT_THAT(text, HasSubstr("h200_sxm"));
}

TEST(Deployment, SaysNeededAndAvailableBytesWhenTheModelDoesNotFit) {
  const std::string text = problems({"engine.model=meta-llama/Llama-3.1-405B"});
  EXPECT_THAT(
      text, HasSubstr("memory.does_not_fit --set: engine: meta-llama/Llama-3.1-405B does not fit"));
  EXPECT_THAT(text, ::testing::ContainsRegex("needs [0-9]+ bytes"));
  EXPECT_THAT(text, ::testing::ContainsRegex("available are [0-9]+ bytes"));
}

TEST(Deployment, FloorsFixedBytesToWholeBlocks) {
  const auto result =
      deployed({"engine.workers.aggregated.kv_cache={block_size: 64, bytes_per_token: 16, "
                "capacity: {type: fixed, bytes: 8191}}"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->deployment.rank.blocks, 7u);
  EXPECT_FALSE(result->memory);
}

// Whoever gives both capacity and times gets a functional run with a warning; a prediction is
// refused.
TEST(Deployment, RefusesToTimeAModelThatCannotFitAlsoWithFixedCapacity) {
  const std::string model = "engine.model=meta-llama/Llama-3.1-405B";
  const std::string capacity =
      "engine.workers.aggregated.kv_cache.capacity={type: fixed, blocks: 100}";
  EXPECT_THAT(problems({model, capacity}), HasSubstr("memory.does_not_fit"));
  const auto functional =
      deployed({model, capacity, "engine.workers.aggregated.timing.type=polynomial"});
  ASSERT_TRUE(functional);
  ASSERT_EQ(functional->warnings.size(), 1u);
  EXPECT_THAT(functional->warnings[0], HasSubstr("does not fit"));
}

TEST(Deployment, ComparesSyntheticRequestsWithTheContext) {
  const std::string stop = ", stop: {requests: 1}}";
  EXPECT_THAT(problems({"traffic={source: {input_tokens: 40960, output_tokens: 1}" + stop}),
              HasSubstr("config.context --set: traffic.source: its longest request has 40961 "
                        "tokens with its output, more than engine.context_length 40960"));
  EXPECT_EQ(problems({"traffic={source: {input_tokens: 40959, output_tokens: 1}" + stop}), "");
  EXPECT_THAT(
      problems(
          {"traffic={source: {input_distribution: {type: uniform, min: 1, max: 50000}}" + stop}),
      HasSubstr("has 50128 tokens"));
  EXPECT_EQ(
      problems(
          {"traffic={source: {input_distribution: {type: normal, mean: 100, stddev: 5}}" + stop}),
      "");
  EXPECT_THAT(
      problems({"traffic={source: {type: synthetic-session, new_input_tokens_per_turn: 100, "
                "output_tokens_per_turn: 28, session: {turns: 5}}, stop: {sessions: 1}}",
                "engine.context_length=639"}),
      HasSubstr("has 640 tokens with its output, more than engine.context_length 639"));
}

TEST(Deployment, KeepsTheContextWithinTheModelsLimit) {
  EXPECT_THAT(
      problems({"engine.context_length=40961"}),
      HasSubstr("engine.context_length: 40961 is more than the 40960 tokens of Qwen/Qwen3-8B"));
  const auto result = deployed({"engine.context_length=4096"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->deployment.rank.max_model_len, 4096u);
}

TEST(Deployment, NamesAParallelismThatTheModelCannotHave) {
  EXPECT_THAT(problems({"engine.workers.aggregated.parallelism.tensor=3"}),
              HasSubstr("engine.workers.aggregated"));
  EXPECT_THAT(
      problems({"engine.model=Qwen3-30B-A3B", "engine.workers.aggregated.parallelism={tensor: 4}"}),
      HasSubstr("moe_tensor"));
  EXPECT_THAT(
      problems({"engine.model=Qwen3-30B-A3B",
                "engine.workers.aggregated.parallelism={tensor: 4, moe_tensor: 2, moe_expert: 2}"}),
      HasSubstr("moe_tensor"));
  EXPECT_THAT(
      problems({"engine.model=Qwen3-30B-A3B",
                "engine.workers.aggregated.parallelism={attention_data: 4, moe_expert: 2}"}),
      HasSubstr("parallelism.moe_tensor * moe_expert is 1 * 2; it must equal tensor * "
                "attention_data * context, which is 1 * 4 * 1"));
}

}  // namespace
}  // namespace servecast::config
