// SPDX-License-Identifier: Apache-2.0
#include "perf/memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perf/a_placement.hpp"
#include "perf/precision.hpp"

namespace servecast::perf {
namespace {

using catalog::EngineKind;
using catalog::Precision;
using testing::HasSubstr;

Placement with_kv(Placement placement, Precision precision) {
  placement.precisions.kv_cache = precision;
  return placement;
}
Placement with_engine(Placement placement, EngineKind engine) {
  placement.engine = engine;
  return placement;
}

TEST(Precision, CountsFourBitFormatsExactly) {
  EXPECT_EQ(bytes_of(Precision::Nvfp4, 16), 9u);
  EXPECT_EQ(bytes_of(Precision::Nvfp4, 17), 10u);
  EXPECT_EQ(bytes_of(Precision::Mxfp4, 64), 34u);
  EXPECT_EQ(bytes_of(Precision::Fp8Block, 7), 7u);
  EXPECT_EQ(bytes_of(Precision::Bfloat16, 7), 14u);
}

TEST(KvBytes, MatchThePublishedFigures) {  // perfmodel.md case 34
  const auto token = [](const Placement& p) { return kv_sequence_bytes(p, 1); };
  EXPECT_EQ(token(a_placement("Llama-3.1-8B", "h200_sxm")), 131'072u);
  EXPECT_EQ(token(a_placement("Llama-3.1-70B", "h200_sxm", 8)), 40'960u);
  EXPECT_EQ(token(a_placement("Llama-3.1-70B", "h200_sxm", 16)), 40'960u);
  for (const std::uint32_t tensor : {1u, 2u, 8u}) {
    const Placement v3 = a_placement("DeepSeek-V3", "h200_sxm", tensor);
    EXPECT_EQ(token(with_kv(v3, Precision::Bfloat16)), 70'272u);
    EXPECT_EQ(token(with_kv(v3, Precision::Fp8)), 35'136u);
  }
  const Placement sparse = a_placement("DeepSeek-V3.2", "h200_sxm");
  EXPECT_EQ(token(with_kv(sparse, Precision::Fp8)), 47'092u);
  EXPECT_EQ(token(with_kv(sparse, Precision::Bfloat16)), 78'324u);
  EXPECT_EQ(kv_sequence_bytes(a_placement("gpt-oss-20b", "h200_sxm"), 4096), 103'809'024u);
}

TEST(KvBytes, UseTheModelsOwnHeadWidth) {  // bugs.md A19
  EXPECT_EQ(kv_sequence_bytes(a_placement("Qwen3-32B", "h200_sxm"), 1), 262'144u);
}

TEST(KvBytes, AreDividedAmongPipelineStages) {  // bugs.md A49
  Placement placement = a_placement("Llama-3.1-70B", "h200_sxm");
  placement.parallelism.pipeline = 4;
  EXPECT_EQ(kv_sequence_bytes(placement, 1), 81'920u);
  placement.parallelism.pipeline = 3;  // 27 + 27 + 26 layers
  EXPECT_EQ(kv_sequence_bytes(placement, 1), 27u * 4096u);
}

TEST(KvBytes, HoldAsManyTokensAsASearchFinds) {
  for (const char* model : {"gpt-oss-120b", "Llama-3.1-8B", "DeepSeek-V3.2"}) {
    const Placement placement = a_placement(model, "h200_sxm");
    for (std::uint64_t bytes = 0; bytes < 80'000'000; bytes += 176'543) {
      const std::uint64_t tokens = kv_sequence_tokens(placement, bytes);
      ASSERT_LE(kv_sequence_bytes(placement, tokens), bytes) << model;
      ASSERT_GT(kv_sequence_bytes(placement, tokens + 1), bytes) << model;
    }
  }
}

TEST(Weights, MatchTheListOfMatrices) {  // perfmodel.md case 36, product.md 8.8
  EXPECT_EQ(weight_bytes(a_placement("Llama-3.1-8B", "h200_sxm")), 16'059'990'016u);
  EXPECT_EQ(weight_bytes(a_placement("Qwen3-32B-FP8", "h200_sxm")), 34'317'271'040u);
}

TEST(Weights, AreNearTheSizeOfTheCheckpoints) {
  // Sums of the published safetensors files, which hold scales, biases and norms too. DeepSeek's
  // also hold the draft layer (14 B parameters), which is not loaded.
  EXPECT_NEAR(double(weight_bytes(a_placement("Llama-3.1-405B", "h200_sxm"))), 811.7e9, 2e9);
  EXPECT_NEAR(double(weight_bytes(a_placement("Qwen3-30B-A3B", "h200_sxm"))), 61.07e9, 0.1e9);
  EXPECT_NEAR(double(weight_bytes(a_placement("gpt-oss-120b", "b200_sxm"))), 65.25e9, 0.3e9);
  EXPECT_NEAR(double(weight_bytes(a_placement("DeepSeek-R1", "h200_sxm"))), 672e9, 4e9);
}

TEST(Weights, AreSharedByTensorAndExpertRanks) {
  const auto whole = double(weight_bytes(a_placement("DeepSeek-R1", "h200_sxm")));
  const auto tensor = double(weight_bytes(a_placement("DeepSeek-R1", "h200_sxm", 8)));
  EXPECT_NEAR(tensor / whole, 1.0 / 8.0, 0.01);
  Placement expert = a_placement("DeepSeek-R1", "h200_sxm", 8);
  expert.parallelism.moe_tensor = 1;
  expert.parallelism.moe_expert = 8;
  EXPECT_EQ(double(weight_bytes(expert)), tensor);
  Placement data = expert;  // attention in full on every rank
  data.parallelism.tensor = 1;
  data.parallelism.attention_data = 8;
  EXPECT_GT(double(weight_bytes(data)), tensor);
}

TEST(Weights, AreSharedByPipelineStages) {
  Placement placement = a_placement("Llama-3.1-8B", "h200_sxm");
  placement.parallelism.pipeline = 2;
  // Half of the layers, and the embedding or the head.
  EXPECT_EQ(weight_bytes(placement), 13'958'643'712u / 2 + 1'050'673'152u);
}

TEST(Activations, MatchThePublishedFigures) {  // perfmodel.md case 35
  const Placement vllm = a_placement("Llama-3.1-8B", "h200_sxm");
  const Placement sglang = with_engine(vllm, EngineKind::Sglang);
  EXPECT_EQ(activation_bytes(vllm, 8192), 738'197'504u);
  EXPECT_EQ(activation_bytes(sglang, 8192), 1'080'452'711u);  // 1,080,452,710.4 rounded up
  EXPECT_EQ(activation_bytes(vllm, 100), 73'400'320u);
  EXPECT_EQ(activation_bytes(sglang, 100), 108'527'616u);
  EXPECT_EQ(activation_bytes(a_placement("Qwen3-32B-FP8", "h200_sxm"), 8192), 1'476'395'008u);
}

// realdata.md 2.5: tokens that vLLM 0.22 logged for gpt-oss-120b on H200, for the logged GiB of KV
// cache, within 0.1 %.
TEST(VllmKvTokens, AreThoseThatServersLogged) {
  struct Logged {
    std::uint32_t tensor;
    double gib;
    std::uint32_t max_model_len;
    double tokens;
  };
  const Logged rows[] = {
      {1, 57.24, 2068, 825'607},    {1, 57.24, 9472, 886'768},     {1, 57.22, 2068, 825'377},
      {1, 57.22, 9472, 886'521},    {2, 88.77, 2068, 2'560'976},   {4, 106.27, 2068, 6'131'120},
      {4, 106.25, 2068, 6'130'106}, {8, 114.85, 2068, 13'253'265}, {8, 114.84, 2068, 13'251'688},
  };
  for (const Logged& row : rows) {
    Placement placement = a_placement("gpt-oss-120b", "h200_sxm");
    placement.parallelism.tensor = row.tensor;
    placement.parallelism.moe_expert = row.tensor;
    const auto bytes = static_cast<std::uint64_t>(row.gib * 1073741824.0);
    const auto tokens = static_cast<double>(
        vllm_kv_tokens(placement, bytes, {.block_tokens = 16, .max_model_len = row.max_model_len}));
    EXPECT_NEAR(tokens, row.tokens, 0.001 * row.tokens) << "TP" << row.tensor;
  }
}

TEST(VllmKvTokens, MatchTheComputedOnes) {  // realdata.md case 14
  const Placement placement = a_placement("gpt-oss-120b", "h200_sxm");
  const auto bytes = static_cast<std::uint64_t>(57.24 * 1073741824.0);
  EXPECT_EQ(vllm_kv_tokens(placement, bytes, {.block_tokens = 16, .max_model_len = 2068}),
            825'631U);
  EXPECT_EQ(vllm_kv_tokens(placement, bytes, {.block_tokens = 16, .max_model_len = 9472}),
            886'794U);
}

TEST(VllmKvTokens, AreWholeBlocksWhereNoLayerHasAWindow) {
  const Placement placement = a_placement("Llama-3.1-8B", "h200_sxm");
  EXPECT_EQ(vllm_kv_tokens(placement, 131'072 * 40, {.block_tokens = 16}), 32U);
}

TEST(KvBudget, FollowsEachEnginesFormula) {  // bugs.md A44
  const MemoryParts parts{.weights = 45, .activations = 10, .others = 5};
  EXPECT_DOUBLE_EQ(kv_budget(EngineKind::TensorRtLlm, 140, parts, 0.9), 72.0);
  EXPECT_DOUBLE_EQ(kv_budget(EngineKind::Vllm, 140, parts, 0.9), 66.0);
  EXPECT_DOUBLE_EQ(kv_budget(EngineKind::Sglang, 140, parts, 0.9), 76.0);
}

TEST(EngineMemoryFraction, IsTheEnginesOwn) {  // perfmodel.md 9.3, case 37
  Placement placement = a_placement("Llama-3.1-8B", "h100_sxm");
  EXPECT_EQ(engine_memory_fraction(placement), 0.92);
  EXPECT_EQ(engine_memory_fraction(placement, "0.19.1"), 0.9);
  EXPECT_EQ(engine_memory_fraction(placement, "0.22.0"), 0.92);
  EXPECT_EQ(engine_memory_fraction(placement, "1.0"), 0.92);
  const auto sglang = [](const char* system, const Parallelism& parallelism) {
    Placement p = with_engine(a_placement("DeepSeek-R1", system), EngineKind::Sglang);
    p.parallelism = parallelism;
    return engine_memory_fraction(p);
  };
  EXPECT_EQ(sglang("h100_sxm", {}), 0.836);
  EXPECT_EQ(sglang("h200_sxm", {}), 0.907);
  EXPECT_EQ(sglang("b200_sxm", {.attention_data = 8, .moe_expert = 8}), 0.753);
  EXPECT_EQ(sglang("h200_sxm", {.tensor = 8, .moe_expert = 8}), 0.897);
}

TEST(KvCapacity, MatchesTheWorkedRecord) {  // product.md 8.8 and C2
  const auto found =
      kv_capacity(a_placement("Qwen3-32B-FP8", "h200_sxm"), {.block_tokens = 64}).value();
  EXPECT_EQ(found.memory_fraction, 0.9);
  EXPECT_EQ(found.parts.weights, 34'317'271'040u);
  EXPECT_EQ(found.parts.activations, 1'476'395'008u);
  EXPECT_EQ(found.parts.collectives + found.parts.others, 3'758'096'384u);
  EXPECT_EQ(found.kv_bytes, 96'706'075'033u);
  EXPECT_EQ(found.kv_bytes_per_token, 131'072u);
  EXPECT_EQ(found.tokens, 737'808u);
  EXPECT_EQ(found.blocks, 11'528u);
}

TEST(KvCapacity, MatchesThePublishedCases) {  // perfmodel.md case 36
  const Placement vllm = a_placement("Llama-3.1-8B", "h200_sxm");
  const auto plain = kv_capacity(vllm, {.block_tokens = 16, .memory_fraction = 0.92}).value();
  EXPECT_EQ(plain.kv_bytes, 118'729'505'505u);
  EXPECT_EQ(plain.tokens, 905'834u);
  EXPECT_EQ(plain.blocks, 56'614u);
  EXPECT_EQ(kv_capacity(vllm, {.memory_fraction = 0.92, .tolerance = 0.02})->tokens, 884'580u);
  EXPECT_EQ(kv_capacity(with_engine(vllm, EngineKind::TensorRtLlm), {.tolerance = 0.02})->tokens,
            867'240u);
}

TEST(KvCapacity, TakesWhatTheSettingsReserve) {
  const Placement placement = a_placement("Llama-3.1-8B", "h200_sxm");
  const auto plain = kv_capacity(placement, {}).value();
  const auto graphs = kv_capacity(placement, {.cuda_graph_reserved_bytes = 1'000'000'000}).value();
  EXPECT_EQ(plain.kv_bytes - graphs.kv_bytes, 1'000'000'000u);
  const auto narrow = kv_capacity(placement, {.kv_bytes_per_token = 65'536}).value();
  EXPECT_EQ(narrow.tokens, plain.kv_bytes / 65'536);
}

TEST(KvCapacity, SaysWhatDoesNotFit) {  // bugs.md A43
  const auto one = kv_capacity(a_placement("Llama-3.1-405B", "h100_sxm"), {});
  ASSERT_FALSE(one);
  EXPECT_GT(one.error().needed_bytes, 800'000'000'000u);
  EXPECT_EQ(one.error().available_bytes, 77'309'411'328u);  // 0.9 of 80 GiB
  EXPECT_THAT(one.error().sentence, HasSubstr("does not fit"));
  EXPECT_THAT(one.error().sentence, HasSubstr(std::to_string(one.error().needed_bytes)));
  EXPECT_THAT(one.error().sentence, HasSubstr("77309411328"));
  EXPECT_FALSE(kv_capacity(a_placement("DeepSeek-V3", "h200_sxm", 2), {}));
  EXPECT_TRUE(kv_capacity(a_placement("DeepSeek-V3", "h200_sxm", 8), {}));
  for (const EngineKind engine : {EngineKind::Sglang, EngineKind::TensorRtLlm}) {
    EXPECT_FALSE(kv_capacity(with_engine(a_placement("Llama-3.1-405B", "h100_sxm"), engine), {}));
    EXPECT_TRUE(kv_capacity(with_engine(a_placement("Llama-3.1-8B", "h100_sxm"), engine), {}));
  }
}

TEST(KvCapacity, DoesNotFitWithoutRoomForOneBlock) {
  Placement placement = a_placement("Llama-3.1-8B", "h200_sxm");
  const auto found = kv_capacity(placement, {.block_tokens = 64}).value();
  // As much memory as leaves 63 tokens.
  const std::uint64_t used = found.parts.sum() + 63 * 131'072 + 1000;
  placement.system.memory_bytes = used;
  const auto none = kv_capacity(placement, {.block_tokens = 64, .memory_fraction = 1.0});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().needed_bytes - none.error().available_bytes, 131'072u - 1000u);
  EXPECT_EQ(kv_capacity(placement, {.block_tokens = 63, .memory_fraction = 1.0})->blocks, 1u);
}

TEST(KvCapacity, NeverPromisesSglangMoreThanTheGpu) {
  Placement placement = with_engine(a_placement("Llama-3.1-8B", "h200_sxm"), EngineKind::Sglang);
  const MemoryParts parts = memory_parts(placement, {});
  placement.system.memory_bytes = parts.sum();  // room for a static part, none for activations
  EXPECT_FALSE(kv_capacity(placement, {.memory_fraction = 1.0}));
}

}  // namespace
}  // namespace servecast::perf
