// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sglang/radix_kv.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "scheduler/sglang/a_bench.hpp"

namespace servecast::scheduler {
namespace {

// With real hashes and by provenance; pages free up and get locked in the same way.
class RadixKvOf : public testing::TestWithParam<bool> {
 protected:
  RadixKv a_kv(std::uint32_t blocks, std::uint32_t block_tokens,
               const SglangSettings& settings = {}) {
    return {an_sglang_rank(blocks, block_tokens, settings),
            {.real_hashes = GetParam(), .events = GetParam()},
            requests_.slab};
  }
  Slot add(std::uint32_t prompt, std::vector<std::uint32_t> ids = {}) {
    const Slot slot = requests_.add(prompt, 9, std::move(ids));
    requests_.slab[slot].final_tokens = prompt + 9;
    return slot;
  }
  // A request of this text came and went.
  void leave_behind(RadixKv& kv, const std::vector<std::uint32_t>& ids) {
    const auto tokens = static_cast<std::uint32_t>(ids.size());
    const Slot slot = add(tokens, ids);
    ASSERT_TRUE(kv.admit(slot, kv.find(slot, tokens).pages * page_, tokens));
    kv.finish(slot, tokens);
  }
  Request& at(Slot slot) { return requests_.slab[slot]; }
  // `left`: private pages of requests that have left and not finished.
  void verify(const RadixKv& kv, const std::vector<Slot>& holders, std::uint64_t left = 0) {
    std::uint64_t pages = left;
    for (const Slot slot : holders) pages += at(slot).blocks - at(slot).prefix_blocks;
    kv.verify(pages, holders.empty() && left == 0);
  }

