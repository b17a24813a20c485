// SPDX-License-Identifier: Apache-2.0
#include "cache/keyed_pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace servecast::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kA = 0xA, kB = 0xB, kC = 0xC;

BlockKey page(std::uint64_t prefix) {
  return {.kind = KeyKind::Page, .hash = prefix};
}
BlockKey tail(std::uint64_t prefix) {
  return {.kind = KeyKind::Tail, .hash = prefix};
}
BlockKey state(std::uint64_t prefix, std::uint32_t slot = 0) {
  return {.kind = KeyKind::State, .slot = slot, .hash = prefix};
}

// Takes a block and leaves it inactive under a key.
BlockIndex cache_block(KeyedPool& pool, const BlockKey& key) {
  const BlockIndex block = pool.take();
  pool.publish(block, key);
  pool.release(block);
  return block;
}

TEST(KeyedPool, CountsFreeActiveAndInactiveBlocks) {
  KeyedPool pool(4);
  EXPECT_EQ(pool.free(), 4U);
  const BlockIndex first = pool.take();
  pool.take();
  cache_block(pool, page(kA));
  EXPECT_EQ(pool.active(), 2U);
  EXPECT_EQ(pool.inactive(), 1U);
  EXPECT_EQ(pool.free(), 1U);
  EXPECT_EQ(pool.room(), 2U);
  pool.release(first);  // private: free at once
  EXPECT_EQ(pool.free(), 2U);
  EXPECT_EQ(pool.inactive(), 1U);
  pool.verify();
}

TEST(KeyedPool, TakesFreeBlocksFirstAndThenTheLeastRecentlyReleased) {
  KeyedPool pool(4);
  pool.keep_evicted_names();
  for (const std::uint64_t prefix : {kB, kA, kC}) cache_block(pool, page(prefix));
  pool.take();
  EXPECT_THAT(pool.evicted_names(), IsEmpty());
  for (int i = 0; i < 3; ++i) pool.take();
  EXPECT_THAT(pool.evicted_names(), ElementsAre(kB, kA, kC));
  EXPECT_EQ(pool.evictions(), 3U);
  EXPECT_EQ(pool.room(), 0U);
  pool.verify();
}

TEST(KeyedPool, ABlockThatWasReferencedAgainIsTheYoungest) {
  KeyedPool pool(2);
  pool.keep_evicted_names();
  const BlockIndex a = cache_block(pool, page(kA));
  cache_block(pool, page(kB));
  pool.reference(a);
  EXPECT_TRUE(pool.is_active(a));
  pool.release(a);
  pool.take();
  EXPECT_THAT(pool.evicted_names(), ElementsAre(kB));
}

TEST(KeyedPool, TellsAPageEvictedOnlyWithItsLastCopy) {
  KeyedPool pool(2);
  pool.keep_evicted_names();
  const BlockIndex first = pool.take(), second = pool.take();
  EXPECT_TRUE(pool.publish(first, page(kA)));
  EXPECT_FALSE(pool.publish(second, page(kA)));
  EXPECT_EQ(pool.find_page(kA), first);
  pool.release(first);
  pool.release(second);
  pool.take();
  EXPECT_THAT(pool.evicted_names(), IsEmpty());
  EXPECT_EQ(pool.find_page(kA), second);
  pool.take();
  EXPECT_THAT(pool.evicted_names(), ElementsAre(kA));
  EXPECT_EQ(pool.find_page(kA), kNoBlock);
  pool.verify();
}

TEST(KeyedPool, NeverTellsThatAStateOrATailWasEvicted) {  // engine-vllm.md 6.6
  KeyedPool pool(2);
  pool.keep_evicted_names();
  cache_block(pool, state(kA));
  cache_block(pool, tail(kB));
  pool.take();
  pool.take();
  EXPECT_EQ(pool.evictions(), 2U);
  EXPECT_EQ(pool.find_state(kA, 0), kNoBlock);
  EXPECT_EQ(pool.find_page(kB), kNoBlock);
  EXPECT_THAT(pool.evicted_names(), IsEmpty());
}

TEST(KeyedPool, FindsAStateBySlotAndNotAsAPage) {
  KeyedPool pool(3);
  const BlockIndex zero = cache_block(pool, state(kA, 0)), one = cache_block(pool, state(kA, 1));
  EXPECT_EQ(pool.find_state(kA, 0), zero);
  EXPECT_EQ(pool.find_state(kA, 1), one);
  EXPECT_EQ(pool.find_state(kA, 2), kNoBlock);
  EXPECT_EQ(pool.find_page(kA), kNoBlock);
  pool.verify();
}

TEST(KeyedPool, AFullPageKeepsTheTailInIt) {
  KeyedPool pool(2);
  const BlockIndex block = pool.take();
  pool.publish(block, tail(kA));
  pool.publish(block, page(kB));
  EXPECT_EQ(pool.find_page(kA), block);
  EXPECT_EQ(pool.find_page(kB), block);
  EXPECT_EQ(pool.key(block, KeyKind::Tail)->hash, kA);
  EXPECT_EQ(pool.key(block, KeyKind::State), nullptr);
  pool.verify();
  pool.release(block);
  pool.take();
  pool.take();  // evicts it with both keys
  EXPECT_EQ(pool.find_page(kA), kNoBlock);
  EXPECT_EQ(pool.find_page(kB), kNoBlock);
  pool.verify();
}

TEST(KeyedPool, WithdrawingTheOnlyKeyOfAnInactiveBlockFreesIt) {
  KeyedPool pool(2);
  const BlockIndex inactive = cache_block(pool, state(kA));
  pool.withdraw(inactive, KeyKind::State);
  EXPECT_EQ(pool.free(), 2U);
  EXPECT_EQ(pool.find_state(kA, 0), kNoBlock);

  const BlockIndex active = pool.take();
  pool.publish(active, state(kA));
  pool.withdraw(active, KeyKind::State);
  EXPECT_EQ(pool.active(), 1U);
  pool.release(active);
  EXPECT_EQ(pool.free(), 2U);
  EXPECT_EQ(pool.evictions(), 0U);
  EXPECT_EQ(pool.removals(), 2U);
  pool.verify();
}

}  // namespace
}  // namespace servecast::cache
