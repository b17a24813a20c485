// SPDX-License-Identifier: Apache-2.0
// Passes, prefixes and blocks, pass by pass, in the reference mode and in the fast mode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "scheduler/vllm/a_rank.hpp"

namespace servecast::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class VllmPasses : public testing::TestWithParam<Mode> {
 protected:
  Mode mode() const { return GetParam(); }
  bool stepping() const { return mode() == Mode::Stepping; }
};

INSTANTIATE_TEST_SUITE_P(, VllmPasses, testing::Values(Mode::Stepping, Mode::Fast),
                         [](const testing::TestParamInfo<Mode>& mode) {
                           return name_of(mode.param);
                         });

// The worked traces of the specification.

TEST_P(VllmPasses, SharesAPrefixWithinAPass) {  // engine-vllm.md 19.1, C7
  Rank rank(mode(), a_rank(12, 12));
  const Ask ask_b{.prompt = 12, .output = 2, .ids = {1, 2, 3}};
  const Slot a = rank.submit({.prompt = 8, .output = 2, .ids = {1, 2}});
  const Slot b = rank.submit(ask_b);
  rank.pass();
  EXPECT_EQ(rank.shape.prefill_requests, 2U);
  EXPECT_EQ(rank.shape.prefill_isl, 20U);
  EXPECT_EQ(rank.shape.prefill_prefix, 8U);
  EXPECT_EQ(rank.shape.decode_requests, 0U) << "both first tokens come from the prefill";
  EXPECT_EQ(rank[a].first_token, Time{10});
  EXPECT_EQ(rank[b].first_token, Time{10});
  EXPECT_EQ(rank[a].reused_first, 0U);
  EXPECT_EQ(rank[b].reused_first, 8U);
  rank.pass();
  EXPECT_EQ(rank.shape.prefill_requests, 0U);
  EXPECT_EQ(rank.shape.decode_requests, 2U);
  EXPECT_EQ(rank.shape.decode_context, 9U + 13);
  EXPECT_THAT(rank.outcome.ended, ElementsAre(a, b));
  EXPECT_EQ(rank[a].second_token, Time{20});
  EXPECT_EQ(rank[b].last_token, Time{20});
  EXPECT_EQ(rank.inactive(), 3U);
  EXPECT_EQ(rank.active(), 0U);
  EXPECT_EQ(rank.cached_blocks(ask_b), 3U);

  // Ten blocks of something else: nine are free, one is evicted, and that is B's last.
  rank.submit({.prompt = 40, .output = 1});
  rank.drain();
  EXPECT_EQ(rank.scheduler.pool().evictions(), 1U);
  EXPECT_EQ(rank.cached_blocks(ask_b), 2U);
}

TEST(VllmEvents, AStoredRunNamesTheBlockBeforeIt) {  // engine-vllm.md 19.1, C7
  Rank rank(Mode::Stepping, a_rank(12, 12));
  rank.submit({.prompt = 8, .output = 2, .ids = {1, 2}});
  rank.submit({.prompt = 12, .output = 2, .ids = {1, 2, 3}});
  rank.pass();
  ASSERT_EQ(rank.events.size(), 2U);
  EXPECT_TRUE(rank.events[0].stored);
  EXPECT_FALSE(rank.events[0].has_parent);
  ASSERT_EQ(rank.events[0].blocks.size(), 2U);
  EXPECT_TRUE(rank.events[1].has_parent);
  EXPECT_EQ(rank.events[1].parent, rank.events[0].blocks[1].hash);
  ASSERT_EQ(rank.events[1].blocks.size(), 1U);
  rank.drain();
  EXPECT_EQ(rank.events.size(), 2U) << "the private partial blocks have no name";
}

