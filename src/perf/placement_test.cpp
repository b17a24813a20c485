// SPDX-License-Identifier: Apache-2.0
#include "perf/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perf/a_placement.hpp"

namespace servecast::perf {
namespace {

using catalog::EngineKind;
using catalog::Precision;
using testing::AllOf;
using testing::HasSubstr;

std::string messages(const Placement& placement) {
  std::string text;
  for (const Problem& problem : check(placement)) text += to_text(problem) + "\n";
  return text;
}
Placement dense(const Parallelism& parallelism) {
  Placement placement = a_placement("Llama-3.1-8B", "h200_sxm");
  placement.parallelism = parallelism;
  return placement;
}
Placement mixture(const Parallelism& parallelism, EngineKind engine = EngineKind::Sglang) {
  Placement placement = a_placement("Qwen3-30B-A3B", "h200_sxm");
  placement.parallelism = parallelism;
  placement.engine = engine;
  return placement;
}

TEST(Placement, CountsGpusWithoutTheExpertAxes) {
  EXPECT_EQ(gpus_per_worker({.tensor = 4, .pipeline = 2, .attention_data = 3, .moe_expert = 12}),
            24u);
  EXPECT_EQ(gpus_per_worker({.context = 8}), 8u);
}

TEST(Placement, AcceptsTheCommonShapes) {
  for (const std::uint32_t tensor : {1u, 2u, 4u, 8u})
    EXPECT_EQ(messages(dense({.tensor = tensor})), "");
  EXPECT_EQ(messages(dense({.tensor = 2, .pipeline = 3})), "");
  EXPECT_EQ(messages(mixture({.tensor = 2, .attention_data = 2, .moe_tensor = 2, .moe_expert = 2})),
            "");
  EXPECT_EQ(messages(mixture({.moe_expert = 4, .context = 4})), "");
}

TEST(Placement, RefusesAxesOfZero) {
  EXPECT_THAT(messages(dense({.tensor = 0})), HasSubstr("parallelism.tensor is 0"));
  EXPECT_THAT(messages(mixture({.moe_expert = 0})), HasSubstr("parallelism.moe_expert is 0"));
}

TEST(Placement, RefusesShapesThatTheModelCannotTake) {  // perfmodel.md 2.3
  EXPECT_THAT(messages(dense({.tensor = 3})), AllOf(HasSubstr("tensor is 3"), HasSubstr("32")));
  EXPECT_THAT(messages(dense({.pipeline = 33})), HasSubstr("pipeline is 33"));
  EXPECT_THAT(messages(dense({.tensor = 2, .moe_expert = 2})), HasSubstr("moe_expert is 2"));
  EXPECT_THAT(messages(mixture({.tensor = 4, .moe_tensor = 2})),
              AllOf(HasSubstr("2 * 1"), HasSubstr("4 * 1 * 1")));
  EXPECT_THAT(messages(mixture({.attention_data = 256, .moe_expert = 256})),
              AllOf(HasSubstr("moe_expert is 256"), HasSubstr("128 experts")));
}

TEST(Placement, RefusesExpertShardsThatCutABlock) {
  Placement placement = a_placement("DeepSeek-R1", "h200_sxm", 32);
  EXPECT_THAT(messages(placement),
              AllOf(HasSubstr("32"), HasSubstr("2048"), HasSubstr("64"), HasSubstr("128")));
  placement.precisions.experts = Precision::Bfloat16;
  EXPECT_EQ(messages(placement), "");
  EXPECT_EQ(messages(a_placement("DeepSeek-R1", "h200_sxm", 16)), "");
}

TEST(Placement, RefusesShapesThatTheEngineCannotTake) {
  const Parallelism both{.tensor = 2, .attention_data = 2, .moe_expert = 4};
  EXPECT_THAT(messages(mixture(both, EngineKind::TensorRtLlm)),
              AllOf(HasSubstr("attention_data is 2"), HasSubstr("tensor is 2")));
  EXPECT_EQ(messages(mixture(both, EngineKind::Vllm)), "");
  EXPECT_THAT(messages(mixture({.tensor = 4, .moe_tensor = 2, .moe_expert = 2}, EngineKind::Vllm)),
              AllOf(HasSubstr("moe_tensor is 2"), HasSubstr("moe_expert is 2")));
  EXPECT_THAT(messages(mixture({.moe_expert = 2, .context = 2}, EngineKind::Vllm)),
              HasSubstr("context is 2"));
  EXPECT_THAT(messages(mixture({.tensor = 2, .moe_expert = 4, .context = 2})),
              HasSubstr("they are 2 and 1"));
}

TEST(Placement, RefusesPrecisionsThatTheSystemHasNoRateFor) {  // perfmodel.md case 25
  Placement placement = a_placement("Qwen3-30B-A3B", "h200_sxm");
  placement.precisions.experts = Precision::Nvfp4;
  EXPECT_THAT(messages(placement), AllOf(HasSubstr("h200_sxm"), HasSubstr("nvfp4")));
  placement.precisions = {.attention = Precision::Nvfp4};  // weights only, multiplied in bfloat16
  EXPECT_EQ(messages(placement), "");
  EXPECT_THAT(messages(a_placement("Qwen3-32B-FP8", "a100_sxm")), HasSubstr("a100_sxm"));
  placement.precisions = {.kv_cache = Precision::Mxfp4};
  EXPECT_THAT(messages(placement), HasSubstr("KV cache"));
}

TEST(Placement, TakesTheKvPrecisionFromTheWeights) {  // perfmodel.md annex A
  const auto kv = [](const char* model) {
    return precisions_of(catalog::find_model(model).value()).kv_cache;
  };
  EXPECT_EQ(kv("Llama-3.1-8B"), Precision::Bfloat16);
  EXPECT_EQ(kv("gpt-oss-120b"), Precision::Bfloat16);
  EXPECT_EQ(kv("DeepSeek-R1"), Precision::Fp8);
}

}  // namespace
}  // namespace servecast::perf
