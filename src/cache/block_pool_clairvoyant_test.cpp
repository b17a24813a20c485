// SPDX-License-Identifier: Apache-2.0
// Which block goes when all demands are known (engine-vllm.md 15): the rules one by one, then
// random operations against a model that looks at everything for each victim.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "cache/block_pool.hpp"

namespace servecast::cache {
namespace {

using testing::ElementsAre;
using Names = std::vector<std::uint64_t>;

constexpr std::uint64_t kA = 0xA, kB = 0xB, kC = 0xC;

BlockPool a_pool(const Demands& demands, std::uint32_t capacity) {
  BlockPool pool(capacity);
  pool.evict_by(demands);
  pool.keep_evicted_names();
  return pool;
}

// Seals a block for each name and releases them all, the first one first.
void cache_blocks(BlockPool& pool, const Names& names) {
  for (const std::uint64_t name : names) {
    pool.take(1);
    pool.release(pool.seal(name).block);
  }
}

// Evicts everything, one block after the other; names of last copies.
Names eviction_order(BlockPool& pool) {
  pool.evicted_names().clear();
  while (pool.room() > 0) {
    pool.take(1);
    pool.verify();
  }
  return pool.evicted_names();
}

TEST(BlockPoolClairvoyant, EvictsWhatIsAskedForLatest) {
  Demands demands;
  for (const std::uint64_t name : {kB, kC, kA}) demands.add(Names{name});
  BlockPool pool = a_pool(demands, 3);
  cache_blocks(pool, {kA, kB, kC});
  EXPECT_THAT(eviction_order(pool), ElementsAre(kA, kC, kB));
  EXPECT_EQ(pool.evictions(), 3U);
}

TEST(BlockPoolClairvoyant, EvictsWhatNobodyAsksForBeforeTheRest) {
  Demands demands;
  demands.add(Names{kA});
  BlockPool pool = a_pool(demands, 2);
  cache_blocks(pool, {kA, kB});
  EXPECT_THAT(eviction_order(pool), ElementsAre(kB, kA));
}

TEST(BlockPoolClairvoyant, AmongEqualsTheFirstReleasedGoes) {
  Demands demands;
  demands.add(Names{kA, kB, kC});
  BlockPool pool = a_pool(demands, 3);
  cache_blocks(pool, {kB, kC, kA});
  EXPECT_THAT(eviction_order(pool), ElementsAre(kB, kC, kA));
}

TEST(BlockPoolClairvoyant, AReuseMakesABlockTheLastReleased) {
  Demands demands;
  BlockPool pool = a_pool(demands, 2);
  cache_blocks(pool, {kA, kB});
  const std::array<BlockIndex, 1> hit{pool.find(kA)};
  ASSERT_TRUE(pool.reserve(hit, 0));
  pool.release(hit);
  EXPECT_THAT(eviction_order(pool), ElementsAre(kB, kA));
}

// C49: though the name is asked for first of all.
TEST(BlockPoolClairvoyant, ARedundantCopyGoesBeforeAnyUniqueOne) {
  Demands demands;
  demands.add(Names{kA});
  BlockPool pool = a_pool(demands, 3);
  cache_blocks(pool, {kB, kA});
  cache_blocks(pool, {kA});
  pool.take(1);
  EXPECT_TRUE(pool.evicted_names().empty()) << "a copy of kA is left";
  EXPECT_NE(pool.find(kA), kNoBlock);
  EXPECT_THAT(eviction_order(pool), ElementsAre(kB, kA)) << "the other copy is unique now";
}

TEST(BlockPoolClairvoyant, ACopyInUseMakesACachedOneRedundant) {
  Demands demands;
  demands.add(Names{kA});
  BlockPool pool = a_pool(demands, 3);
  cache_blocks(pool, {kA, kB});
  pool.take(1);
  const BlockIndex used = pool.seal(kA).block;
  pool.take(1);
  EXPECT_TRUE(pool.evicted_names().empty());
  EXPECT_EQ(pool.find(kA), used);
  EXPECT_NE(pool.find(kB), kNoBlock);
}

TEST(BlockPoolClairvoyant, OfTwoRedundantCopiesTheOneAskedForLatestGoes) {
  Demands demands;
  demands.add(Names{kA});
  demands.add(Names{kB});
  BlockPool pool = a_pool(demands, 4);
  cache_blocks(pool, {kA, kA, kB, kB});
  const BlockIndex a = pool.find(kA), b = pool.find(kB);
  pool.take(1);
  EXPECT_EQ(pool.find(kA), a);
  EXPECT_NE(pool.find(kB), b) << "the first copy went";
  pool.take(1);
  EXPECT_NE(pool.find(kA), a);
  EXPECT_THAT(eviction_order(pool), ElementsAre(kB, kA));
}

TEST(BlockPoolClairvoyant, SeesWhatIsRetiredBeforeItChooses) {
  Demands demands;
  demands.add(Names{kA});
  demands.add(Names{kB});
  demands.add(Names{kA});
  BlockPool pool = a_pool(demands, 2);
  cache_blocks(pool, {kA, kB});
  demands.retire(0);
  EXPECT_THAT(eviction_order(pool), ElementsAre(kA, kB));
}

TEST(BlockPoolClairvoyant, NeverEvictsAPrefixThatItReserves) {
  Demands demands;
  demands.add(Names{kB});
  BlockPool pool = a_pool(demands, 2);
  cache_blocks(pool, {kA, kB});
  const std::array<BlockIndex, 1> hit{pool.find(kA)};
  ASSERT_TRUE(pool.reserve(hit, 1));
  EXPECT_THAT(pool.evicted_names(), ElementsAre(kB));
  EXPECT_FALSE(pool.reserve({}, 1));
}

TEST(BlockPoolClairvoyant, PoolsThatShareDemandsEachSeeEveryChange) {
  Demands demands;
  demands.add(Names{kA});
  demands.add(Names{kB});
  BlockPool one = a_pool(demands, 2), other = a_pool(demands, 2);
  cache_blocks(one, {kA, kB});
  cache_blocks(other, {kA, kB});
  demands.retire(0);
  one.take(1);
  other.take(1);
  EXPECT_THAT(one.evicted_names(), ElementsAre(kA));
  EXPECT_THAT(other.evicted_names(), ElementsAre(kA));
}

// A copy is known by the ordinal of its making.
struct Model {
  struct Copy {
    std::uint64_t name;
    std::uint32_t references = 1;
    std::uint64_t released = 0;
    bool is_there = true;
  };
  std::vector<Names> demands;  // retired ones are empty
  std::vector<Copy> copies;
  std::uint64_t releases = 0;

