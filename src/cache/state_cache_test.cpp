// SPDX-License-Identifier: Apache-2.0
#include "cache/state_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cache/a_state_rank.hpp"

namespace servecast::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A cache of pages of four tokens, and one request's view of it after the other.
class Cache : public StateCache {
 public:
  Cache(std::uint32_t capacity, std::uint32_t states, std::uint32_t unit = 0)
      : StateCache({.capacity = capacity,
                    .state_blocks = states,
                    .align = {.block_tokens = 4, .match_unit = unit}}),
        chain_unit_(unit > 0 ? unit : 4) {}

  StateHit find(const Tokens& tokens) const {
    const std::vector<std::uint64_t> hashes = chain(tokens, chain_unit_);
    return look_up({.hashes = hashes, .known = static_cast<std::uint32_t>(tokens.size())});
  }
  std::vector<std::uint32_t> compute(StateLease& lease, const Tokens& tokens, std::uint32_t after) {
    const std::vector<std::uint64_t> hashes = chain(tokens, chain_unit_);
    const auto known = static_cast<std::uint32_t>(tokens.size());
    const auto visible =
        finalise(lease, {.hashes = hashes, .after = after, .prompt = known, .known = known});
    verify();
    verify(lease);
    return {visible.begin(), visible.end()};
  }
  // One step that takes the request to `after`.
  void step(StateLease& lease, const Tokens& tokens, std::uint32_t after) {
    begin_step();
    ASSERT_TRUE(lease.empty() ? admit(lease, {}, after) : allocate(lease, after));
    compute(lease, tokens, after);
  }
  using StateCache::verify;

 private:
  std::uint32_t chain_unit_;
};

TEST(StateCache, TheExampleOfItsHeader) {
  const std::vector<std::uint64_t> hashes = chain(text(1, 16), 4);
  StateCache cache({.capacity = 64, .align = {.block_tokens = 4, .match_unit = 4}});
  StateLease lease;
  cache.begin_step();
  StateHit hit = cache.look_up({.hashes = hashes, .known = 16});
  if (cache.need(16, hit) <= cache.room() && cache.admit(lease, hit, 12)) {
    cache.finalise(lease, {.hashes = hashes, .after = 12, .prompt = 16, .known = 16});
  }
  cache.release(lease);
  cache.begin_step();
  EXPECT_EQ(cache.look_up({.hashes = hashes, .known = 16}).tokens, 12U);
}

TEST(StateCache, ASnapshotTakesNoBlockUntilTheNextWrite) {  // engine-vllm.md 9.3
  Cache cache(16, 2);
  StateLease lease;
  const Tokens tokens = text(1, 20);
  cache.step(lease, tokens, 8);
  EXPECT_EQ(cache.pool().active(), 2U + 2);
  const std::vector<BlockIndex> snapshot = lease.working;
  cache.step(lease, tokens, 9);  // the write goes to two more blocks, a copy is held for the step
  EXPECT_EQ(cache.pool().active(), 3U + 2 + 2);
  EXPECT_EQ(cache.find(tokens).state, snapshot);
  EXPECT_NE(lease.working, snapshot);
  cache.step(lease, tokens, 10);
  EXPECT_EQ(cache.pool().active(), 3U + 2);
  EXPECT_EQ(cache.pool().inactive(), 2U);
  EXPECT_EQ(cache.find(tokens).tokens, 8U);
}

TEST(StateCache, APublicationDiscardsTheRequestsInactiveSnapshotAlone) {  // 9.3
  Cache cache(32, 2);
  StateLease lease, reader;
  const Tokens tokens = text(1, 40);
  cache.step(lease, tokens, 8);
  cache.step(lease, tokens, 9);
  cache.begin_step();
  ASSERT_TRUE(cache.admit(reader, cache.find(tokens), 10));  // reads the snapshot at 8
  cache.compute(reader, fork(tokens, 8, 2, 9), 10);
  cache.step(lease, tokens, 12);  // 8 is read: it stays
  cache.begin_step();
  EXPECT_EQ(cache.find(fork(tokens, 8, 3, 4)).tokens, 8U);
  EXPECT_EQ(cache.find(tokens).tokens, 12U);
  cache.release(reader);

  cache.step(lease, tokens, 13);
  cache.step(lease, tokens, 14);
  const std::uint32_t free = cache.pool().free();
  cache.step(lease, tokens, 16);  // 12 is inactive: it goes and its blocks are free
  EXPECT_EQ(cache.pool().free(), free + 2);
  EXPECT_EQ(cache.find(fork(tokens, 12, 3, 4)).tokens, 8U);
}

