// SPDX-License-Identifier: Apache-2.0
#include "cache/block_pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace servecast::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kA = 0xA, kB = 0xB, kC = 0xC;

// Takes a block and leaves it inactive under a name.
void cache_block(BlockPool& pool, std::uint64_t name) {
  pool.take(1);
  pool.retire(name);
}

// Evicts one block after the other, which shows their order; names of the last copies only.
std::vector<std::uint64_t> eviction_order(BlockPool& pool) {
  pool.keep_evicted_names();
  pool.evicted_names().clear();
  while (pool.room() > 0) pool.take(1);
  return pool.evicted_names();
}

TEST(BlockPool, StartsFree) {
  const BlockPool pool(5);
  EXPECT_EQ(pool.capacity(), 5U);
  EXPECT_EQ(pool.free(), 5U);
  EXPECT_EQ(pool.room(), 5U);
  EXPECT_EQ(pool.active(), 0U);
  EXPECT_EQ(pool.inactive(), 0U);
  EXPECT_EQ(pool.find(kA), kNoBlock);
  pool.verify();
}

TEST(BlockPool, CountsAnonymousBlocksOnly) {
  BlockPool pool(5);
  pool.take(3);
  EXPECT_EQ(pool.active(), 3U);
  pool.give_back(2);
  EXPECT_EQ(pool.active(), 1U);
  EXPECT_EQ(pool.free(), 4U);
  EXPECT_EQ(pool.evictions(), 0U);
}

TEST(BlockPool, GivesFreeBlocksBeforeItEvicts) {
  BlockPool pool(3);
  cache_block(pool, kA);
  pool.take(2);
  EXPECT_EQ(pool.evictions(), 0U);
  EXPECT_NE(pool.find(kA), kNoBlock);
  pool.take(1);
  EXPECT_EQ(pool.evictions(), 1U);
  EXPECT_EQ(pool.find(kA), kNoBlock);
  pool.verify();
}

TEST(BlockPool, EvictsTheLeastRecentlyReleasedFirst) {
  BlockPool pool(3);
  pool.take(3);
  const BlockIndex a = pool.seal(kA).block, b = pool.seal(kB).block, c = pool.seal(kC).block;
  for (const BlockIndex block : {c, a, b}) pool.release(block);
  EXPECT_THAT(eviction_order(pool), ElementsAre(kC, kA, kB));
}

TEST(BlockPool, ABlockThatWasUsedAgainIsTheYoungest) {
  BlockPool pool(2);
  cache_block(pool, kA);
  cache_block(pool, kB);
  const std::array<BlockIndex, 1> hit{pool.find(kA)};
  ASSERT_TRUE(pool.reserve(hit, 0));
  pool.release(hit[0]);
  EXPECT_THAT(eviction_order(pool), ElementsAre(kB, kA));
}

TEST(BlockPool, LookingABlockUpChangesNoRecency) {  // engine-vllm.md 7.1
  BlockPool pool(2);
  cache_block(pool, kA);
  cache_block(pool, kB);
  EXPECT_NE(pool.find(kA), kNoBlock);
  EXPECT_THAT(eviction_order(pool), ElementsAre(kA, kB));
}

TEST(BlockPool, ABlockIsActiveUntilItsLastReferenceIsDropped) {
  BlockPool pool(2);
  pool.take(1);
  const BlockPool::Sealed sealed = pool.seal(kA);
  EXPECT_TRUE(sealed.visible);
  EXPECT_EQ(pool.name(sealed.block), kA);
  ASSERT_TRUE(pool.reserve({&sealed.block, 1}, 0));
  EXPECT_EQ(pool.active(), 1U);  // one block, two holders
  pool.release(sealed.block);
  EXPECT_TRUE(pool.is_active(sealed.block));
  pool.release(sealed.block);
  EXPECT_FALSE(pool.is_active(sealed.block));
  EXPECT_EQ(pool.inactive(), 1U);
  EXPECT_EQ(pool.find(kA), sealed.block);
  pool.verify();
}

TEST(BlockPool, TheFirstCopySealedIsPrimaryAndTheOthersAreNotVisible) {
  BlockPool pool(3);
  pool.take(3);
  const BlockPool::Sealed first = pool.seal(kA), second = pool.seal(kA), third = pool.seal(kA);
  EXPECT_TRUE(first.visible);
  EXPECT_FALSE(second.visible);
  EXPECT_FALSE(third.visible);
  EXPECT_EQ(pool.find(kA), first.block);
  pool.verify();
}