  std::size_t next(std::uint64_t name) const {
    for (std::size_t d = 0; d < demands.size(); ++d) {
      if (std::count(demands[d].begin(), demands[d].end(), name) > 0) return d;
    }
    return demands.size();
  }
  bool is_redundant(std::uint64_t name) const {
    return std::count_if(copies.begin(), copies.end(),
                         [&](const Copy& copy) { return copy.is_there && copy.name == name; }) > 1;
  }
  bool goes_before(const Copy& a, const Copy& b) const {
    const bool a_redundant = is_redundant(a.name), b_redundant = is_redundant(b.name);
    if (a_redundant != b_redundant) return a_redundant;
    const std::size_t a_next = next(a.name), b_next = next(b.name);
    return a_next != b_next ? a_next > b_next : a.released < b.released;
  }
  void evict() {
    Copy* victim = nullptr;
    for (Copy& copy : copies) {
      if (!copy.is_there || copy.references > 0) continue;
      if (victim == nullptr || goes_before(copy, *victim)) victim = &copy;
    }
    victim->is_there = false;
  }
};

class Pair {
 public:
  Pair(std::uint32_t capacity, std::uint64_t names, std::uint64_t seed)
      : random_(seed), names_(names), pool_(capacity), free_(capacity) {
    for (std::uint64_t d = random_.below(40); d > 0; --d) {
      Names demand;
      for (std::uint64_t n = random_.below(5); n > 0; --n) demand.push_back(random_.below(names));
      demands_.add(demand);
      model_.demands.push_back(demand);
    }
    pool_.evict_by(demands_);
  }