// When every chunk ends on a full page, the snapshot before is still held as the copy of this step.
TEST(StateCache, ChunksThatAllEndOnFullPagesLeaveASnapshotEach) {
  Cache cache(32, 1);
  StateLease lease;
  const Tokens tokens = text(1, 40);
  for (const std::uint32_t end : {8U, 16U, 24U}) cache.step(lease, tokens, end);
  cache.begin_step();
  for (const std::uint32_t end : {8U, 16U, 24U}) {
    EXPECT_EQ(cache.find(fork(tokens, end, 2, 1)).tokens, end);
  }
}

TEST(StateCache, ASnapshotOfWhichABlockWasEvictedIsNotFound) {  // 9.1, I12
  Cache cache(8, 2);
  cache.keep_evicted_names();
  StateLease lease, other;
  const Tokens tokens = text(1, 9);
  cache.step(lease, tokens, 8);
  cache.release(lease);  // the snapshot first, so that it is older than the pages
  cache.begin_step();
  ASSERT_EQ(cache.find(tokens).tokens, 8U);
  ASSERT_TRUE(cache.admit(other, {}, 12));  // three pages and a state: one block too many
  EXPECT_EQ(cache.pool().inactive(), 3U);
  EXPECT_EQ(cache.find(tokens).tokens, 0U);
  EXPECT_THAT(cache.evicted_names(), IsEmpty());  // 6.6: the page before it is still there
}

TEST(StateCache, NothingOfTheCurrentStepIsFoundHoweverOftenItMoves) {
  Cache cache(32, 1);
  StateLease lease;
  const Tokens tokens = text(1, 20);
  cache.step(lease, tokens, 8);
  EXPECT_EQ(cache.find(tokens).tokens, 0U);
  ASSERT_TRUE(cache.allocate(lease, 9));  // the copy of it neither
  EXPECT_EQ(cache.find(tokens).tokens, 0U);
  cache.compute(lease, tokens, 9);
  EXPECT_EQ(cache.find(tokens).tokens, 0U);
  cache.begin_step();
  EXPECT_EQ(cache.find(tokens).tokens, 8U);
}

TEST(StateCache, AYoungCopyDoesNotHideAnOldOne) {
  Cache cache(32, 1);
  StateLease first, second;
  const Tokens tokens = text(1, 8);
  cache.begin_step();
  ASSERT_TRUE(cache.admit(first, {}, 8));
  ASSERT_TRUE(cache.admit(second, {}, 8));
  EXPECT_THAT(cache.compute(first, tokens, 8), ElementsAre(0U, 1U));
  cache.begin_step();
  EXPECT_THAT(cache.compute(second, tokens, 8), IsEmpty());  // its pages are further copies
  EXPECT_EQ(cache.find(text(1, 9)).tokens, 8U);
  EXPECT_EQ(cache.find(text(1, 9)).pages, first.pages);
}

TEST(StateCache, TakesOffTheNeedWhatIsActiveOfTheHit) {  // 9.6
  Cache cache(16, 2);
  StateLease lease;
  const Tokens tokens = text(1, 12);
  cache.step(lease, tokens, 8);
  cache.begin_step();
  const StateHit hit = cache.find(tokens);
  ASSERT_EQ(hit.tokens, 8U);
  EXPECT_EQ(cache.peak(12, hit), 3U + 2 + 2);
  EXPECT_EQ(cache.need(12, hit), 1U + 2);
  cache.release(lease);
  EXPECT_EQ(cache.need(12, hit), 3U + 2 + 2);
  EXPECT_EQ(cache.need(12, {}), 3U + 2);
}

