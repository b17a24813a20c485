// SPDX-License-Identifier: Apache-2.0
#include "cache/grouped_pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.hpp"

namespace servecast::cache {
namespace {

constexpr GroupKey kA{.hash = 0xA, .group = 0}, kB{.hash = 0xB, .group = 0};

BlockIndex cached_block(GroupedPool& pool, const GroupKey& key) {
  const BlockIndex block = pool.take();
  pool.add_key(block, key);
  pool.release(block);
  return block;
}

TEST(GroupedPool, StartsFree) {
  const GroupedPool pool(5);
  EXPECT_EQ(pool.capacity(), 5U);
  EXPECT_EQ(pool.free(), 5U);
  EXPECT_EQ(pool.available(), 5U);
  EXPECT_EQ(pool.held(), 0U);
  EXPECT_EQ(pool.cached(), 0U);
  EXPECT_EQ(pool.find(kA), kNoBlock);
  pool.verify();
}

TEST(GroupedPool, KeepsABlockWithAKeyAndFreesOneWithout) {
  GroupedPool pool(3);
  const BlockIndex with = pool.take(), without = pool.take();
  EXPECT_EQ(pool.held(), 2U);
  EXPECT_TRUE(pool.add_key(with, kA));
  pool.release(with);
  pool.release(without);
  EXPECT_EQ(pool.cached(), 1U);
  EXPECT_EQ(pool.free(), 2U);
  EXPECT_EQ(pool.find(kA), with);
  pool.verify();
}

TEST(GroupedPool, TellsGroupsApart) {
  GroupedPool pool(3);
  const BlockIndex first = cached_block(pool, {.hash = 7, .group = 0});
  const BlockIndex second = cached_block(pool, {.hash = 7, .group = 1});
  EXPECT_EQ(pool.find({.hash = 7, .group = 0}), first);
  EXPECT_EQ(pool.find({.hash = 7, .group = 1}), second);
  EXPECT_EQ(pool.find({.hash = 7, .group = 2}), kNoBlock);
}

TEST(GroupedPool, EvictsTheOldestOfAnyGroupOnceNothingIsFree) {
  GroupedPool pool(3);
  cached_block(pool, {.hash = 1, .group = 1});
  cached_block(pool, {.hash = 2, .group = 0});
  pool.take();
  EXPECT_EQ(pool.evictions(), 0U);
  pool.take();
  EXPECT_EQ(pool.evictions(), 1U);
  EXPECT_EQ(pool.find({.hash = 1, .group = 1}), kNoBlock);
  EXPECT_NE(pool.find({.hash = 2, .group = 0}), kNoBlock);
  pool.verify();
}

TEST(GroupedPool, HoldingABlockSavesItAndMakesItTheYoungest) {
  GroupedPool pool(2);
  const BlockIndex a = cached_block(pool, kA);
  cached_block(pool, kB);
  pool.hold(a);
  pool.release(a);
  pool.take();
  EXPECT_EQ(pool.find(kB), kNoBlock);
  EXPECT_EQ(pool.find(kA), a);
}

TEST(GroupedPool, HandsOutTheLastBlockFreedFirst) {
  GroupedPool pool(3);
  const BlockIndex a = pool.take(), b = pool.take();
  pool.release(b);
  pool.release(a);
  EXPECT_EQ(pool.take(), a);
  EXPECT_EQ(pool.take(), b);
}

TEST(GroupedPool, FindsTheFirstOfEqualKeysAndThenTheNext) {
  GroupedPool pool(3);
  const BlockIndex first = cached_block(pool, kA), second = cached_block(pool, kA);
  EXPECT_EQ(pool.find(kA), first);
  pool.take();
  pool.take();  // evicts the first
  EXPECT_EQ(pool.find(kA), second);
  pool.verify();
}

TEST(GroupedPool, ABlockMayHaveSeveralKeysButEachOnce) {
  GroupedPool pool(1);
  const BlockIndex block = pool.take();
  EXPECT_TRUE(pool.add_key(block, kA));
  EXPECT_TRUE(pool.add_key(block, kB));
  EXPECT_FALSE(pool.add_key(block, kA));
  pool.release(block);
  EXPECT_EQ(pool.find(kA), block);
  EXPECT_EQ(pool.find(kB), block);
  pool.take();  // all go with it
  EXPECT_EQ(pool.find(kA), kNoBlock);
  EXPECT_EQ(pool.find(kB), kNoBlock);
  pool.verify();
}

TEST(GroupedPool, MovesKeysToAnotherBlock) {
  GroupedPool pool(2);
  const BlockIndex from = pool.take(), to = pool.take();
  pool.add_key(from, kA);
  pool.add_key(from, kB);
  pool.move_keys(from, to);
  EXPECT_EQ(pool.find(kA), to);
  EXPECT_EQ(pool.find(kB), to);
  pool.release(from);
  EXPECT_EQ(pool.free(), 1U);
  pool.release(to);
  EXPECT_EQ(pool.cached(), 1U);
  pool.verify();
}

TEST(GroupedPool, CountsEveryChangeOfItsKeys) {
  GroupedPool pool(2);
  std::uint64_t last = pool.mutations();
  const auto changed = [&] { return std::exchange(last, pool.mutations()) != last; };
  const BlockIndex a = pool.take(), b = pool.take();
  EXPECT_FALSE(changed());
  pool.add_key(a, kA);
  EXPECT_TRUE(changed());
  pool.move_keys(a, b);
  EXPECT_TRUE(changed());
  pool.drop_keys(b);
  EXPECT_TRUE(changed());
  pool.add_key(b, kA);
  EXPECT_TRUE(changed());
  pool.release(b);
  EXPECT_FALSE(changed());
  pool.take();  // evicts it
  EXPECT_TRUE(changed());
}

// Against a list of copies in the order of their keys.
TEST(GroupedPool, AgreesWithAListOverRandomOperations) {
  Random random(3);
  for (const std::uint32_t capacity : {1U, 4U, 40U}) {
    GroupedPool pool(capacity);
    std::vector<BlockIndex> held;
    std::vector<std::pair<std::uint64_t, BlockIndex>> keys;
    const auto forget = [&](BlockIndex block) {
      std::erase_if(keys, [&](const auto& entry) { return entry.second == block; });
    };
    for (int i = 0; i < 4000; ++i) {
      const std::uint64_t hash = random.below(capacity + 2);
      const std::size_t at = held.empty() ? 0 : random.below(held.size());
      const std::uint64_t choice = random.below(6);
      if (choice == 0 && pool.available() > 0) {
        held.push_back(pool.take());
        forget(held.back());
      } else if (choice == 1 && !held.empty()) {
        const bool has =
            std::find(keys.begin(), keys.end(), std::pair(hash, held[at])) != keys.end();
        ASSERT_EQ(pool.add_key(held[at], {.hash = hash}), !has);
        if (!has) keys.emplace_back(hash, held[at]);
      } else if (choice == 2 && !held.empty()) {
        pool.release(held[at]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
      } else if (choice == 3 && pool.find({.hash = hash}) != kNoBlock) {
        held.push_back(pool.find({.hash = hash}));
        pool.hold(held.back());
      } else if (choice == 4 && !held.empty() && random.below(4) == 0) {
        pool.drop_keys(held[at]);
        forget(held[at]);
      } else if (choice == 5 && !held.empty()) {
        const BlockIndex to = held[random.below(held.size())];
        if (to == held[at] || pool.has_keys(to)) continue;
        pool.move_keys(held[at], to);
        for (auto& entry : keys) entry.second = entry.second == held[at] ? to : entry.second;
      }
      pool.verify();
      ASSERT_EQ(pool.free() + pool.held() + pool.cached(), capacity);
      for (std::uint64_t h = 0; h < capacity + 2; ++h) {
        const auto first = std::find_if(keys.begin(), keys.end(),
                                        [&](const auto& entry) { return entry.first == h; });
        ASSERT_EQ(pool.find({.hash = h}), first == keys.end() ? kNoBlock : first->second);
      }
    }
  }
}

}  // namespace
}  // namespace servecast::cache