  SglangRequests requests_;
  std::uint32_t page_ = 4;
};
INSTANTIATE_TEST_SUITE_P(Names, RadixKvOf, testing::Bool());

// S23 C1: 12 tokens in pages of 4.
TEST_P(RadixKvOf, GivesPagesUntilThereAreNone) {
  RadixKv kv = a_kv(3, 4);
  const Slot first = add(1), second = add(8), third = add(1);
  EXPECT_TRUE(kv.admit(first, 0, 1));
  EXPECT_EQ(kv.free(), 2U);
  EXPECT_TRUE(kv.admit(second, 0, 8));
  EXPECT_EQ(kv.free(), 0U);
  EXPECT_FALSE(kv.admit(third, 0, 1));
  EXPECT_EQ(kv.free(), 0U);
  EXPECT_EQ(at(third).blocks, 0U);
  kv.release(first);
  EXPECT_EQ(kv.free(), 1U);
  verify(kv, {second});
}

// S23 C2: 64 tokens in pages of 16.
TEST_P(RadixKvOf, HoldsWholePages) {
  RadixKv kv = a_kv(4, 16);
  const Slot slot = add(49);
  ASSERT_TRUE(kv.admit(slot, 0, 33));
  EXPECT_EQ(at(slot).blocks, 3U);
  EXPECT_EQ(kv.free(), 1U);
  ASSERT_TRUE(kv.extend(slot, 48));
  EXPECT_EQ(at(slot).blocks, 3U);
  EXPECT_EQ(kv.free(), 1U);
  ASSERT_TRUE(kv.extend(slot, 49));
  EXPECT_EQ(at(slot).blocks, 4U);
  EXPECT_EQ(kv.free(), 0U);
}

// S23 C3: 12 tokens in pages of 4.
TEST_P(RadixKvOf, FillsAPageBeforeItTakesAnother) {
  RadixKv kv = a_kv(3, 4);
  const Slot slot = add(5);
  ASSERT_TRUE(kv.admit(slot, 0, 1));
  EXPECT_EQ(kv.free(), 2U);
  ASSERT_TRUE(kv.extend(slot, 4));
  EXPECT_EQ(kv.free(), 2U);
  ASSERT_TRUE(kv.extend(slot, 5));
  EXPECT_EQ(kv.free(), 1U);
  kv.release(slot);
  EXPECT_EQ(kv.free(), 3U);
  EXPECT_EQ(kv.evictable(), 0U);
}

// S23 C4: 8 tokens in pages of 4.
TEST_P(RadixKvOf, LeavesARequestAsItWasThatCannotGrow) {
  RadixKv kv = a_kv(2, 4);
  const Slot first = add(5), second = add(1);
  ASSERT_TRUE(kv.admit(first, 0, 1));
  ASSERT_TRUE(kv.admit(second, 0, 1));
  EXPECT_FALSE(kv.extend(first, 5));
  EXPECT_EQ(at(first).blocks, 1U);
  EXPECT_EQ(at(first).computed, 1U);
  EXPECT_EQ(kv.free(), 0U);
  verify(kv, {first, second});
}

// S23 C9: 12 tokens in pages of 4; the older page is the one that is reused.
TEST_P(RadixKvOf, LocksWhatIsReusedBeforeItEvicts) {
  RadixKv kv = a_kv(3, 4);
  leave_behind(kv, text(4));
  leave_behind(kv, text(8, 50));
  const Slot slot = add(8, text(8));
  const cache::RadixTree::Match hit = kv.find(slot, 8);
  ASSERT_EQ(hit.pages, 1U);
  ASSERT_TRUE(kv.admit(slot, 4, 8));
  EXPECT_EQ(kv.free(), 0U);
  EXPECT_EQ(kv.evictable(), 1U) << "a page of the other text";
  verify(kv, {slot});
}

TEST_P(RadixKvOf, EvictsOnlyWhatIsShortOrAllOfIt) {
  for (const bool exact : {false, true}) {
    RadixKv kv = a_kv(4, 4, {.fidelity = exact ? Fidelity::Exact : Fidelity::Compat});
    for (const std::uint32_t first : {10U, 20U, 30U}) leave_behind(kv, text(4, first));
    ASSERT_TRUE(kv.admit(add(8), 0, 8));
    EXPECT_EQ(kv.evictable(), exact ? 1U : 2U);
    EXPECT_EQ(kv.free(), exact ? 1U : 0U);
  }
}

// S23 C10: 12 tokens in pages of 4.
TEST_P(RadixKvOf, FreesTheTailOfWhatEnds) {
  RadixKv kv = a_kv(3, 4);
  const Slot slot = add(5, text(5));
  ASSERT_TRUE(kv.admit(slot, 0, 5));
  EXPECT_EQ(kv.free(), 1U);
  kv.finish(slot, 5);
  EXPECT_EQ(kv.free(), 2U);
  EXPECT_EQ(kv.find(add(5, text(5)), 5).pages, 1U);
  verify(kv, {});
}

// S23 C11: 16 tokens in pages of 4.
TEST_P(RadixKvOf, KeepsWhatIsInTheTreeOfARetractedRequest) {
  RadixKv kv = a_kv(4, 4);
  const Slot slot = add(6, text(6));
  ASSERT_TRUE(kv.admit(slot, 0, 4));
  kv.commit(slot, 4);
  ASSERT_TRUE(kv.extend(slot, 6));
  kv.release(slot);
  EXPECT_EQ(kv.free(), 3U);
  EXPECT_EQ(kv.evictable(), 1U);
  EXPECT_EQ(kv.room(), 4U);
  EXPECT_EQ(kv.find(slot, 6).pages, 1U);
  verify(kv, {});
}

// S23 C50: both hold the same pages then.
TEST_P(RadixKvOf, FreesDuplicatesWhenTheyAreCommitted) {
  RadixKv kv = a_kv(8, 4);
  const Slot first = add(8, text(8)), second = add(8, text(8));
  ASSERT_TRUE(kv.admit(first, 0, 8));
  ASSERT_TRUE(kv.admit(second, 0, 8));
  kv.commit(first, 8);
  EXPECT_EQ(kv.free(), 4U);
  kv.commit(second, 8);
  EXPECT_EQ(kv.free(), 6U);
  EXPECT_EQ(at(first).prefix_node, at(second).prefix_node);
  kv.finish(first, 8);
  EXPECT_EQ(kv.evictable(), 0U) << "the second holds them still";
  kv.finish(second, 8);
  EXPECT_EQ(kv.evictable(), 2U);
}

// S23 C12, one token a page: the fifth is computed again, and is a duplicate.
TEST_P(RadixKvOf, CountsAPageOnceThatWasComputedTwice) {
  RadixKv kv = a_kv(16, 1);
  page_ = 1;
  leave_behind(kv, text(5));
  const Slot slot = add(5, text(5));
  ASSERT_TRUE(kv.admit(slot, 4, 5));
  EXPECT_EQ(kv.free(), 10U);
  kv.commit(slot, 5);
  EXPECT_EQ(kv.free(), 11U);
}

TEST_P(RadixKvOf, CommitsNoMoreThanHasAPlace) {
  RadixKv kv = a_kv(4, 4);
  const Slot slot = add(12, text(12));
  ASSERT_TRUE(kv.admit(slot, 0, 7));
  kv.commit(slot, 12);
  EXPECT_EQ(kv.find(add(12, text(12)), 12).pages, 1U);
}

TEST_P(RadixKvOf, EvictsTowardsAReserve) {
  RadixKv kv = a_kv(5, 4);
  leave_behind(kv, text(16));
  kv.evict_towards(3, false);
  EXPECT_EQ(kv.free(), 3U) << "two more";
  kv.evict_towards(3, true);
  EXPECT_EQ(kv.free(), 3U) << "there they are";
  kv.evict_towards(9, false);
  EXPECT_EQ(kv.free(), 5U);
}

// S8.3: what a request leaves shows when its pass has been observed, though its slot may be
// somebody else's by then.
TEST_P(RadixKvOf, KeepsWhatLeavesUntilItIsFinished) {
  RadixKv kv = a_kv(8, 4);
  const Slot slot = add(10, text(10));
  ASSERT_TRUE(kv.admit(slot, 0, 10));
  kv.commit(slot, 4);
  const RadixKv::Leaving leaving = kv.leave(slot, 10);
  EXPECT_EQ(at(slot).blocks, 0U);
  requests_.slab.remove(slot);
  const Slot other = add(3);
  EXPECT_EQ(other, slot);
  ASSERT_TRUE(kv.admit(other, 0, 3));
  EXPECT_EQ(kv.free(), 4U);
  EXPECT_EQ(kv.evictable(), 0U);
  EXPECT_EQ(kv.find(add(10, text(10)), 10).pages, 1U) << "what was there before";
  verify(kv, {other}, leaving.held - leaving.prefix_blocks);

  kv.finish(leaving);
  EXPECT_EQ(kv.free(), 5U);
  EXPECT_EQ(kv.evictable(), 2U);
  EXPECT_EQ(kv.find(add(10, text(10)), 10).pages, 2U);
  verify(kv, {other});
  std::vector<KvEvent> events;
  kv.flush(events);
  if (!GetParam()) return;
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].blocks.size(), 2U);
}