TEST(StateCache, AnAdmissionThatDoesNotFitChangesNothing) {
  Cache cache(8, 1);
  StateLease first, second;
  const Tokens tokens = text(1, 17);
  cache.step(first, tokens, 16);
  cache.release(first);
  cache.begin_step();
  StateLease other;
  ASSERT_TRUE(cache.admit(other, {}, 4));
  const StateHit hit = cache.find(tokens);
  ASSERT_EQ(hit.tokens, 16U);
  // Seven blocks of which two are taken; five of the hit are inactive and cannot make room.
  EXPECT_FALSE(cache.admit(second, hit, 17));
  EXPECT_TRUE(second.empty());
  EXPECT_EQ(cache.pool().active(), 2U);
  EXPECT_EQ(cache.find(tokens).tokens, 16U);
  EXPECT_EQ(cache.pool().evictions(), 0U);
}

TEST(StateCache, AnAllocationThatDoesNotFitChangesNothing) {  // 9.6
  Cache cache(10, 1, 4);
  StateLease lease, other;
  const Tokens tokens = text(1, 16);
  cache.step(lease, tokens, 4);
  cache.begin_step();
  ASSERT_TRUE(cache.admit(other, {}, 16));
  cache.compute(other, text(2, 16), 3);
  ASSERT_TRUE(cache.allocate(lease, 8));
  cache.compute(lease, tokens, 8);
  ASSERT_EQ(cache.pool().free(), 1U);
  cache.begin_step();
  const StateLease before = lease;
  ASSERT_EQ(before.previous.size(), 1U);
  EXPECT_FALSE(cache.allocate(lease, 16));  // two pages and a state; the dead source is one of two
  EXPECT_EQ(lease.pages, before.pages);
  EXPECT_EQ(lease.working, before.working);
  EXPECT_EQ(lease.previous, before.previous);
  EXPECT_EQ(lease.slot, before.slot);
  EXPECT_EQ(cache.pool().free(), 1U);
  EXPECT_TRUE(cache.allocate(lease, 12));  // with its help one page and a state fit
  EXPECT_EQ(cache.pool().free(), 0U);
}

TEST(StateCache, ASourceIsHeldUntilTheNextAllocationInALaterStep) {  // 9.5
  Cache cache(32, 2, 4);
  StateLease lease, reader;
  const Tokens tokens = text(1, 13);
  cache.step(lease, tokens, 12);
  cache.release(lease);
  cache.begin_step();
  const StateHit hit = cache.find(tokens);
  ASSERT_EQ(hit.tokens, 12U);
  ASSERT_TRUE(cache.admit(reader, hit, 13));
  cache.compute(reader, tokens, 13);
  EXPECT_EQ(cache.pool().active(), 4U + 2 + 2);
  cache.begin_step();
  EXPECT_EQ(cache.pool().active(), 4U + 2 + 2);
  ASSERT_TRUE(cache.allocate(reader, 14));
  EXPECT_EQ(cache.pool().active(), 4U + 2);
  EXPECT_EQ(cache.find(tokens).tokens, 12U);
}

TEST(StateCache, AHitInsideAPageReadsThePageWhoeverFilledItSince) {
  Cache cache(32, 1, 2);
  StateLease lease;
  const Tokens tokens = text(1, 11);  // boundaries at 8 and 10
  cache.step(lease, tokens, 8);
  cache.step(lease, tokens, 10);
  cache.step(lease, tokens, 11);
  const BlockIndex page = lease.pages[2];
  cache.begin_step();
  EXPECT_EQ(cache.find(tokens).tokens, 10U);
  EXPECT_EQ(cache.find(tokens).shared_page, page);
  const Tokens grown = fork(tokens, 11, 2, 9);  // as if it had generated nine tokens
  ASSERT_TRUE(cache.allocate(lease, 12));
  const std::vector<std::uint64_t> hashes = chain(grown, 2);
  cache.finalise(lease, {.hashes = hashes, .after = 12, .prompt = 11, .known = 12});
  cache.release(lease);
  cache.begin_step();
  EXPECT_EQ(cache.find(grown).tokens, 10U);  // three full pages, but no state behind them
  EXPECT_EQ(cache.find(grown).shared_page, page);
  EXPECT_EQ(cache.find(tokens).shared_page, page);
}

