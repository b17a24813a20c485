// SPDX-License-Identifier: Apache-2.0
// What each kind of layer keeps (perfmodel.md 9.2), worked by hand.
#include "perf/kv_bytes.hpp"

#include <gtest/gtest.h>

#include "perf/a_placement.hpp"

namespace servecast::perf {
namespace {

using catalog::Precision;

Placement placed(const char* model, Precision kv, std::uint32_t tensor = 1) {
  Placement placement = a_placement(model, "gb300", tensor);
  placement.precisions.kv_cache = kv;
  return placement;
}

TEST(KvOfLayers, ReplicatesHeadsThatAreFewerThanRanks) {  // bugs.md A18: 2 KV heads
  const auto token = [](std::uint32_t tensor) {
    return kv_token_bytes(placed("Qwen3.5-122B-A10B", Precision::Bfloat16, tensor));
  };
  EXPECT_EQ(token(2), token(1) / 2);
  EXPECT_EQ(token(4), token(1) / 2);
  EXPECT_EQ(token(1), 12u * 2 * 2 * 256 * 2);
}

TEST(KvOfLayers, KeepsAStateOfGatedDelta) {  // case 12: 2,146,304 bytes a layer
  const Placement placement = placed("Qwen/Qwen3.5-35B-A3B", Precision::Bfloat16);
  EXPECT_EQ(state_request_bytes(placement), 30u * 2'146'304);
  EXPECT_EQ(kv_token_bytes(placement), 10u * 2 * 2 * 256 * 2);
  EXPECT_EQ(kv_sequence_bytes(placement, 100),
            state_request_bytes(placement) + 100 * kv_token_bytes(placement));
  EXPECT_EQ(state_request_bytes(placed("Qwen/Qwen3.5-35B-A3B", Precision::Bfloat16, 2)),
            15u * 2'146'304);
}

TEST(KvOfLayers, KeepsFiveSlotsOfKimiDelta) {
  const Placement placement = placed("Kimi-K3", Precision::Bfloat16);
  EXPECT_EQ(state_request_bytes(placement), 69u * 5 * (96 * 128 * 128 * 4 + 3 * 3 * 96 * 128 * 2));
  EXPECT_EQ(kv_token_bytes(placement), 24u * 576 * 2);
}

TEST(KvOfLayers, KeepsStatesOfMambaAndTokensOfItsAttentionLayersOnly) {
  const Placement placement =
      placed("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", Precision::Bfloat16);
  EXPECT_EQ(kv_token_bytes(placement), 6u * 2 * 2 * 128 * 2);
  EXPECT_EQ(state_request_bytes(placement), 23u * (64 * 64 * 128 * 4 + (4096 + 2048) * 3 * 2));
}

TEST(KvOfLayers, CompressesThePastOfDeepSeekV4) {
  const Placement placement = placed("deepseek-ai/DeepSeek-V4-Flash", Precision::Fp8);
  const std::uint64_t window = 128 * 512;
  const std::uint64_t by_4 = window + 250 * 512 + 2 * 4 * 2 * 512 * 4 +  // entries, compressor
                             250 * 64 + 2 * 4 * 2 * 128 * 4;             // of the indexer
  const std::uint64_t by_128 = window + 7 * 512 + 2 * 128 * 512 * 4;
  EXPECT_EQ(kv_sequence_bytes(placement, 1000), 2 * window + 21 * by_4 + 20 * by_128);
}

TEST(KvOfLayers, KeepsWindowsWithTheirOwnHeads) {
  EXPECT_EQ(kv_sequence_bytes(placed("google/gemma-4-26B-A4B", Precision::Bfloat16), 4096),
            25u * 1024 * 2 * 8 * 256 * 2 + 5u * 4096 * 2 * 2 * 512 * 2);
  EXPECT_EQ(kv_sequence_bytes(placed("MiMo-V2-Flash", Precision::Fp8), 1000),
            39u * 128 * 8 * (192 + 128) + 9u * 1000 * 4 * (192 + 128));
  EXPECT_EQ(kv_token_bytes(placed("MiniMaxAI/MiniMax-M3", Precision::Bfloat16)),
            60u * 2 * 4 * 128 * 2 + 57u * 128 * 2);
}

TEST(KvOfLayers, CountsIndexKeysOfLayersThatHaveAnIndexer) {
  EXPECT_EQ(kv_token_bytes(placed("zai-org/GLM-5-FP8", Precision::Fp8)), 78u * (512 + 128 + 132));
  EXPECT_EQ(kv_token_bytes(placed("zai-org/GLM-5.2-FP8", Precision::Fp8)),
            78u * (512 + 128) + 21u * 132);
}

TEST(KvOfLayers, FindsTheLongestSequenceOfAnyModel) {
  for (const catalog::ModelCard& model : catalog::models()) {
    Placement placement = a_placement(model.name, "gb300");
    placement.precisions.kv_cache = Precision::Fp8;
    for (std::uint64_t tokens : {1u, 127u, 129u, 5000u, 70'001u}) {
      const std::uint64_t bytes = kv_sequence_bytes(placement, tokens);
      const std::uint64_t found = kv_sequence_tokens(placement, bytes);
      ASSERT_GE(found, tokens) << model.name;
      ASSERT_EQ(kv_sequence_bytes(placement, found), bytes) << model.name;
      ASSERT_GT(kv_sequence_bytes(placement, found + 1), bytes) << model.name;
    }
  }
}

}  // namespace
}  // namespace servecast::perf
