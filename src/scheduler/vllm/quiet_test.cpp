// SPDX-License-Identifier: Apache-2.0
// Passes that may run without a look at the queue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "scheduler/vllm/a_rank.hpp"

namespace servecast::scheduler {
namespace {

TEST(VllmQuiet, EndsWithThePassThatGivesSomeoneItsLastToken) {
  Rank rank(Mode::Fast, a_rank(100, 100));
  rank.submit({.prompt = 4, .output = 9});
  rank.submit({.prompt = 4, .output = 5});
  EXPECT_EQ(rank.scheduler.quiet(64).passes, 0U) << "someone waits to be tested";
  rank.pass();
  const Quiet all = rank.scheduler.quiet(64);
  EXPECT_EQ(all.passes, 3U);
  EXPECT_TRUE(all.then_completes);
  const Quiet some = rank.scheduler.quiet(2);
  EXPECT_EQ(some.passes, 2U);
  EXPECT_FALSE(some.then_completes);
}

TEST(VllmQuiet, EndsBeforeThePassThatMustPreempt) {
  RankConfig config = a_rank(4, 100);
  config.prefix_caching = false;
  Rank rank(Mode::Fast, config);
  rank.submit({.prompt = 4, .output = 8});
  rank.submit({.prompt = 4, .output = 8});
  rank.pass();
  const Quiet quiet = rank.scheduler.quiet(64);
  EXPECT_EQ(quiet.passes, 4U);
  EXPECT_FALSE(quiet.then_completes);
}

TEST(VllmQuiet, EvictsWithoutEnding) {  // seam-notes S1
  Rank rank(Mode::Fast, a_rank(5, 100));
  rank.submit({.prompt = 16, .output = 1, .ids = {1, 2, 3, 4}});
  rank.drain();
  EXPECT_EQ(rank.inactive(), 4U);
  rank.submit({.prompt = 4, .output = 16});
  rank.pass();
  EXPECT_EQ(rank.scheduler.quiet(64).passes, 14U);
}

TEST(VllmQuiet, NothingIsQuietBehindAnUnfinishedPrefillOrAHeadThatMayEnter) {
  Rank rank(Mode::Fast, a_rank(8, 4));
  rank.submit({.prompt = 1, .output = 20});
  rank.pass();
  EXPECT_GT(rank.scheduler.quiet(64).passes, 0U);
  rank.submit({.prompt = 8, .output = 9});
  EXPECT_EQ(rank.scheduler.quiet(64).passes, 0U) << "a head that nobody has tested";
  rank.pass();
  EXPECT_EQ(rank.scheduler.quiet(64).passes, 0U) << "a prefill of which five tokens are left";
  rank.passes(2);
  EXPECT_GT(rank.scheduler.quiet(64).passes, 0U);
  rank.submit({.prompt = 28, .output = 1});
  rank.pass();
  EXPECT_GT(rank.scheduler.quiet(64).passes, 0U) << "a head that waits for blocks";
}

TEST(VllmQuiet, AHeadThatWaitsForBlocksMayStillBeRejectedWithoutChunkedPrefill) {  // W3
  Rank rank(Mode::Fast, whole_prompts(8, 100));
  rank.submit({.prompt = 1, .output = 20});
  rank.pass();
  rank.submit({.prompt = 30, .output = 1});
  rank.pass();
  EXPECT_EQ(rank.scheduler.waiting(), 1U);
  EXPECT_EQ(rank.scheduler.quiet(64).passes, 0U);
}

// The passes of a run, taken at once, leave the rank as they do one by one.
TEST(VllmQuiet, SeveralPassesAtOnceAreThosePassesOneByOne) {
  for (std::uint32_t count = 1; count <= 14; ++count) {
    Rank single(Mode::Fast, a_rank(11, 100)), batch(Mode::Fast, a_rank(11, 100));
    for (Rank* rank : {&single, &batch}) {
      rank->submit({.prompt = 16, .output = 1, .ids = {1, 2, 3, 4}});
      rank->drain();
      rank->submit({.prompt = 4, .output = 16});
      rank->submit({.prompt = 3, .output = 17});
      rank->pass();
    }
    ASSERT_GE(batch.scheduler.quiet(64).passes, count);
    std::vector<Time> ends;
    for (std::uint32_t i = 1; i <= count; ++i) ends.push_back(batch.now + Duration{i * kPassNs});
    batch.scheduler.advance(ends);
    batch.scheduler.verify();
    batch.now = ends.back();
    single.passes(static_cast<int>(count));
    EXPECT_EQ(batch.scheduler.cohort_context(), single.scheduler.cohort_context());
    EXPECT_EQ(batch.active(), single.active());
    EXPECT_EQ(batch.inactive(), single.inactive());
    EXPECT_EQ(batch.scheduler.pool().evictions(), single.scheduler.pool().evictions());
    EXPECT_EQ(batch.scheduler.passes(), single.scheduler.passes());
    EXPECT_EQ(batch.drain(), single.drain());
    for (const Slot slot : {1U, 2U}) {
      EXPECT_EQ(batch[slot].second_token, single[slot].second_token);
      EXPECT_EQ(batch[slot].last_token, single[slot].last_token);
      EXPECT_EQ(batch[slot].generated, single[slot].generated);
    }
  }
}

}  // namespace
}  // namespace servecast::scheduler