// The longest match may end in a later page than the last state.
TEST(StateCache, AHitInsideAPageReadsThatPageAndNotTheOneThatTheTokensEndIn) {
  Cache cache(32, 1, 2);
  StateLease lease, longer;
  const Tokens tokens = text(1, 11);
  cache.step(lease, tokens, 8);
  cache.step(lease, tokens, 10);
  const Tokens more = fork(tokens, 11, 2, 8);  // its boundaries are 16 and 18
  cache.begin_step();
  ASSERT_TRUE(cache.admit(longer, cache.find(more), 18));
  cache.compute(longer, more, 18);
  const StateHit hit = cache.find(more);
  EXPECT_EQ(hit.tokens, 10U);  // 16 was not run, 18 is of this step
  EXPECT_EQ(hit.pages, std::vector(longer.pages.begin(), longer.pages.begin() + 2));
  EXPECT_EQ(hit.shared_page, longer.pages[2]);
}

TEST(StateCache, CountsWhatAWriteHoldsAgainstTheWholePool) {  // 9.6, can_compute
  Cache cache(5, 1, 2);
  StateLease lease;
  const Tokens tokens = text(1, 16);
  EXPECT_TRUE(cache.accepts(16));
  EXPECT_FALSE(cache.accepts(17));
  EXPECT_FALSE(cache.accepts(0));
  cache.step(lease, tokens, 8);
  EXPECT_TRUE(cache.can_compute(lease, 8));
  EXPECT_TRUE(cache.can_compute(lease, 12));   // three pages, the new state and the one before
  EXPECT_FALSE(cache.can_compute(lease, 13));  // four pages
  cache.step(lease, tokens, 12);               // publishes: 12 is the last full page before 16
  cache.begin_step();
  EXPECT_FALSE(cache.can_compute(lease, 16));
}

TEST(StateCache, ACompleteRequestMayReuseItsWholePrompt) {  // 7.3
  Cache cache(16, 1);
  StateLease lease, again;
  const Tokens tokens = text(1, 8);
  const std::vector<std::uint64_t> hashes = chain(tokens, 4);
  cache.step(lease, tokens, 8);
  cache.release(lease);
  cache.begin_step();
  EXPECT_EQ(cache.look_up({.hashes = hashes, .known = 8, .drafter = true}).tokens, 0U);
  const StateHit hit =
      cache.look_up({.hashes = hashes, .known = 8, .needs_logits = false, .drafter = true});
  EXPECT_EQ(hit.tokens, 8U);
  ASSERT_TRUE(cache.admit(again, hit, 8));
  EXPECT_TRUE(cache.allocate(again, 8));  // nothing to write
  EXPECT_THAT(cache.compute(again, tokens, 8), IsEmpty());
  cache.release(again);
  EXPECT_EQ(cache.pool().active(), 0U);
}

TEST(StateCache, PreemptionTakesBackTheSnapshotsOfItsStepAndKeepsThePages) {  // 9.5
  Cache cache(32, 2);
  StateLease lease;
  const Tokens tokens = text(1, 20);
  cache.step(lease, tokens, 8);
  cache.step(lease, tokens, 12);  // holds the snapshot at 8
  cache.preempt(lease);
  cache.preempt(lease);
  cache.release(lease);
  cache.verify();
  EXPECT_TRUE(lease.empty());
  EXPECT_EQ(cache.pool().active(), 0U);
  EXPECT_EQ(cache.pool().inactive(), 3U + 2);
  cache.begin_step();
  EXPECT_EQ(cache.find(tokens).tokens, 8U);
  EXPECT_EQ(cache.find(tokens).pages.size(), 2U);
}

