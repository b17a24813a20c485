// SPDX-License-Identifier: Apache-2.0
#include "perf/ops/passes.hpp"

#include <gtest/gtest.h>

namespace servecast::perf {
namespace {

ModelFacts llama_70b() {
  return {.layers = 80,
          .hidden = 8192,
          .vocab = 128256,
          .heads = 64,
          .kv_heads = 8,
          .head_dim = 128,
          .inter = 28672};
}

ModelFacts qwen3_32b() {
  return {.layers = 64,
          .hidden = 5120,
          .vocab = 151936,
          .heads = 64,
          .kv_heads = 8,
          .head_dim = 128,
          .inter = 25600,
          .qk_norm = true};
}

ModelFacts qwen3_235b() {
  return {.family = Family::Experts,
          .layers = 94,
          .hidden = 4096,
          .vocab = 151936,
          .heads = 64,
          .kv_heads = 4,
          .head_dim = 128,
          .qk_norm = true,
          .experts = 128,
          .topk = 8,
          .expert_inter = 1536};
}

ModelFacts deepseek_v3() {
  return {.family = Family::LatentExperts,
          .layers = 61,
          .hidden = 7168,
          .vocab = 129280,
          .heads = 128,
          .kv_heads = 128,
          .head_dim = 128,
          .experts = 256,
          .topk = 8,
          .expert_inter = 2048,
          .shared_experts = 1,
          .q_lora = 1536,
          .kv_lora = 512,
          .rope = 64};
}

const Estimator& bound() {
  static const Estimator estimator(catalog::find_system("b200_sxm").value(),
                                   {.mode = DataMode::Sol, .parity = true});
  return estimator;
}

OpLists lists(const ModelFacts& facts, OpModes modes = {}, std::int64_t drafts = 0) {
  const bool dense = facts.family == Family::Dense;
  return op_lists(facts, {.tp = 8, .moe_ep = dense ? 1 : 8}, modes,
                  {.draft_tokens = drafts, .parity = true})
      .value();
}

// perfmodel.md cases 13-16: bounds of a prompt of 1024 tokens and of the decode pass after it.
TEST(Passes, BoundDenseModels) {
  const OpLists llama = lists(llama_70b());
  EXPECT_NEAR(context_pass(bound(), llama, 1, 1024)->ms, 14.776369562730387, 1e-9);
  EXPECT_NEAR(generation_pass(bound(), llama, 1, 1025)->ms, 2.2697137879365075, 1e-9);
  const OpLists qwen = lists(qwen3_32b());
  EXPECT_NEAR(context_pass(bound(), qwen, 1, 1024)->ms, 7.129173818, 1e-8);
  EXPECT_NEAR(generation_pass(bound(), qwen, 1, 1025)->ms, 1.0467731297, 1e-9);
  EXPECT_NEAR(mixed_pass(bound(), qwen,
                         {.context_tokens = 1024, .decode_requests = 1, .isl = 1024, .osl = 2})
                  ->ms,
              7.1404, 5e-5);
}

TEST(Passes, BoundRoutedExperts) {
  const OpLists qwen = lists(qwen3_235b());
  EXPECT_NEAR(context_pass(bound(), qwen, 1, 1024)->ms, 12.612204326846983, 1e-9);
  EXPECT_NEAR(generation_pass(bound(), qwen, 1, 1025)->ms, 0.7351893901298702, 1e-9);
}

TEST(Passes, BoundLatentAttentionBesideExperts) {
  const OpLists deepseek =
      lists(deepseek_v3(), {.gemm = Quant::Fp8Block, .experts = Quant::Fp8Block, .kv = Quant::Fp8});
  EXPECT_NEAR(context_pass(bound(), deepseek, 1, 1024)->ms, 19.742, 5e-4);
  EXPECT_NEAR(generation_pass(bound(), deepseek, 1, 1025)->ms, 0.438, 5e-4);
}

// Case 31: the draft model's layer counts once for each draft token.
TEST(Passes, RepeatLayersForDraftTokens) {
  const OpLists three = lists(deepseek_v3(), {}, 3);
  const OpLists none = lists(deepseek_v3());
  EXPECT_NEAR(three.generation[0].scale / none.generation[0].scale, 1.0491803279, 1e-10);
  EXPECT_EQ(three.context[0].scale, 1.0);
}

// Case 26.
TEST(Passes, SampleADecodeEvery32Tokens) {
  const auto samples = decode_samples(1000, 128);
  ASSERT_EQ(samples.size(), 4U);
  EXPECT_EQ(samples[3].length, 1097);
  EXPECT_EQ(samples[3].passes, 31);
  EXPECT_EQ(samples[0].passes + samples[1].passes + samples[2].passes + samples[3].passes, 127);
  EXPECT_TRUE(decode_samples(1000, 1).empty());
}

TEST(Passes, AddLogitsAfterAPrefillOfExpertsUnlessInParity) {
  const auto named = [](const OpList& list) {
    return std::count_if(list.begin(), list.end(),
                         [](const OpStep& step) { return step.name == "logits"; });
  };
  EXPECT_EQ(named(lists(qwen3_235b()).context), 0);
  const auto best = op_lists(qwen3_235b(), {.tp = 8, .moe_ep = 8}, {}, {});
  EXPECT_EQ(named(best->context), 1);
}

TEST(OpLists, RefuseGroupsThatDoNotDivide) {
  const auto odd = op_lists(qwen3_235b(), {.tp = 3, .moe_ep = 8}, {}, {});
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().size(), 2U);
  EXPECT_EQ(odd.error()[0].code, "placement.invalid_sharding");
}

// Case 33.
TEST(OpTime, MergesSourcesAndOverlaps) {
  const OpTime silicon{1.0, 0.0, TimeSource::Silicon};
  const OpTime empirical{0.5, 0.0, TimeSource::Empirical};
  EXPECT_EQ((silicon + empirical).ms, 1.5);
  EXPECT_EQ((silicon + empirical).source, TimeSource::Mixed);
  EXPECT_EQ((silicon + OpTime{}).source, TimeSource::Silicon);
  const OpTime both = overlapped({3.0, 10.0, TimeSource::Silicon}, {2.0, 5.0, TimeSource::Silicon});
  EXPECT_EQ(both.ms, 3.0);
  EXPECT_EQ(both.energy_mj, 15.0);
  EXPECT_FALSE(mean_watts({100.0, 5.0, TimeSource::Silicon}, 89.0));
  EXPECT_TRUE(mean_watts({100.0, 5.0, TimeSource::Silicon}, 90.0));
}

}  // namespace
}  // namespace servecast::perf