  void step() {
    switch (random_.below(8)) {
      case 0:
        retire();
        break;
      case 1:
        reserve();
        break;
      case 2:
      case 3:
      case 4:
        seal();
        break;
      default:
        release();
        break;
    }
    compare();
  }

 private:
  struct Held {
    BlockIndex block;
    std::size_t copy;
  };

  void retire() {
    if (model_.demands.empty()) return;
    const auto demand = static_cast<std::uint32_t>(random_.below(model_.demands.size()));
    demands_.retire(demand);
    model_.demands[demand].clear();
  }
  void take() {
    pool_.take(1);
    if (free_ > 0) {
      --free_;
    } else {
      model_.evict();
    }
  }
  void seal() {
    if (pool_.room() == 0) return;
    take();
    const std::uint64_t name = random_.below(names_);
    held_.push_back({pool_.seal(name).block, model_.copies.size()});
    model_.copies.push_back({name});
  }
  void reserve() {
    const BlockIndex block = pool_.find(random_.below(names_));
    if (block == kNoBlock) return;
    ASSERT_TRUE(pool_.reserve({&block, 1}, 0));
    for (std::size_t copy = 0; copy < model_.copies.size(); ++copy) {  // the first is primary
      Model::Copy& c = model_.copies[copy];
      if (!c.is_there || c.name != pool_.name(block)) continue;
      ++c.references;
      held_.push_back({block, copy});
      return;
    }
    FAIL() << "the model has no such block";
  }
  void release() {
    if (held_.empty()) return;
    const std::size_t at = random_.below(held_.size());
    pool_.release(held_[at].block);
    Model::Copy& copy = model_.copies[held_[at].copy];
    if (--copy.references == 0) copy.released = ++model_.releases;
    held_[at] = held_.back();
    held_.pop_back();
  }

  void compare() {
    pool_.verify();
    std::uint32_t inactive = 0;
    for (const Model::Copy& copy : model_.copies) {
      inactive += copy.is_there && copy.references == 0 ? 1 : 0;
    }
    ASSERT_EQ(pool_.free(), free_);
    ASSERT_EQ(pool_.inactive(), inactive);
    for (std::uint64_t name = 0; name < names_; ++name) {
      const auto primary =
          std::find_if(model_.copies.begin(), model_.copies.end(),
                       [&](const Model::Copy& copy) { return copy.is_there && copy.name == name; });
      const BlockIndex block = pool_.find(name);
      ASSERT_EQ(block != kNoBlock, primary != model_.copies.end()) << name;
      if (block == kNoBlock) continue;
      ASSERT_EQ(pool_.is_active(block), primary->references > 0);
    }
  }

  Random random_;
  std::uint64_t names_;
  Demands demands_;
  BlockPool pool_;
  Model model_;
  std::uint32_t free_;
  std::vector<Held> held_;
};

TEST(BlockPoolClairvoyant, AgreesWithTheModelOverRandomOperations) {
  struct Case {
    std::uint32_t capacity;
    std::uint64_t names;
  };
  for (const Case& c : {Case{1, 2}, Case{3, 2}, Case{6, 3}, Case{8, 12}, Case{20, 30}}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Pair pair(c.capacity, c.names, seed);
      for (int i = 0; i < 300; ++i) {
        pair.step();
        if (testing::Test::HasFatalFailure()) {
          FAIL() << "capacity " << c.capacity << ", seed " << seed << ", step " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace servecast::cache