TEST(StateCache, PreemptionTakesBackWhatABurstWroteOverInTheSameStep) {
  Cache cache(32, 1);
  StateLease lease;
  const Tokens tokens = text(1, 20);
  cache.step(lease, tokens, 8);
  ASSERT_TRUE(cache.reserve_burst(lease, 5));  // a copy of the snapshot at 8 is held
  cache.compute(lease, tokens, 12);
  cache.preempt(lease);
  cache.begin_step();
  EXPECT_EQ(cache.find(tokens).tokens, 0U);
  EXPECT_EQ(cache.pool().inactive(), 3U);
}

TEST(StateCache, ReleasesTheTailBeforeItsParents) {  // 6.3
  Cache cache(5, 1);
  cache.keep_evicted_names();
  StateLease lease, other;
  const Tokens tokens = text(1, 13);
  const std::vector<std::uint64_t> hashes = chain(tokens, 4);
  cache.step(lease, tokens, 13);
  cache.release(lease);
  EXPECT_EQ(cache.pool().inactive(), 3U);
  cache.begin_step();
  ASSERT_TRUE(cache.admit(other, {}, 16));
  EXPECT_THAT(cache.evicted_names(), ElementsAre(hashes[2], hashes[1], hashes[0]));
}

TEST(StateCache, WithoutPrefixCachingKeepsAndFindsNothing) {
  StateCache cache(
      {.capacity = 8, .align = {.block_tokens = 4, .match_unit = 2}, .prefix_caching = false});
  StateLease lease;
  cache.begin_step();
  EXPECT_EQ(cache.split({0, 11, 11, 11}, 64), 11U);
  ASSERT_TRUE(cache.admit(lease, {}, 8));
  EXPECT_THAT(cache.finalise(lease, {.hashes = {}, .after = 8, .prompt = 11, .known = 11}),
              IsEmpty());
  cache.begin_step();
  ASSERT_TRUE(cache.allocate(lease, 11));
  cache.verify(lease);
  EXPECT_EQ(cache.pool().active(), 3U + 1);  // one state for all pages
  const std::vector<std::uint64_t> hashes = chain(text(1, 11), 2);
  EXPECT_EQ(cache.look_up({.hashes = hashes, .known = 11}).tokens, 0U);
  cache.release(lease);
  EXPECT_EQ(cache.pool().free(), 8U);
}

TEST(StateCache, ABurstThatWritesOverASnapshotNeedsAnotherState) {  // 9.6
  Cache cache(10, 2);
  StateLease lease;
  const Tokens tokens = text(1, 20);
  cache.step(lease, tokens, 8);
  EXPECT_EQ(cache.burst_need(lease, 1), 1U);  // samples, but does not write
  EXPECT_EQ(cache.burst_need(lease, 2), 1U + 2);
  EXPECT_EQ(cache.burst_need(lease, 5), 2U + 2);
  EXPECT_TRUE(cache.can_burst(lease, 16));
  EXPECT_FALSE(cache.can_burst(lease, 17));

  ASSERT_TRUE(cache.reserve_burst(lease, 5));
  EXPECT_EQ(cache.pool().active(), 4U + 2 + 2);
  cache.compute(lease, tokens, 10);  // three tokens came, two are written
  cache.trim(lease, 11);
  EXPECT_EQ(cache.pool().active(), 3U + 2 + 2);
  EXPECT_EQ(cache.burst_need(lease, 2), 0U);
  cache.begin_step();
  EXPECT_EQ(cache.pool().active(), 3U + 2);
  EXPECT_EQ(cache.find(tokens).tokens, 8U);
}

TEST(StateCache, ABurstThatDoesNotFitChangesNothing) {
  Cache cache(6, 2);
  StateLease lease;
  const Tokens tokens = text(1, 20);
  cache.step(lease, tokens, 8);
  EXPECT_FALSE(cache.can_burst(lease, 2));
  EXPECT_FALSE(cache.reserve_burst(lease, 2));
  EXPECT_EQ(cache.pool().active(), 4U);
  EXPECT_EQ(lease.pages.size(), 2U);
  EXPECT_TRUE(cache.reserve_burst(lease, 1));
  EXPECT_EQ(cache.pool().active(), 5U);
}

}  // namespace
}  // namespace servecast::cache