TEST(BlockPool, TheNextCopySealedBecomesPrimaryWhenThePrimaryIsEvicted) {
  BlockPool pool(3);
  pool.keep_evicted_names();
  pool.take(3);
  const BlockIndex first = pool.seal(kA).block, second = pool.seal(kA).block,
                   third = pool.seal(kA).block;
  // The order of release decides what is evicted, the order of sealing who is primary.
  for (const BlockIndex block : {first, third, second}) pool.release(block);
  pool.take(1);  // the first copy
  EXPECT_EQ(pool.find(kA), second);
  pool.verify();
  pool.take(1);  // the third copy, no primary
  EXPECT_EQ(pool.find(kA), second);
  pool.verify();
  EXPECT_THAT(pool.evicted_names(), IsEmpty());
  pool.take(1);
  EXPECT_EQ(pool.find(kA), kNoBlock);
  EXPECT_THAT(pool.evicted_names(), ElementsAre(kA));
  pool.verify();
}

TEST(BlockPool, ReportsANameOnceWithItsLastCopyWhicheverCopyGoesFirst) {  // bugs.md A21
  for (const bool primary_first : {true, false}) {
    BlockPool pool(2);
    pool.keep_evicted_names();
    pool.take(2);
    const BlockIndex first = pool.seal(kA).block, second = pool.seal(kA).block;
    pool.release(primary_first ? first : second);
    pool.take(1);
    EXPECT_THAT(pool.evicted_names(), IsEmpty()) << "a copy still lives";
    EXPECT_EQ(pool.find(kA), primary_first ? second : first);
    pool.release(primary_first ? second : first);
    pool.take(1);
    EXPECT_THAT(pool.evicted_names(), ElementsAre(kA));
  }
}

TEST(BlockPool, AnActiveCopyKeepsAnEvictedNameVisible) {
  BlockPool pool(2);
  pool.take(2);
  pool.release(pool.seal(kA).block);
  const BlockIndex second = pool.seal(kA).block;
  pool.take(1);
  EXPECT_EQ(pool.find(kA), second);
  EXPECT_TRUE(pool.is_active(second));
}

TEST(BlockPool, KeepsNoEvictedNamesUnlessAsked) {
  BlockPool pool(1);
  cache_block(pool, kA);
  pool.take(1);
  EXPECT_EQ(pool.evictions(), 1U);
  EXPECT_THAT(pool.evicted_names(), IsEmpty());
}

TEST(BlockPool, FindsNamesThatDifferOnlyInHighBits) {  // bugs.md A28
  BlockPool pool(3);
  pool.take(3);
  const std::uint64_t low = 1, high = 1 + (std::uint64_t{1} << 32),
                      top = 1 + (std::uint64_t{1} << 63);
  const BlockIndex a = pool.seal(low).block, b = pool.seal(high).block, c = pool.seal(top).block;
  EXPECT_EQ(pool.find(low), a);
  EXPECT_EQ(pool.find(high), b);
  EXPECT_EQ(pool.find(top), c);
  pool.verify();
}

TEST(BlockPool, ASpanIsEvictedBlockByBlockInItsPlace) {
  BlockPool pool(5);
  pool.keep_evicted_names();
  cache_block(pool, kA);
  pool.take(3);
  pool.retire_unnamed(3);
  cache_block(pool, kB);
  EXPECT_EQ(pool.inactive(), 5U);
  pool.take(2);  // A, then one block of the span
  EXPECT_THAT(pool.evicted_names(), ElementsAre(kA));
  EXPECT_EQ(pool.inactive(), 3U);
  pool.verify();
  pool.take(2);
  EXPECT_NE(pool.find(kB), kNoBlock);
  EXPECT_EQ(pool.evictions(), 4U);
  pool.take(1);
  EXPECT_EQ(pool.find(kB), kNoBlock);
  EXPECT_THAT(pool.evicted_names(), ElementsAre(kA, kB));
  EXPECT_EQ(pool.active(), 5U);
  pool.verify();
}