TEST_P(VllmPasses, APromptIsComputedInChunksBesideADecode) {  // engine-vllm.md 19.2
  Rank rank(mode(), a_rank(30, 8));
  const Ask prompt{.prompt = 20, .output = 2, .ids = {1, 2, 3, 4, 5}};
  rank.submit({.prompt = 4, .output = 9});
  rank.pass();
  const Slot p = rank.submit(prompt);
  struct Step {
    std::uint32_t isl, prefix, decode_context, cached;
  };
  for (const Step& step : {Step{7, 0, 5, 1}, Step{14, 7, 6, 3}, Step{20, 14, 7, 5}}) {
    rank.pass();
    EXPECT_EQ(rank.shape.prefill_requests, 1U);
    EXPECT_EQ(rank.shape.prefill_isl, step.isl);
    EXPECT_EQ(rank.shape.prefill_prefix, step.prefix);
    EXPECT_EQ(rank.shape.decode_requests, 1U);
    EXPECT_EQ(rank.shape.decode_context, step.decode_context);
    EXPECT_EQ(rank.cached_blocks(prompt), step.cached);
  }
  EXPECT_EQ(rank[p].first_token, rank.now);
  rank.pass();
  EXPECT_EQ(rank.shape.decode_requests, 2U);
  EXPECT_EQ(rank.shape.decode_context, 8U + 21);
  EXPECT_EQ(rank[p].last_token, rank.now);
}

// What a request reuses.

// bugs.md A06 and C8: logits need a computed token, so a wholly cached prompt computes its last
// block again.
TEST_P(VllmPasses, ACachedPromptComputesAtLeastItsLastToken) {
  for (const std::uint32_t block : {2U, 3U, 4U, 16U}) {
    for (std::uint32_t prompt = 1; prompt <= 5 * block; ++prompt) {
      Rank rank(mode(), a_rank(64, 1024, block));
      const Ask ask{.prompt = prompt,
                    .output = 1,
                    .ids = std::vector<std::uint32_t>(prompt, 7),
                    .trace_block = 1};
      rank.submit(ask);
      rank.pass();
      const Slot again = rank.submit(ask);
      rank.pass();
      const std::uint32_t reused = (prompt - 1) / block * block;
      EXPECT_EQ(rank[again].reused_first, reused) << "block " << block << ", prompt " << prompt;
      EXPECT_EQ(rank.shape.prefill_isl - rank.shape.prefill_prefix, prompt - reused);
      EXPECT_FALSE(rank.scheduler.has_work());
    }
  }
}

TEST_P(VllmPasses, ReusesTheCachedPrefixOfALongerPrompt) {  // bugs.md A06, second half
  Rank rank(mode(), a_rank(32, 1024, 16));
  rank.submit({.prompt = 64, .output = 1, .ids = {1, 2, 3, 4}, .trace_block = 16});
  rank.pass();
  const Slot longer =
      rank.submit({.prompt = 65, .output = 1, .ids = {1, 2, 3, 4, 5}, .trace_block = 16});
  const Slot other =
      rank.submit({.prompt = 65, .output = 1, .ids = {1, 2, 9, 4, 5}, .trace_block = 16});
  rank.pass();
  EXPECT_EQ(rank[longer].reused_first, 64U);
  EXPECT_EQ(rank[other].reused_first, 32U) << "what follows a different block is different";
}

TEST_P(VllmPasses, ReusesNothingWithoutPrefixCaching) {  // bugs.md A20
  RankConfig config = a_rank(8, 100);
  config.prefix_caching = false;
  Rank rank(mode(), config);
  const Ask ask{.prompt = 8, .output = 1, .ids = {1, 2}};
  rank.submit(ask);
  rank.pass();
  const Slot again = rank.submit(ask);
  rank.drain();
  EXPECT_EQ(rank[again].reused_max, 0U);
  EXPECT_EQ(rank.free(), 8U);
  EXPECT_THAT(rank.events, IsEmpty());
}

TEST_P(VllmPasses, ABlockIsVisibleWhenItIsFull) {  // C12
  Rank rank(mode(), a_rank(8, 2));
  const Ask ask{.prompt = 4, .output = 1, .ids = {1}};
  rank.submit(ask);
  rank.pass();
  EXPECT_EQ(rank.cached_blocks(ask), 0U);
  EXPECT_THAT(rank.events, IsEmpty());
  rank.pass();
  EXPECT_EQ(rank.cached_blocks(ask), 1U);
  if (stepping()) {
    ASSERT_EQ(rank.events.size(), 1U);
    EXPECT_EQ(rank.events[0].blocks.size(), 1U);
  }
}

