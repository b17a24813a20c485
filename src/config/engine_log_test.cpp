// SPDX-License-Identifier: Apache-2.0
#include "config/engine_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace servecast::config {
namespace {

using testing::HasSubstr;

std::string problem_of(std::string_view text) {
  const auto found = capacity_of_log(text, "engine.log");
  return found ? "" : to_text(found.error().front());
}

TEST(EngineLog, TellsTheCapacityOfEachEngine) {
  const auto vllm = capacity_of_log(
      "INFO 01-01 loading\n(EngineCore pid=1) INFO GPU KV cache size: 2,560,976 tokens\nINFO "
      "ready\n",
      "");
  EXPECT_EQ(vllm->tokens, 2'560'976u);
  EXPECT_EQ(vllm->blocks, std::nullopt);
  EXPECT_EQ(capacity_of_log("# GPU blocks: 2588, # CPU blocks: 2048", "")->blocks, 2588u);
  EXPECT_EQ(
      capacity_of_log("TP0] KV Cache is allocated. #tokens: 509157, KV size: 33.32 GB", "")->tokens,
      509'157u);
  EXPECT_EQ(
      capacity_of_log("KV Cache is allocated. dtype: torch.bfloat16, #tokens: 77, K size: 1", "")
          ->tokens,
      77u);
  EXPECT_EQ(capacity_of_log("[TensorRT-LLM][INFO] [MemUsageChange] Allocated 95.45 GiB for max "
                            "tokens in paged KV cache (782080).\r\n",
                            "")
                ->tokens,
            782'080u);
}

TEST(EngineLog, AcceptsRanksThatAgree) {
  const auto found = capacity_of_log(
      "GPU KV cache size: 160 tokens\n# GPU blocks: 10\nGPU KV cache size: 160 tokens", "");
  EXPECT_EQ(found->tokens, 160u);
  EXPECT_EQ(found->blocks, 10u);
}

TEST(EngineLog, NamesTheFileThatTellsNothingOrTwoThings) {
  EXPECT_THAT(problem_of(""), HasSubstr("engine.log: has no line"));
  EXPECT_THAT(problem_of("GPU KV cache size: many tokens"), HasSubstr("has no line"));
  EXPECT_THAT(problem_of("#tokens: 12"), HasSubstr("has no line"));
  EXPECT_THAT(problem_of("GPU KV cache size: 1,600 tokens\n\nGPU KV cache size: 1,616 tokens"),
              HasSubstr("engine.log:3: tells 1616 tokens of KV cache here and 1600 before"));
  const auto missing = read_capacity_log("no/such.log");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().front().code, "file.unreadable");
}

}  // namespace
}  // namespace servecast::config