TEST_P(RadixKvOf, KeepsNothingOfATokenThatHadNoPlaceOrWasDropped) {
  RadixKv kv = a_kv(8, 4);
  const Slot slot = add(9, text(9));
  ASSERT_TRUE(kv.admit(slot, 0, 9));
  kv.finish(kv.leave(slot, 7));
  EXPECT_EQ(kv.evictable(), 1U);
  EXPECT_EQ(kv.free(), 7U);
}

TEST_P(RadixKvOf, HasNothingToDoWithATreeWithoutPrefixCaching) {
  RankConfig config = an_sglang_rank(4, 4);
  config.prefix_caching = false;
  RadixKv kv(config, {.real_hashes = GetParam(), .events = GetParam()}, requests_.slab);
  const Slot first = add(8, text(8)), second = add(8, text(8));
  ASSERT_TRUE(kv.admit(first, 0, 8));
  kv.commit(first, 8);
  EXPECT_EQ(kv.find(second, 8).pages, 0U);
  ASSERT_TRUE(kv.admit(second, 0, 8));
  EXPECT_EQ(kv.free(), 0U);
  kv.finish(first, 8);
  kv.finish(kv.leave(second, 8));
  EXPECT_EQ(kv.free(), 4U);
  std::vector<KvEvent> events;
  kv.flush(events);
  EXPECT_TRUE(events.empty());
}

}  // namespace
}  // namespace servecast::scheduler
