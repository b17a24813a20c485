// SPDX-License-Identifier: Apache-2.0
// The published numbers of ranks with recurrent state (engine-vllm.md 9.2-9.7, 19.4, C27-C32),
// from whole passes of a small rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cache/a_state_rank.hpp"

namespace servecast::cache {
namespace {

using testing::ElementsAre;
using State = StateRank::State;
using Sequence = StateRank::Sequence;

StateCacheConfig plain(std::uint32_t capacity, std::uint32_t block, std::uint32_t states = 1) {
  return {.capacity = capacity, .state_blocks = states, .align = {.block_tokens = block}};
}
StateCacheConfig aligned(std::uint32_t capacity, std::uint32_t block, std::uint32_t unit,
                         AlignBoundary boundary = AlignBoundary::PromptMinusOne) {
  return {.capacity = capacity,
          .align = {.block_tokens = block, .match_unit = unit, .boundary = boundary}};
}

// Runs a request alone and leaves what it cached behind.
void run_alone(StateRank& rank, const Tokens& prompt, std::uint32_t outputs = 1) {
  rank.submit(prompt, outputs);
  rank.run_to_end();
}

TEST(StateTrace, TwoRequestsFillAPoolOfEightAndAThirdWaits) {  // C27
  StateRank rank(plain(8, 64, 2), 1024);
  rank.submit(text(1, 128), 8);
  rank.submit(text(2, 128), 8);
  const Sequence& third = rank.submit(text(3, 128), 8);
  rank.pass();
  EXPECT_EQ(rank.running(), 2U);
  EXPECT_EQ(rank.active(), 8U);
  EXPECT_EQ(third.state, State::Waiting);
}

TEST(StateTrace, OneTokenBlockAndOneStateIsTheSmallestPool) {  // C27, 2.3
  StateRank rank(plain(3, 64, 2), 1024);
  const Sequence& fits = rank.submit(text(1, 64), 1);
  const Sequence& does_not = rank.submit(text(2, 65), 1);
  rank.run_to_end();
  EXPECT_EQ(fits.state, State::Completed);
  EXPECT_EQ(does_not.state, State::Rejected);
}

TEST(StateTrace, ALongDecodeKeepsTheStateOfAnAlignedPrompt) {  // C29
  StateRank rank(aligned(64, 4, 4), 64);
  const Sequence& first = rank.submit(text(1, 16), 16);
  rank.run_to_end();
  EXPECT_THAT(std::vector(first.ends.begin(), first.ends.begin() + 2), ElementsAre(12U, 16U));
  const Sequence& again = rank.submit(text(1, 16), 16);
  rank.run_to_end();
  EXPECT_EQ(again.reused, 12U);
}

TEST(StateTrace, TheOldBoundaryKeepsNoStateForAnEqualPrompt) {  // 9.4, version note
  StateRank rank(aligned(64, 4, 4, AlignBoundary::KnownFloor), 64);
  const Sequence& first = rank.submit(text(1, 16), 16);
  rank.run_to_end();
  EXPECT_EQ(first.ends.front(), 16U);
  EXPECT_EQ(rank.reuse(text(1, 16)), 0U);
  EXPECT_EQ(rank.reuse(text(1, 17)), 16U);
}

TEST(StateTrace, APromptLeavesItsLastFullPageAndItsTail) {  // 19.4
  StateRank rank(aligned(16, 6, 2), 8);
  const Sequence& first = rank.submit(text(1, 17), 4);
  rank.run_to_end();
  EXPECT_THAT(first.ends, ElementsAre(6U, 12U, 16U, 17U, 18U, 19U, 20U));
  EXPECT_EQ(rank.reuse(text(1, 17)), 16U);
  EXPECT_EQ(rank.reuse(text(1, 16)), 12U);  // a token must be left to compute
  EXPECT_EQ(rank.reuse(fork(text(1, 17), 16, 2, 20)), 16U);
  EXPECT_EQ(rank.reuse(fork(text(1, 17), 14, 2, 20)), 12U);
  EXPECT_EQ(rank.reuse(fork(text(1, 17), 11, 2, 20)), 0U);  // pages yes, state no

  const StateHit hit = rank.look_up(fork(text(1, 17), 16, 2, 1));
  EXPECT_EQ(hit.pages.size(), 2U);
  EXPECT_NE(hit.shared_page, kNoBlock);
  const Sequence& other = rank.submit(fork(text(1, 17), 16, 2, 1), 9);
  rank.pass();
  ASSERT_EQ(other.reused, 16U);
  ASSERT_EQ(other.lease.pages.size(), 3U);
  EXPECT_EQ(other.lease.pages[1], hit.pages[1]);
  EXPECT_NE(other.lease.pages[2], hit.shared_page);  // one private copy of page 2
  EXPECT_EQ(rank.active(), 3U + 1 + 1 + 1);  // until the step ends: the state and page copied from
  rank.cache.begin_step();
  EXPECT_EQ(rank.active(), 3U + 1);
}

TEST(StateTrace, PreemptingInThePassOfASnapshotDiscardsThatOneAlone) {  // 19.4
  StateRank rank(aligned(16, 6, 2), 8);
  Sequence& first = rank.submit(text(1, 17), 4);
  for (int i = 0; i < 3; ++i) rank.pass();
  ASSERT_EQ(first.lease.computed, 16U);
  StateCache undisturbed = rank.cache;
  rank.cache.preempt(first.lease);
  rank.verify();
  EXPECT_EQ(rank.active(), 0U);
  EXPECT_EQ(rank.reuse(text(1, 17)), 12U);

  undisturbed.begin_step();
  const std::vector<std::uint64_t> hashes = chain(text(1, 17), 2);
  EXPECT_EQ(undisturbed.look_up({.hashes = hashes, .known = 17}).tokens, 16U);
}

TEST(StateTrace, OnlyABoundaryThatWasRunLeavesAState) {  // 19.4
  StateRank rank(aligned(16, 6, 2), 64);
  const Sequence& first = rank.submit(text(1, 24), 1);
  rank.run_to_end();
  EXPECT_THAT(first.ends, ElementsAre(18U, 24U));
  EXPECT_EQ(rank.reuse(text(1, 24)), 18U);

  StateCache cache(aligned(16, 6, 2));
  const std::vector<std::uint64_t> hashes = chain(text(1, 24), 2);
  StateLease lease;
  cache.begin_step();
  ASSERT_TRUE(cache.admit(lease, {}, 12));
  cache.finalise(lease, {.hashes = hashes, .after = 12, .prompt = 24, .known = 24});
  cache.begin_step();
  ASSERT_TRUE(cache.allocate(lease, 24));
  cache.finalise(lease, {.hashes = hashes, .after = 24, .prompt = 24, .known = 24});
  cache.release(lease);
  cache.begin_step();
  EXPECT_EQ(cache.look_up({.hashes = hashes, .known = 24}).tokens, 0U);
}

TEST(StateTrace, HoldsTheBlocksOfTheLongPromptsCase) {  // C30, decisions.md 11
  StateRank rank(aligned(64, 1536, 128), 8192);
  const Sequence& first = rank.submit(text(1, 24300), 400);
  std::vector<std::uint32_t> active, pages;
  for (int i = 0; i < 5; ++i) {
    rank.pass();
    active.push_back(rank.active());
    pages.push_back(static_cast<std::uint32_t>(first.lease.pages.size()));
  }
  EXPECT_THAT(first.ends, ElementsAre(7680U, 15360U, 23040U, 24192U, 24300U));
  EXPECT_THAT(pages, ElementsAre(5U, 10U, 15U, 16U, 16U));
  EXPECT_THAT(active, ElementsAre(6U, 12U, 17U, 18U, 18U));
  StateCache next = rank.cache;
  next.begin_step();  // the snapshot of the tail is no longer held
  EXPECT_EQ(next.pool().active(), 17U);
  EXPECT_EQ(next.pool().inactive(), 2U);

  while (first.lease.computed < 24576) rank.pass();
  EXPECT_EQ(rank.resident(), 19U);
  rank.pass();
  EXPECT_EQ(rank.resident(), 21U);
  rank.pass();
  EXPECT_EQ(rank.resident(), 20U);

  rank.run_to_end();
  EXPECT_EQ(rank.reuse(fork(text(1, 24300), 23700, 2, 500)), 23040U);
  EXPECT_EQ(rank.reuse(text(1, 24300)), 24192U);
  EXPECT_EQ(rank.reuse(fork(text(1, 24300), 23039, 2, 500)), 0U);    // no snapshot before 23,040
  EXPECT_EQ(rank.reuse(fork(first.tokens, 24600, 2, 500)), 24192U);  // nor behind the prompt
}

TEST(StateTrace, AStateIsSeenFromTheNextPassOn) {  // C31
  StateRank rank(plain(32, 4), 64);
  const Tokens prefix = text(1, 12);
  rank.submit(fork(prefix, 8, 1, 0), 4);
  const Sequence& second = rank.submit(prefix, 4);
  rank.pass();
  EXPECT_EQ(second.state, State::Running);
  EXPECT_EQ(second.reused, 0U);
  const Sequence& third = rank.submit(fork(prefix, 12, 2, 4), 4);
  rank.pass();
  EXPECT_EQ(third.reused, 12U);
  rank.run_to_end();
}

TEST(StateTrace, APromptThatCanNeverBeHeldWithItsStateIsRejected) {  // C32
  StateRank rank(plain(4, 4), 64);
  const Sequence& sequence = rank.submit(text(1, 16), 1);
  rank.pass();
  EXPECT_EQ(sequence.state, State::Rejected);
  EXPECT_EQ(sequence.admissions, 0U);
}

TEST(StateTrace, ARequestThatOutgrowsThePoolEndsWithoutPreemption) {  // C32
  StateRank rank(plain(3, 4), 64);
  const Sequence& sequence = rank.submit(text(1, 8), 8);
  rank.pass();
  EXPECT_EQ(sequence.generated(), 1U);
  rank.pass();
  EXPECT_EQ(sequence.state, State::Rejected);
  EXPECT_EQ(sequence.generated(), 1U);
  EXPECT_EQ(sequence.preemptions, 0U);
  EXPECT_EQ(rank.active(), 0U);
}

TEST(StateTrace, APreemptedRequestThatGrewTooLargeIsRejectedWhenItReturns) {  // C32
  StateRank rank(plain(6, 4), 64);
  rank.submit(text(1, 4), 9);
  const Sequence& victim = rank.submit(text(2, 4), 30);
  rank.run_to_end();
  EXPECT_GT(victim.preemptions, 0U);
  EXPECT_EQ(victim.state, State::Rejected);
  EXPECT_EQ(rank.active(), 0U);
}

TEST(StateTrace, AHitThatTheRestDoesNotFitBesideIsImpossible) {  // 9.6
  StateRank partial(aligned(5, 6, 2), 8);
  run_alone(partial, text(1, 17));
  const StateHit hit = partial.look_up(text(1, 17));
  ASSERT_EQ(hit.tokens, 16U);
  EXPECT_EQ(partial.cache.peak(17, hit), 6U);
  EXPECT_EQ(partial.cache.peak(17, {}), 4U);
  const Sequence& again = partial.submit(text(1, 17), 1);
  partial.run_to_end();
  EXPECT_EQ(again.state, State::Rejected);

  StateRank full(plain(4, 4), 8);
  run_alone(full, text(1, 4));
  full.cache.begin_step();
  const StateHit four = full.look_up(text(1, 9));
  ASSERT_EQ(four.tokens, 4U);
  EXPECT_EQ(full.cache.peak(9, four), 5U);
  EXPECT_EQ(full.cache.peak(9, {}), 4U);
  const Sequence& nine = full.submit(text(1, 9), 1);
  full.run_to_end();
  EXPECT_EQ(nine.state, State::Rejected);
}

TEST(StateTrace, TheDraftersUnitIsTakenOffTheTokensBeforeTheStateIsSought) {  // 9.2
  StateRank rank(plain(32, 4), 64);
  for (const std::uint32_t prompt : {4U, 8U, 12U}) run_alone(rank, text(1, prompt));
  EXPECT_EQ(rank.reuse(text(1, 16)), 12U);
  EXPECT_EQ(rank.reuse(text(1, 16), true), 8U);
  // The bound of the drop is 4 tokens and that state is there: no second drop to 0.
  EXPECT_EQ(rank.reuse(text(1, 9), true), 4U);
}

TEST(StateTrace, ALaterStateDoesNotServeAnEarlierFork) {  // 9.2
  StateRank rank(plain(32, 4), 64);
  run_alone(rank, text(1, 12));
  EXPECT_EQ(rank.reuse(fork(text(1, 12), 12, 2, 1)), 12U);
  EXPECT_EQ(rank.reuse(text(1, 12)), 0U);
  EXPECT_EQ(rank.reuse(fork(text(1, 12), 8, 2, 4)), 0U);
}

TEST(StateTrace, AnUnalignedEndPublishesNothingInDefaultMode) {  // 9.3
  StateRank rank(plain(32, 4), 64);
  run_alone(rank, text(1, 11));
  EXPECT_EQ(rank.reuse(text(1, 12)), 0U);
  EXPECT_EQ(rank.inactive(), 2U);  // the full pages
}

// One latest checkpoint: the decode's replaces the prompt's.
TEST(StateTrace, ADecodeStepOnAFullPageReplacesTheSnapshot) {  // 9.3
  StateRank rank(plain(32, 4), 64);
  const Sequence& sequence = rank.submit(text(1, 8), 10);
  for (int i = 0; i < 4; ++i) rank.pass();
  EXPECT_EQ(rank.reuse(text(1, 9)), 8U);
  rank.pass();
  ASSERT_EQ(sequence.lease.computed, 12U);
  EXPECT_EQ(rank.reuse(text(1, 9)), 0U);
  EXPECT_EQ(rank.reuse(fork(sequence.tokens, 12, 2, 1)), 12U);
  EXPECT_EQ(rank.inactive(), 0U);
}

// Drained ranks give every block back, whatever happened to their requests.
TEST(StateTrace, AfterTheLastRequestEveryBlockCanBeReserved) {  // I14
  for (const StateCacheConfig& config : {plain(13, 4), plain(14, 4, 2), aligned(14, 4, 2)}) {
    StateRank rank(config, 9);
    std::uint32_t preemptions = 0;
    std::vector<const Sequence*> sequences;
    for (std::uint32_t i = 0; i < 24; ++i) {
      sequences.push_back(&rank.submit(fork(text(1, 12), i % 13, 2 + i, i % 7 + 1), i % 9 + 1));
    }
    rank.run_to_end();
    for (const Sequence* sequence : sequences) preemptions += sequence->preemptions;
    EXPECT_GT(preemptions, 0U);
    rank.cache.begin_step();
    EXPECT_EQ(rank.active(), 0U);
    EXPECT_EQ(rank.cache.room(), config.capacity);
    StateLease all;
    const std::uint32_t pages = config.capacity - config.state_blocks;
    EXPECT_TRUE(rank.cache.admit(all, {}, pages * config.align.block_tokens));
    EXPECT_EQ(rank.active(), config.capacity);
    EXPECT_EQ(rank.cache.room(), 0U);
    rank.cache.release(all);
    EXPECT_EQ(rank.cache.pool().free(), config.capacity);
    rank.verify();
  }
}

}  // namespace
}  // namespace servecast::cache