TEST_P(VllmPasses, TheLastTokenTakesNoBlockAndLeavesAreEvictedFirst) {  // C13
  Rank rank(mode(), a_rank(2, 100));
  const Ask ask{.prompt = 8, .output = 1, .ids = {1, 2}};
  const Slot first = rank.submit(ask);
  rank.drain();
  EXPECT_EQ(rank[first].ending, Ending::Completed);
  EXPECT_EQ(rank.active(), 0U);
  EXPECT_EQ(rank.inactive(), 2U);
  rank.submit({.prompt = 4, .output = 1, .ids = {9}});
  rank.drain();
  EXPECT_EQ(rank.scheduler.pool().evictions(), 1U);
  const Slot probe = rank.submit({.prompt = 5, .output = 1, .ids = {1, 2}});
  rank.drain();
  EXPECT_EQ(rank[probe].reused_first, 4U);
}

TEST_P(VllmPasses, ARepeatedPromptOccupiesASecondCopyOfItsLastBlock) {  // C14
  Rank rank(mode(), a_rank(8, 100));
  const Ask ask{.prompt = 8, .output = 1, .ids = {1, 2}};
  rank.submit(ask);
  rank.drain();
  const Slot again = rank.submit(ask);
  rank.drain();
  EXPECT_EQ(rank[again].reused_first, 4U);
  EXPECT_EQ(rank.active(), 0U);
  EXPECT_EQ(rank.inactive(), 3U);
}

// How many blocks a request holds.

// bugs.md A15: the token that a pass samples has no slot yet; the next pass writes it.
TEST_P(VllmPasses, HoldsTheBlocksOfTheTokensItHasComputed) {
  for (const std::uint32_t block : {2U, 3U, 16U}) {
    for (std::uint32_t prompt = 1; prompt <= 2 * block + 1; ++prompt) {
      Rank rank(mode(), a_rank(64, 1024, block));
      rank.submit({.prompt = prompt, .output = 3 * block});
      for (std::uint32_t computed = prompt; computed < prompt + 2 * block; ++computed) {
        rank.pass();
        ASSERT_EQ(rank.active(), (computed + block - 1) / block)
            << "block " << block << ", prompt " << prompt << ", computed " << computed;
      }
    }
  }
}

// bugs.md A16 and decisions.md 13: the last token needs no slot. A pool that holds the others is
// large enough, one token more is not, and the rank goes on.
TEST_P(VllmPasses, CompletesInExactlyTheSlotsOfAllButTheLastTokenAndFailsInOneLess) {
  for (const std::uint32_t block : {2U, 4U, 16U}) {
    for (std::uint32_t blocks = 1; blocks <= 3; ++blocks) {
      for (std::uint32_t output = 2; output < blocks * block; ++output) {
        const std::uint32_t prompt = blocks * block + 1 - output;
        Rank rank(mode(), a_rank(blocks, 1024, block));
        const Slot fits = rank.submit({.prompt = prompt, .output = output});
        rank.drain();
        EXPECT_EQ(rank[fits].ending, Ending::Completed) << block << ' ' << blocks << ' ' << output;
        EXPECT_EQ(rank[fits].generated, output);

        const Slot grows = rank.submit({.prompt = prompt, .output = output + 1});
        const Slot next = rank.submit({.prompt = prompt, .output = 1});
        rank.drain();
        EXPECT_EQ(rank[grows].ending, Ending::Failed) << block << ' ' << blocks << ' ' << output;
        EXPECT_EQ(rank[grows].reason, Reason::KvCapacity);
        EXPECT_EQ(rank[grows].generated, output);
        EXPECT_EQ(rank[grows].kv_needed, blocks + 1);
        EXPECT_EQ(rank.scheduler.kv_limit(), blocks);
        EXPECT_EQ(rank[next].ending, Ending::Completed) << "the rank goes on";
        EXPECT_EQ(rank.active(), 0U);
      }
    }
  }
}

}  // namespace
}  // namespace servecast::scheduler
