// SPDX-License-Identifier: Apache-2.0
// Who gives way, what it keeps, and which gaps count, in the reference mode and in the fast mode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "scheduler/vllm/a_rank.hpp"

namespace servecast::scheduler {
namespace {

using testing::ElementsAre;

class VllmPreemption : public testing::TestWithParam<Mode> {
 protected:
  Mode mode() const { return GetParam(); }
  bool stepping() const { return mode() == Mode::Stepping; }
};

INSTANTIATE_TEST_SUITE_P(, VllmPreemption, testing::Values(Mode::Stepping, Mode::Fast),
                         [](const testing::TestParamInfo<Mode>& mode) {
                           return name_of(mode.param);
                         });

// Who gives way.

// bugs.md A04: the last admitted goes first and comes back first; no block is held back.
TEST_P(VllmPreemption, VictimsGoFromTheLastAdmittedAndComeBackInTheirOrder) {
  for (const std::uint32_t count : {2U, 3U, 5U}) {
    // One block each when the prompts are computed; each needs a second one at its fifth token.
    RankConfig config = a_rank(count, 100);
    config.prefix_caching = false;
    Rank rank(mode(), config);
    std::vector<Slot> slots;
    for (std::uint32_t i = 0; i < count; ++i)
      slots.push_back(rank.submit({.prompt = 4, .output = 3}));
    const Slot late = rank.submit({.prompt = 4, .output = 1});
    rank.pass();
    EXPECT_EQ(rank.free(), 0U);
    rank.pass();
    // Pairs of blocks: the first half goes on, the second half gave way.
    const std::uint32_t stay = count / 2;
    for (std::uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(rank[slots[i]].state, i < stay ? State::Running : State::Preempted) << i;
    }
    rank.drain();
    for (std::uint32_t i = 1; i < count; ++i) {
      EXPECT_LE(rank[slots[i - 1]].last_token, rank[slots[i]].last_token) << i;
    }
    EXPECT_LE(rank[slots.back()].history.back().at, rank[late].first_admit);
  }
}

// C20, decisions.md 20: three decoders, the pool is short by one block for the second.
TEST_P(VllmPreemption, FifoPreemptionSkipsNobodyBehindTheVictim) {
  RankConfig config = a_rank(6, 100);
  config.preemption_mode = PreemptionMode::Fifo;
  Rank rank(mode(), config);
  const Slot r1 = rank.submit({.prompt = 6, .output = 9});
  rank.submit({.prompt = 8, .output = 9});
  rank.submit({.prompt = 5, .output = 9});
  rank.pass();
  rank.pass();
  EXPECT_EQ(rank[r1].state, State::Preempted);
  EXPECT_EQ(rank.scheduler.preemptions(), 1U);
  EXPECT_EQ(rank.shape.decode_requests, 2U);
  EXPECT_EQ(rank.shape.decode_context, 9U + 6);
  rank.pass();
  EXPECT_EQ(rank.shape.decode_context, 10U + 7) << "both survivors had advanced by one token";
}

// The second needs a block and the first, already scheduled in this pass, gives way: the prefill at
// the end gets its token too.
TEST_P(VllmPreemption, AVictimThatWasScheduledInThePassGivesItsTokenBack) {
  RankConfig config = a_rank(11, 5, 2);
  config.preemption_mode = PreemptionMode::Fifo;
  config.prefix_caching = false;
  Rank rank(mode(), config);
  const Slot first = rank.submit({.prompt = 2, .output = 9});
  rank.submit({.prompt = 3, .output = 9});
  rank.pass();
  rank.submit({.prompt = 14, .output = 1});
  rank.passes(3);
  EXPECT_EQ(rank.free(), 0U);
  EXPECT_EQ(rank.shape.prefill_isl, 9U);
  rank.pass();
  EXPECT_EQ(rank[first].state, State::Preempted);
  EXPECT_EQ(rank.shape.decode_requests, 1U);
  EXPECT_EQ(rank.shape.prefill_prefix, 9U);
  EXPECT_EQ(rank.shape.prefill_isl, 9U + 4);
  rank.drain();
  EXPECT_EQ(rank[first].generated, 9U);
}

TEST_P(VllmPreemption, AGapSpansTheTimeInWhichARequestWasPreempted) {
  RankConfig config = a_rank(4, 100);
  config.prefix_caching = false;
  Rank rank(mode(), config);
  rank.submit({.prompt = 4, .output = 8});
  rank.submit({.prompt = 4, .output = 8});
  rank.drain();
  // Seven gaps of each. The second one got its sixth token at 90, its fifth at 50.
  EXPECT_THAT(rank.sorted_gaps(),
              ElementsAre(10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 40));
}

// The first gives way, comes back in parts, and lacks one token after a pass in which another one
// gave way: it looks like a member of the cohort, but got no token in that pass.
TEST_P(VllmPreemption, ARequestThatCameBackIsNoMemberBeforeItHasAToken) {
  RankConfig config = a_rank(4, 3, 3);
  config.preemption_mode = PreemptionMode::Fifo;
  config.prefix_caching = false;
  Rank rank(mode(), config);
  rank.submit({.prompt = 2, .output = 4});
  rank.submit({.prompt = 1, .output = 7});
  rank.submit({.prompt = 2, .output = 3});
  EXPECT_EQ(rank.drain(), 11);
  EXPECT_EQ(rank.scheduler.preemptions(), 2U);
  EXPECT_THAT(rank.sorted_gaps(), ElementsAre(10, 10, 10, 10, 10, 10, 10, 10, 10, 50, 50));
}

TEST_P(VllmPreemption, PreemptsTheLastAndComputesItAgain) {  // engine-vllm.md 19.3, C19
  RankConfig config = a_rank(4, 100);
  config.prefix_caching = false;
  Rank rank(mode(), config);
  const Slot first = rank.submit({.prompt = 4, .output = 8});
  const Slot second = rank.submit({.prompt = 4, .output = 8});
  rank.passes(5);  // five tokens each
  EXPECT_EQ(rank.scheduler.preemptions(), 0U);
  EXPECT_EQ(rank.active(), 4U);
  rank.pass();
  EXPECT_EQ(rank.scheduler.preemptions(), 1U);
  EXPECT_EQ(rank[second].state, State::Preempted);
  EXPECT_EQ(rank[second].known(), 9U);
  EXPECT_EQ(rank.shape.decode_requests, 1U);
  EXPECT_EQ(rank.active(), 3U);
  rank.passes(2);
  EXPECT_EQ(rank[first].ending, Ending::Completed);
  EXPECT_EQ(rank[first].last_token, Time{80});
  EXPECT_EQ(rank[second].state, State::Preempted) << "needed 3 blocks, 1 was free";
  rank.pass();
  EXPECT_EQ(rank[second].state, State::Running);
  EXPECT_EQ(rank.shape.prefill_requests, 1U);
  EXPECT_EQ(rank.shape.prefill_isl, 4U) << "generated tokens are no prefill";
  EXPECT_EQ(rank.shape.prefill_prefix, 0U);
  EXPECT_EQ(rank.shape.decode_requests, 1U);
  EXPECT_EQ(rank.shape.decode_context, 9U);
  if (stepping()) {
    ASSERT_EQ(rank.outcome.trace.scheduled.size(), 1U);
    EXPECT_EQ(rank.outcome.trace.scheduled[0].from, 0U);
    EXPECT_EQ(rank.outcome.trace.scheduled[0].to, 9U);
  }
  EXPECT_EQ(rank.drain(), 2);
  EXPECT_EQ(rank[second].generated, 8U);
  EXPECT_EQ(rank[second].admissions, 2U);
  EXPECT_EQ(rank[second].preemptions, 1U);
  EXPECT_EQ(rank[second].first_token, Time{10});
  EXPECT_EQ(rank[second].second_token, Time{20});
  EXPECT_EQ(rank.free(), 4U);
}

// C9: prompt 6, three tokens generated, preempted: both full blocks are hit, one token is computed.
TEST_P(VllmPreemption, APreemptedRequestFindsItsOwnBlocksAgain) {
  Rank rank(mode(), a_rank(5, 100));
  const Slot a = rank.submit({.prompt = 6, .output = 6});
  const Slot b = rank.submit({.prompt = 6, .output = 6});
  rank.passes(4);
  EXPECT_EQ(rank[b].state, State::Preempted);
  EXPECT_EQ(rank[b].known(), 9U);
  EXPECT_EQ(rank.inactive(), 2U);
  rank.passes(2);
  EXPECT_EQ(rank[a].ending, Ending::Completed);
  rank.pass();
  EXPECT_EQ(rank.shape.prefill_requests, 0U);
  EXPECT_EQ(rank.shape.decode_requests, 1U);
  EXPECT_EQ(rank.shape.decode_context, 9U);
  ASSERT_EQ(rank[b].history.size(), 2U);
  EXPECT_EQ(rank[b].history[1].reused_tokens, 6U) << "clamped to the prompt (decisions.md 14)";
  if (stepping()) {
    ASSERT_EQ(rank.outcome.trace.admitted.size(), 1U);
    EXPECT_EQ(rank.outcome.trace.admitted[0].reused_tokens, 8U);
  }
  rank.drain();
  EXPECT_EQ(rank[b].generated, 6U);
  EXPECT_EQ(rank[b].reused_first, 0U);
  EXPECT_EQ(rank[b].reused_max, 6U);
}

// The same, but the other one grows into one of its blocks: the leaf goes first.
TEST_P(VllmPreemption, APreemptedRequestLosesItsLeafFirst) {
  Rank rank(mode(), a_rank(5, 100));
  const Slot a = rank.submit({.prompt = 6, .output = 8});
  const Slot b = rank.submit({.prompt = 6, .output = 6});
  rank.passes(8);
  EXPECT_EQ(rank[a].ending, Ending::Completed);
  EXPECT_EQ(rank.scheduler.pool().evictions(), 1U);
  rank.pass();
  ASSERT_EQ(rank[b].history.size(), 2U);
  EXPECT_EQ(rank[b].history[1].reused_tokens, 4U);
}

// Gaps.

// All passes take no time, so that the time of the last token does not say whether the last pass
// gave it. The first gives way and fails later; it must not take back gaps that it never had.
TEST(VllmGaps, PassesOfNoDurationAreToldApart) {
  RankConfig config = a_rank(3, 3, 3);
  for (std::uint32_t output = 1; output <= 14; ++output) {
    for (std::uint32_t other = 1; other <= 14; ++other) {
      for (const PreemptionMode preemption : {PreemptionMode::Lifo, PreemptionMode::Fifo}) {
        config.preemption_mode = preemption;
        Rank rank(Mode::Fast, config);
        rank.submit({.prompt = 4, .output = output});
        rank.submit({.prompt = 1, .output = other});
        std::size_t taken_back = 0, wanted = 0;
        while (rank.scheduler.has_work()) {
          rank.pass(Admit::Yes, 0);
          taken_back += rank.outcome.taken_back.size();
          for (const Slot slot : rank.outcome.ended) {
            if (rank[slot].ending == Ending::Failed) wanted += rank[slot].generated - 1;
          }
        }
        EXPECT_EQ(taken_back, wanted) << output << ' ' << other;
      }
    }
  }
}

TEST(VllmGaps, ARequestThatFailsTakesItsGapsBack) {
  Rank rank(Mode::Fast, a_rank(2, 100));
  rank.submit({.prompt = 4, .output = 10});
  for (const std::int64_t ns : {10, 11, 12, 13, 14}) rank.pass(Admit::Yes, ns);
  EXPECT_THAT(rank.gaps, ElementsAre(11, 12, 13, 14));
  rank.pass();  // the ninth token has no block
  EXPECT_THAT(rank.outcome.taken_back, ElementsAre(11, 12, 13, 14));
}

TEST(VllmGaps, ThoseOfALiveRequestAreKnownAlsoWhileItIsPreempted) {
  RankConfig config = a_rank(4, 100);
  config.prefix_caching = false;
  Rank rank(Mode::Fast, config);
  const Slot first = rank.submit({.prompt = 4, .output = 8});
  const Slot second = rank.submit({.prompt = 4, .output = 8});
  std::int64_t ns = 10;
  for (int i = 0; i < 7; ++i) rank.pass(Admit::Yes, ns++);
  std::vector<std::int64_t> gaps;
  rank.scheduler.gaps_of(second, rank.scheduler.passes(), gaps);
  EXPECT_THAT(gaps, ElementsAre(11, 12, 13, 14));
  gaps.clear();
  rank.scheduler.gaps_of(first, rank.scheduler.passes(), gaps);
  EXPECT_THAT(gaps, ElementsAre(11, 12, 13, 14, 15, 16));
  gaps.clear();
  rank.scheduler.gaps_of(first, 3, gaps);
  EXPECT_THAT(gaps, ElementsAre(11, 12)) << "only those of the passes that have ended";
  for (int i = 0; i < 3; ++i) rank.pass(Admit::Yes, ns++);
  gaps.clear();
  rank.scheduler.gaps_of(second, rank.scheduler.passes(), gaps);
  EXPECT_THAT(gaps, ElementsAre(11, 12, 13, 14, 15 + 16 + 17 + 18, 19));
}

}  // namespace
}  // namespace servecast::scheduler
