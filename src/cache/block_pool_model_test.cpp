// SPDX-License-Identifier: Apache-2.0
// The pool against a slow model of the rules (engine-vllm.md 6): random operations, every answer
// compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "base/random.hpp"
#include "cache/block_pool.hpp"

namespace servecast::cache {
namespace {

// One entry a block. A copy is known by the ordinal of its making.
struct Model {
  struct Copy {
    std::uint64_t name = 0;
    bool named = false;
    std::uint32_t references = 0;
  };
  std::uint32_t capacity = 0, free = 0;
  std::uint64_t evictions = 0;
  std::vector<Copy> copies;
  std::vector<std::size_t> lru;                             // oldest first
  std::map<std::uint64_t, std::vector<std::size_t>> index;  // copies by name, primary first
  std::vector<std::uint64_t> evicted;

  explicit Model(std::uint32_t blocks) : capacity(blocks), free(blocks) {}
  std::uint32_t inactive() const { return static_cast<std::uint32_t>(lru.size()); }

  void take(std::uint32_t count) {
    for (; count > 0; --count) {
      if (free > 0) {
        --free;
        continue;
      }
      const Copy& copy = copies[lru.front()];
      if (copy.named) {
        std::vector<std::size_t>& same = index[copy.name];
        same.erase(std::find(same.begin(), same.end(), lru.front()));
        if (same.empty()) {
          index.erase(copy.name);
          evicted.push_back(copy.name);
        }
      }
      lru.erase(lru.begin());
      ++evictions;
    }
  }
  bool reserve(const std::vector<std::size_t>& prefix, std::uint32_t fresh) {
    std::uint32_t pinned = 0;
    for (const std::size_t copy : prefix) pinned += copies[copy].references == 0 ? 1 : 0;
    if (fresh > free + inactive() - pinned) return false;
    for (const std::size_t copy : prefix) {
      if (copies[copy].references++ == 0) lru.erase(std::find(lru.begin(), lru.end(), copy));
    }
    take(fresh);
    return true;
  }
  std::size_t add(std::uint64_t name, bool named, std::uint32_t references) {
    copies.push_back({name, named, references});
    const std::size_t copy = copies.size() - 1;
    if (named) index[name].push_back(copy);
    if (references == 0) lru.push_back(copy);
    return copy;
  }
  void release(std::size_t copy) {
    if (--copies[copy].references == 0) lru.push_back(copy);
  }
};

class Pair {
 public:
  Pair(std::uint32_t capacity, std::uint64_t names, std::uint64_t seed)
      : random_(seed), names_(names), pool_(capacity), model_(capacity) {
    pool_.keep_evicted_names();
  }

  void step() {
    switch (random_.below(7)) {
      case 0:
        take();
        break;
      case 1:
        reserve();
        break;
      case 2:
        seal();
        break;
      case 3:
      case 4:
        release();
        break;
      case 5:
        give_back();
        break;
      default:
        retire();
        break;
    }
    compare();
  }

 private:
  struct Held {
    BlockIndex block;
    std::size_t copy;
  };
  std::uint64_t any_name() { return random_.below(names_) << random_.below(3) * 20; }
  std::uint32_t upto(std::uint32_t most) {
    return static_cast<std::uint32_t>(random_.below(std::min(most, 6U) + 1));
  }

  void take() {
    const std::uint32_t count = upto(pool_.room());
    pool_.take(count);
    model_.take(count);
    anonymous_ += count;
  }
  void reserve() {
    std::vector<BlockIndex> prefix;
    std::vector<std::size_t> copies;
    for (std::uint64_t i = random_.below(5); i > 0; --i) {
      const auto found = model_.index.find(any_name());
      if (found == model_.index.end()) continue;
      const std::size_t copy = found->second.front();
      if (std::find(copies.begin(), copies.end(), copy) != copies.end()) continue;
      copies.push_back(copy);
      prefix.push_back(pool_.find(found->first));
    }
    const auto fresh = static_cast<std::uint32_t>(random_.below(pool_.room() + 2));
    const bool done = model_.reserve(copies, fresh);
    ASSERT_EQ(pool_.reserve(prefix, fresh), done);
    if (!done) return;
    anonymous_ += fresh;
    for (std::size_t i = 0; i < copies.size(); ++i) held_.push_back({prefix[i], copies[i]});
  }
  void seal() {
    if (anonymous_ == 0) return;
    const std::uint64_t name = any_name();
    const bool visible = model_.index.count(name) == 0;
    const BlockPool::Sealed sealed = pool_.seal(name);
    ASSERT_EQ(sealed.visible, visible);
    held_.push_back({sealed.block, model_.add(name, true, 1)});
    --anonymous_;
  }
  void release() {
    if (held_.empty()) return;
    const std::size_t at = random_.below(held_.size());
    pool_.release(held_[at].block);
    model_.release(held_[at].copy);
    held_[at] = held_.back();
    held_.pop_back();
  }
  void give_back() {
    const std::uint32_t count = upto(anonymous_);
    pool_.give_back(count);
    model_.free += count;
    anonymous_ -= count;
  }
  void retire() {
    if (random_.below(2) == 0) {
      const std::uint32_t count = upto(anonymous_);
      pool_.retire_unnamed(count);
      for (std::uint32_t i = 0; i < count; ++i) model_.add(0, false, 0);
      anonymous_ -= count;
    } else if (anonymous_ > 0) {
      const std::uint64_t name = any_name();
      pool_.retire(name);
      model_.add(name, true, 0);
      --anonymous_;
    }
  }

  void compare() {
    pool_.verify();
    ASSERT_EQ(pool_.free(), model_.free);
    ASSERT_EQ(pool_.inactive(), model_.inactive());
    ASSERT_EQ(pool_.active(), model_.capacity - model_.free - model_.inactive());
    ASSERT_EQ(pool_.evictions(), model_.evictions);
    ASSERT_EQ(pool_.evicted_names(), model_.evicted);
    pool_.evicted_names().clear();
    model_.evicted.clear();
    for (std::uint64_t i = 0; i < 3 * names_; ++i) {
      const std::uint64_t name = (i % names_) << (i / names_) * 20;
      const auto found = model_.index.find(name);
      const BlockIndex block = pool_.find(name);
      ASSERT_EQ(block != kNoBlock, found != model_.index.end()) << name;
      if (block == kNoBlock) continue;
      ASSERT_EQ(pool_.name(block), name);
      ASSERT_EQ(pool_.is_active(block), model_.copies[found->second.front()].references > 0);
      for (const Held& held : held_) {  // the primary is the same copy, not just one like it
        if (model_.copies[held.copy].name != name) continue;
        ASSERT_EQ(held.block == block, held.copy == found->second.front());
      }
    }
  }

  Random random_;
  std::uint64_t names_;
  BlockPool pool_;
  Model model_;
  std::uint32_t anonymous_ = 0;
  std::vector<Held> held_;
};

// Small pools evict and share often; few names make many copies of one.
TEST(BlockPool, AgreesWithTheModelOverRandomOperations) {
  struct Case {
    std::uint32_t capacity;
    std::uint64_t names;
  };
  for (const Case& c : {Case{1, 2}, Case{3, 2}, Case{8, 3}, Case{12, 6}, Case{40, 12}}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Pair pair(c.capacity, c.names, seed);
      for (int i = 0; i < 2000; ++i) {
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
