// SPDX-License-Identifier: Apache-2.0
#include "cache/align_split.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace servecast::cache {
namespace {

using testing::ElementsAre;

constexpr AlignRule kRule{.block_tokens = 6, .match_unit = 2};
constexpr AlignRule kOldRule{
    .block_tokens = 4, .match_unit = 4, .boundary = AlignBoundary::KnownFloor};

// Ends of the chunks of a prefill that has every pass's budget for itself.
std::vector<std::uint32_t> chunk_ends(const AlignRule& rule, std::uint32_t prompt,
                                      std::uint32_t budget) {
  std::vector<std::uint32_t> ends;
  std::uint32_t at = 0;
  while (at < prompt) {
    const std::uint32_t desired = std::min(prompt - at, budget);
    const std::uint32_t tokens = align_split(rule, {at, prompt, prompt, desired}, budget);
    if (tokens == 0) break;
    ends.push_back(at += tokens);
  }
  return ends;
}

TEST(AlignSplit, CutsChunksAsThePublishedCasesSay) {  // engine-vllm.md C28
  const std::uint32_t budget = 8;
  EXPECT_EQ(align_split(kRule, {0, 25, 25, 8}, budget), 6U);
  EXPECT_EQ(align_split(kRule, {6, 25, 25, 3}, budget), 0U);
  EXPECT_EQ(align_split(kRule, {16, 25, 25, 8}, budget), 2U);
  EXPECT_EQ(align_split(kRule, {18, 24, 24, 6}, budget), 6U);
  EXPECT_EQ(align_split(kRule, {24, 25, 25, 1}, budget), 1U);
  EXPECT_EQ(align_split(kRule, {25, 25, 26, 1}, budget), 1U);
}

TEST(AlignSplit, ABlockWiderThanTheBudgetIsReachedInSeveralPasses) {
  EXPECT_EQ(align_split(kRule, {0, 25, 25, 4}, 4), 4U);
  EXPECT_EQ(align_split(kRule, {4, 25, 25, 4}, 4), 2U);
}

TEST(AlignSplit, CutsNothingWithoutAMatchUnit) {
  EXPECT_EQ(align_split({.block_tokens = 6}, {0, 25, 25, 8}, 8), 8U);
}

TEST(AlignSplit, NeverCutsADecodeStep) {
  EXPECT_EQ(align_split(kRule, {17, 13, 18, 1}, 8), 1U);
  EXPECT_FALSE(keeps_state(kRule, {17, 13, 18, 1}));
}

TEST(AlignSplit, APartOfTheBudgetThatEndsBeforeTheStartSkipsTheRequest) {
  EXPECT_EQ(align_split(kRule, {16, 25, 25, 1}, 8), 0U);  // the page before 17 begins at 12
}

TEST(AlignSplit, AnExactlyAlignedPromptStopsABlockBeforeItsEnd) {
  const AlignRule rule{.block_tokens = 4, .match_unit = 4};
  EXPECT_EQ(align_split(rule, {0, 16, 16, 16}, 64), 12U);
  EXPECT_EQ(align_split(rule, {12, 16, 16, 4}, 64), 4U);
  EXPECT_TRUE(keeps_state(rule, {0, 16, 16, 12}));
  EXPECT_FALSE(keeps_state(rule, {12, 16, 16, 4}));
}

TEST(AlignSplit, TheOldRuleRunsAnExactlyAlignedPromptInOneChunk) {
  EXPECT_EQ(align_split(kOldRule, {0, 16, 16, 16}, 64), 16U);
  EXPECT_TRUE(keeps_state(kOldRule, {0, 16, 16, 16}));
  EXPECT_FALSE(keeps_state(kOldRule, {0, 16, 16, 12}));
  EXPECT_FALSE(keeps_state(kOldRule, {19, 16, 20, 1}));  // a decode step onto a boundary
}

TEST(AlignSplit, StopsAtTheLastFullPageAndAtTheTailOfThePrompt) {  // engine-vllm.md 19.4, 9.7
  EXPECT_THAT(chunk_ends(kRule, 17, 8), ElementsAre(6U, 12U, 16U, 17U));
  EXPECT_THAT(chunk_ends(kRule, 24, 64), ElementsAre(18U, 24U));
  EXPECT_THAT(chunk_ends({.block_tokens = 1536, .match_unit = 128}, 24300, 8192),
              ElementsAre(7680U, 15360U, 23040U, 24192U, 24300U));
}

TEST(AlignSplit, APreemptedRequestStopsAtTheSameBoundariesAgain) {
  EXPECT_EQ(align_split(kRule, {0, 17, 21, 21}, 64), 12U);
  EXPECT_TRUE(keeps_state(kRule, {0, 17, 21, 12}));
  EXPECT_EQ(align_split(kRule, {12, 17, 21, 9}, 64), 4U);
  EXPECT_TRUE(keeps_state(kRule, {12, 17, 21, 4}));
  EXPECT_EQ(align_split(kRule, {16, 17, 21, 5}, 64), 2U);  // to the end of the page
  EXPECT_EQ(align_split(kRule, {18, 17, 21, 3}, 64), 3U);
}

// Whatever the sizes, a prefill arrives, and every boundary that the cache would publish is run.
TEST(AlignSplit, RunsEveryBoundaryWhoseStateIsKept) {
  for (const AlignBoundary boundary : {AlignBoundary::PromptMinusOne, AlignBoundary::KnownFloor}) {
    for (std::uint32_t block = 1; block <= 8; ++block) {
      for (std::uint32_t unit = 1; unit <= block; ++unit) {
        if (block % unit != 0) continue;
        const AlignRule rule{block, unit, boundary};
        for (std::uint32_t prompt = 1; prompt <= 30; ++prompt) {
          for (std::uint32_t budget = 1; budget <= 13; ++budget) {
            const std::vector<std::uint32_t> ends = chunk_ends(rule, prompt, budget);
            ASSERT_FALSE(ends.empty());
            ASSERT_EQ(ends.back(), prompt) << block << ' ' << unit << ' ' << budget;
            for (std::uint32_t end = 1; end <= prompt; ++end) {
              if (!keeps_state(rule, {0, prompt, prompt, end})) continue;
              ASSERT_EQ(std::count(ends.begin(), ends.end(), end), 1)
                  << block << ' ' << unit << ' ' << prompt << ' ' << budget << ' ' << end;
            }
          }
        }
      }
    }
  }
}

TEST(StateBlocks, RoundsUpToWholeBlocks) {  // engine-vllm.md 9.1, 9.7
  EXPECT_EQ(state_blocks(1500, 64, 16), 2U);
  EXPECT_EQ(state_blocks(1024, 64, 16), 1U);
  EXPECT_EQ(state_blocks(1025, 64, 16), 2U);
  EXPECT_EQ(state_blocks(26'058'240, 256, 3915), 26U);
  EXPECT_EQ(state_blocks(UINT64_MAX, 1, 1), UINT64_MAX);
}

}  // namespace
}  // namespace servecast::cache