TEST(BlockPool, SpansThatAreNoNeighboursStayApart) {
  BlockPool pool(5);
  pool.take(4);
  pool.retire_unnamed(1);
  pool.retire(kA);
  pool.retire_unnamed(1);
  pool.retire_unnamed(1);  // joins the one before
  pool.take(3);            // one free block, the first span, A
  EXPECT_EQ(pool.find(kA), kNoBlock);
  EXPECT_EQ(pool.inactive(), 2U);
  pool.verify();
}

TEST(BlockPool, ASpanOfNothingIsNothing) {
  BlockPool pool(1);
  pool.retire_unnamed(0);
  EXPECT_EQ(pool.inactive(), 0U);
  pool.verify();
}

TEST(BlockPool, ReservesAllOrNothing) {
  BlockPool pool(4);
  cache_block(pool, kA);
  cache_block(pool, kB);
  pool.take(1);
  const std::array<BlockIndex, 1> prefix{pool.find(kA)};
  // One free and two inactive blocks, but A cannot be evicted for its own request.
  EXPECT_FALSE(pool.reserve(prefix, 3));
  EXPECT_EQ(pool.inactive(), 2U);
  EXPECT_EQ(pool.free(), 1U);
  EXPECT_FALSE(pool.is_active(prefix[0]));
  EXPECT_EQ(pool.evictions(), 0U);
  EXPECT_TRUE(pool.reserve(prefix, 2));
  EXPECT_TRUE(pool.is_active(prefix[0]));
  EXPECT_EQ(pool.find(kA), prefix[0]);
  EXPECT_EQ(pool.find(kB), kNoBlock);
  EXPECT_EQ(pool.active(), 4U);
  pool.verify();
}

TEST(BlockPool, AnActivePrefixTakesNoRoomFromTheFreshBlocks) {
  BlockPool pool(3);
  pool.take(1);
  const BlockIndex a = pool.seal(kA).block;
  cache_block(pool, kB);
  EXPECT_TRUE(pool.reserve({&a, 1}, 2));
  EXPECT_EQ(pool.active(), 3U);
  EXPECT_EQ(pool.room(), 0U);
  pool.verify();
}

// bs 4: an 8-token prompt is cached; the same prompt reuses block 0 and recomputes block 1 into a
// second copy (engine-vllm.md 7.4).
TEST(BlockPool, ARecomputedBlockOccupiesASecondPhysicalCopy) {
  BlockPool pool(8);
  pool.take(2);
  BlockIndex head = pool.seal(kA).block, tail = pool.seal(kB).block;
  pool.release(tail);
  pool.release(head);
  EXPECT_EQ(pool.inactive(), 2U);
  head = pool.find(kA);
  ASSERT_TRUE(pool.reserve({&head, 1}, 1));
  const BlockPool::Sealed again = pool.seal(kB);
  EXPECT_FALSE(again.visible);
  pool.release(again.block);
  pool.release(head);
  EXPECT_EQ(pool.active(), 0U);
  EXPECT_EQ(pool.inactive(), 3U);
  EXPECT_EQ(pool.free(), 5U);
  pool.verify();
}

TEST(BlockPool, ReleasingTailFirstEvictsLeavesBeforeTheirParents) {
  BlockPool pool(3);
  pool.take(3);
  std::vector<BlockIndex> lease{pool.seal(kA).block, pool.seal(kB).block, pool.seal(kC).block};
  for (auto block = lease.rbegin(); block != lease.rend(); ++block) pool.release(*block);
  EXPECT_THAT(eviction_order(pool), ElementsAre(kC, kB, kA));
}

TEST(BlockPool, TakesAndKeepsManyMoreNamesThanItsIndexBeganWith) {
  BlockPool pool(10000);
  for (std::uint64_t name = 0; name < 10000; ++name)
    cache_block(pool, name * 0x9E3779B97F4A7C15ULL);
  for (std::uint64_t name = 0; name < 10000; ++name)
    ASSERT_NE(pool.find(name * 0x9E3779B97F4A7C15ULL), kNoBlock) << name;
  pool.verify();
  pool.take(10000);
  for (std::uint64_t name = 0; name < 10000; ++name)
    ASSERT_EQ(pool.find(name * 0x9E3779B97F4A7C15ULL), kNoBlock) << name;
  EXPECT_EQ(pool.evictions(), 10000U);
  pool.verify();
}

}  // namespace
}  // namespace servecast::cache
