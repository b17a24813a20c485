// SPDX-License-Identifier: Apache-2.0
#include "cache/radix_tree.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.hpp"

namespace servecast::cache {
namespace {

using Lock = RadixTree::Lock;
using Node = RadixTree::Node;

// A sequence of letters, each of which stands for a whole page, as keys of either kind.
class Sequence {
 public:
  Sequence(std::initializer_list<std::uint32_t> letters, std::uint32_t page_tokens)
      : letters_(letters) {
    text_.ids = letters_;
    text_.trace_block = page_tokens;
    text_.shared_tokens = static_cast<std::uint32_t>(letters_.size()) * page_tokens;
    std::uint64_t prefix = 0;
    for (const std::uint32_t letter : letters_) {
      prefix = chained_block_hash(prefix, letter);
      hashes_.push_back(prefix);
    }
  }
  PageKeys keys() const { return {static_cast<std::uint32_t>(letters_.size()), hashes_, &text_}; }
  std::uint64_t hash(std::size_t page) const { return hashes_[page]; }

 private:
  std::vector<std::uint32_t> letters_;
  std::vector<std::uint64_t> hashes_;
  PageText text_;
};

struct Kind {
  std::uint32_t page_tokens = 1;
  bool hashed = false;
  bool exact = false;
};

// A tree whose sequences are spelled where it is used.
class Spelled {
 public:
  explicit Spelled(const Kind& kind)
      : page_tokens_(kind.page_tokens),
        tree({.page_tokens = kind.page_tokens, .hashed = kind.hashed, .exact = kind.exact}) {}
  ~Spelled() { tree.verify(); }

  const Sequence& spell(std::initializer_list<std::uint32_t> letters) {
    return spelled_.emplace_back(letters, page_tokens_);
  }
  RadixTree::Match match(std::initializer_list<std::uint32_t> letters, Lock lock = Lock::No) {
    return tree.match(spell(letters).keys(), lock);
  }
  RadixTree::Match find(std::initializer_list<std::uint32_t> letters) {
    return tree.find(spell(letters).keys());
  }
  RadixTree::Inserted insert(std::initializer_list<std::uint32_t> letters,
                             RadixTree::Match behind = {}) {
    return tree.insert(behind.node, behind.pages, spell(letters).keys());
  }

 private:
  std::uint32_t page_tokens_;
  std::deque<Sequence> spelled_;  // trees keep views of the letters

 public:
  RadixTree tree;
};

class RadixTreeOf : public testing::TestWithParam<Kind> {
 protected:
  Spelled t_{GetParam()};
};
class CompatTree : public RadixTreeOf {};
class ExactTree : public RadixTreeOf {};

std::vector<Kind> kinds(std::initializer_list<bool> exact) {
  std::vector<Kind> all;
  for (const bool whole : exact) {
    for (const std::uint32_t page_tokens : {1U, 4U, 64U})
      all.push_back({page_tokens, false, whole});
    all.push_back({1, true, whole});  // how many tokens a page has does not matter to hashes
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Kinds, RadixTreeOf, testing::ValuesIn(kinds({false, true})));
INSTANTIATE_TEST_SUITE_P(Kinds, CompatTree, testing::ValuesIn(kinds({false})));
INSTANTIATE_TEST_SUITE_P(Kinds, ExactTree, testing::ValuesIn(kinds({true})));

TEST_P(RadixTreeOf, MatchesNothingWhenItIsEmpty) {
  const RadixTree::Match hit = t_.match({1, 2}, Lock::Yes);
  EXPECT_EQ(hit.pages, 0U);
  EXPECT_EQ(hit.node, RadixTree::kRoot);
  EXPECT_EQ(t_.tree.locked_pages(), 0U);
  EXPECT_EQ(t_.tree.evict(5), 0U);
}

// S23 C5.
TEST_P(RadixTreeOf, SharesWhatIsEqualAndSplitsWhereItDiffers) {
  EXPECT_EQ(t_.insert({1, 2, 3, 4, 5}).new_pages, 5U);
  const RadixTree::Inserted second = t_.insert({1, 2, 3, 6, 7});
  EXPECT_EQ(second.new_pages, 2U);
  EXPECT_EQ(second.first_new, 3U);
  EXPECT_EQ(t_.match({1, 2, 3, 9}).pages, 3U);
  EXPECT_EQ(t_.tree.node_count(), 3U);
  EXPECT_EQ(t_.tree.evictable_pages(), 7U);
}

TEST_P(RadixTreeOf, SplitsAnEdgeThatIsUsedInPart) {
  t_.insert({1, 2});
  const Node whole = t_.find({1, 2}).node;
  const RadixTree::Match hit = t_.match({1, 3});
  EXPECT_EQ(hit.pages, 1U);
  EXPECT_EQ(t_.tree.node_count(), 2U);
  EXPECT_EQ(t_.tree.parent(whole), hit.node) << "the lower half stays who it was";
  EXPECT_GT(t_.tree.created(hit.node), t_.tree.created(whole));
  EXPECT_EQ(t_.find({1, 2}).node, whole);
}

TEST_P(RadixTreeOf, FindsWithoutATrace) {
  t_.insert({1, 2, 3});
  t_.insert({9});
  const std::uint64_t version = t_.tree.version();
  const RadixTree::Match inside = t_.find({1, 2, 7});
  EXPECT_EQ(inside.pages, 2U);
  EXPECT_EQ(inside.node, t_.find({1, 2, 3}).node);
  EXPECT_EQ(t_.tree.node_count(), 2U);
  EXPECT_EQ(t_.tree.version(), version);
  t_.tree.evict(1);
  EXPECT_EQ(t_.find({9}).pages, 1U) << "[1, 2, 3] is still the longest unused";
}

// S23 C6.
TEST_P(RadixTreeOf, RefreshesBothHalvesOfAnEdgeThatIsUsedInPart) {
  t_.insert({1, 2, 3, 4});
  t_.insert({9});
  t_.match({1, 2, 7});
  EXPECT_EQ(t_.tree.evict(1), 1U);
  EXPECT_EQ(t_.find({9}).pages, 0U);
  EXPECT_EQ(t_.find({1, 2, 3, 4}).pages, 4U);
}

// S23 C7.
TEST_P(RadixTreeOf, TakesAnInsertionOfNothingNewForAUse) {
  t_.insert({1, 2});
  t_.insert({3});
  const RadixTree::Inserted again = t_.insert({1, 2});
  EXPECT_EQ(again.new_pages, 0U);
  EXPECT_EQ(again.first_new, 2U);
  EXPECT_EQ(again.node, t_.find({1, 2}).node);
  t_.tree.evict(1);
  EXPECT_EQ(t_.find({3}).pages, 0U);
  EXPECT_EQ(t_.find({1, 2}).pages, 2U);
}

TEST_P(RadixTreeOf, TakesAnInsertionBehindALeafForAUseOfAllAboveIt) {
  t_.insert({1, 2, 3});
  t_.insert({1, 2, 4});
  const RadixTree::Match held = t_.match({1, 2, 3}, Lock::Yes);
  t_.insert({9});
  t_.insert({1, 2, 3}, held);
  t_.tree.unlock(held.node);
  t_.tree.evict(1);  // [4]
  t_.tree.evict(1);  // [9], as [3] and what is above it were used later
  EXPECT_EQ(t_.find({1, 2, 4}).pages, 2U);
  EXPECT_EQ(t_.find({9}).pages, 0U);
  EXPECT_EQ(t_.find({1, 2, 3}).pages, 3U);
}

// S23 C8.
TEST_P(CompatTree, EvictsTheNewestPagesOfTheLongestUnusedLeaf) {
  t_.insert({1, 2});
  t_.insert({3});
  t_.match({3});
  EXPECT_EQ(t_.tree.evict(1), 1U);
  EXPECT_EQ(t_.match({1}).pages, 1U);
  EXPECT_EQ(t_.match({1, 2}).pages, 1U);
  EXPECT_EQ(t_.tree.evictions(), 1U);
}
TEST_P(ExactTree, EvictsTheLongestUnusedLeafWhole) {
  t_.insert({1, 2});
  t_.insert({3});
  t_.match({3});
  EXPECT_EQ(t_.tree.evict(1), 2U);
  EXPECT_EQ(t_.match({1}).pages, 0U);
  EXPECT_EQ(t_.tree.evictable_pages(), 1U);
}

TEST_P(CompatTree, KeepsTheStampOfALeafThatLostPages) {
  t_.insert({1, 2, 3});
  t_.insert({9});
  EXPECT_EQ(t_.tree.evict(1), 1U);
  EXPECT_EQ(t_.tree.evict(1), 1U);
  EXPECT_EQ(t_.find({1, 2, 3}).pages, 1U);
  EXPECT_EQ(t_.find({9}).pages, 1U);
}

// S23 C9: the prefix is locked before anything is evicted for the rest.
TEST_P(RadixTreeOf, NeverEvictsWhatIsLocked) {
  t_.insert({1});
  t_.insert({5, 6});
  t_.match({5, 6});
  const RadixTree::Match hit = t_.match({1, 2}, Lock::Yes);
  EXPECT_EQ(hit.pages, 1U);
  EXPECT_EQ(t_.tree.locked_pages(), 1U);
  EXPECT_EQ(t_.tree.evict(1), GetParam().exact ? 2U : 1U);
  EXPECT_EQ(t_.tree.evict(100), GetParam().exact ? 0U : 1U);
  EXPECT_EQ(t_.find({1}).pages, 1U);
  t_.tree.unlock(hit.node);
  EXPECT_EQ(t_.tree.evict(100), 1U);
  EXPECT_EQ(t_.tree.node_count(), 0U);
}

TEST_P(RadixTreeOf, LocksAllAboveANodeAndKeepsTheLockOverASplit) {
  t_.insert({1, 2, 3, 4});
  const RadixTree::Match held = t_.match({1, 2, 3, 4}, Lock::Yes);
  t_.match({1, 2, 9});
  EXPECT_EQ(t_.tree.locked_pages(), 4U);
  t_.insert({1, 2, 9});
  EXPECT_EQ(t_.tree.evictable_pages(), 1U);
  EXPECT_EQ(t_.tree.evict(100), 1U);
  t_.tree.unlock(held.node);
  EXPECT_EQ(t_.tree.locked_pages(), 0U);
  EXPECT_EQ(t_.tree.evict(100), 4U);
}

TEST_P(RadixTreeOf, CountsLocksThatMeet) {
  t_.insert({1, 2});
  const RadixTree::Match a = t_.match({1}, Lock::Yes), b = t_.match({1, 2}, Lock::Yes);
  EXPECT_EQ(t_.tree.locked_pages(), 2U);
  t_.tree.unlock(b.node);
  EXPECT_EQ(t_.tree.locked_pages(), 1U);
  EXPECT_EQ(t_.tree.evict(100), 1U);
  t_.tree.unlock(a.node);
  EXPECT_EQ(t_.tree.locked_pages(), 0U);
}

// The insertion that splits an edge is a use of its lower half too; of the two leaves the older
// node goes first (S4.1).
TEST_P(RadixTreeOf, EvictsTheOlderOfTwoLeavesUsedAtOnce) {
  t_.insert({1, 2});
  t_.insert({1, 3});
  t_.tree.evict(1);
  EXPECT_EQ(t_.find({1, 2}).pages, 1U);
  EXPECT_EQ(t_.find({1, 3}).pages, 2U);
}

TEST_P(RadixTreeOf, EvictsAParentThatBecameALeafByItsOwnStamp) {
  t_.insert({1, 2});
  t_.match({1});   // [1] above [2]
  t_.insert({8});  // younger than both
  t_.insert({9});
  t_.match({1});  // [1] alone is the youngest now
  EXPECT_EQ(t_.tree.evict(1), 1U);
  EXPECT_EQ(t_.find({1, 2}).pages, 1U) << "[2] goes first";
  EXPECT_EQ(t_.tree.evict(1), 1U);
  EXPECT_EQ(t_.find({8}).pages, 0U) << "then what is older than [1]";
  EXPECT_EQ(t_.tree.evict(1), 1U);
  EXPECT_EQ(t_.find({9}).pages, 0U);
  EXPECT_EQ(t_.find({1}).pages, 1U);
}

// S23 C48.
TEST_P(CompatTree, GrowsALeafThatOnlyTheInsertingRequestLocked) {
  t_.insert({1});
  const RadixTree::Match held = t_.match({1}, Lock::Yes);
  const RadixTree::Inserted put = t_.insert({1, 2}, held);
  EXPECT_EQ(put.node, held.node);
  EXPECT_EQ(put.new_pages, 1U);
  EXPECT_EQ(t_.tree.node_count(), 1U);
  EXPECT_EQ(t_.tree.locked_pages(), 2U);
}
TEST_P(CompatTree, GivesALeafThatOthersLockedAChild) {
  t_.insert({1});
  const RadixTree::Match held = t_.match({1}, Lock::Yes);
  t_.tree.lock(held.node);
  const RadixTree::Inserted put = t_.insert({1, 2}, held);
  EXPECT_NE(put.node, held.node);
  EXPECT_EQ(t_.tree.node_count(), 2U);
  EXPECT_EQ(t_.tree.locked_pages(), 1U);
  EXPECT_EQ(t_.tree.evictable_pages(), 1U);
}
TEST_P(CompatTree, GivesALeafThatSomebodyElseLockedAChild) {
  t_.insert({1});
  t_.match({1}, Lock::Yes);
  t_.insert({1, 2});  // walks to it from the root
  EXPECT_EQ(t_.tree.node_count(), 2U);
}
TEST_P(CompatTree, GrowsAnUnlockedLeafThatItMeets) {
  t_.insert({1});
  t_.insert({9});
  t_.insert({1, 2, 3});
  EXPECT_EQ(t_.tree.node_count(), 2U);
  EXPECT_EQ(t_.tree.evictable_pages(), 4U);
  EXPECT_EQ(t_.tree.evict(1), 1U);
  EXPECT_EQ(t_.find({9}).pages, 0U) << "growing was a use";
  EXPECT_EQ(t_.find({1, 2, 3, 4}).pages, 3U);
}
TEST_P(ExactTree, AlwaysMakesAChild) {
  t_.insert({1});
  const RadixTree::Match held = t_.match({1}, Lock::Yes);
  EXPECT_NE(t_.insert({1, 2}, held).node, held.node);
  t_.insert({9});
  t_.insert({9, 8});
  EXPECT_EQ(t_.tree.node_count(), 4U);
}

TEST_P(RadixTreeOf, TransfersALockToALongerPrefix) {
  const RadixTree::Inserted first = t_.insert({1});
  t_.tree.lock(first.node);
  t_.match({1}, Lock::Yes);  // by another, so that a child is made
  const RadixTree::Inserted put = t_.insert({1, 2, 3}, {.pages = 1, .node = first.node});
  t_.tree.lock(put.node);
  t_.tree.unlock(first.node);
  EXPECT_EQ(t_.tree.locked_pages(), 3U);
  t_.tree.unlock(put.node);
  EXPECT_EQ(t_.tree.locked_pages(), 1U);
}

TEST_P(RadixTreeOf, SaysWithItsVersionThatAnAnswerMayHaveChanged) {
  std::uint64_t last = t_.tree.version();
  const auto changed = [&] { return std::exchange(last, t_.tree.version()) != last; };
  t_.insert({1, 2, 3});
  EXPECT_TRUE(changed());
  t_.insert({1, 2, 3});
  t_.match({1, 2, 3});
  EXPECT_FALSE(changed());
  t_.match({1});
  EXPECT_TRUE(changed()) << "another node than before ends [1]";
  t_.tree.evict(1);
  EXPECT_TRUE(changed());
}

TEST(RadixTree, KeepsTextsWithDifferentExtraKeysApart) {
  RadixTree tree({.page_tokens = 4});
  PageText text{.extra_key = 1, .owner = 5, .ids = {}, .group = 3, .shared_tokens = 1000};
  const PageKeys keys{.pages = 2, .hashes = {}, .text = &text};
  tree.insert(RadixTree::kRoot, 0, keys);
  EXPECT_EQ(tree.find(keys).pages, 2U);
  text.extra_key = 2;
  EXPECT_EQ(tree.find(keys).pages, 0U);
  EXPECT_EQ(tree.insert(RadixTree::kRoot, 0, keys).new_pages, 2U);
}

TEST(RadixTree, TellsRemovedHashesOfAVictimInTheOrderOfItsPages) {
  for (const bool exact : {false, true}) {
    Spelled t({.hashed = true, .exact = exact});
    const Sequence& a = t.spell({1, 2, 3});
    t.tree.insert(RadixTree::kRoot, 0, a.keys());
    const Sequence& b = t.spell({1, 5, 6});
    t.tree.insert(RadixTree::kRoot, 0, b.keys());
    std::vector<std::uint64_t> removed = {7};
    t.tree.evict(3, &removed);
    std::vector<std::uint64_t> expected = {7, a.hash(1), a.hash(2), b.hash(2)};
    if (exact) expected = {7, a.hash(1), a.hash(2), b.hash(1), b.hash(2)};
    EXPECT_EQ(removed, expected);
    t.tree.evict(100, &removed);
    EXPECT_EQ(removed.back(), a.hash(0));
    EXPECT_EQ(removed.size(), 6U);
  }
}

// Children are found again when their table has grown, and among many that were evicted.
TEST(RadixTree, HoldsManyChildrenOfOneNode) {
  RadixTree tree({.page_tokens = 1, .hashed = true});
  std::vector<std::uint64_t> letters(3000);
  for (std::size_t i = 0; i < letters.size(); ++i) letters[i] = (i + 1) << 32;
  const auto keys = [&](std::size_t i) {
    return PageKeys{.pages = 1, .hashes = std::span(letters).subspan(i, 1)};
  };
  for (std::size_t i = 0; i < letters.size(); ++i) tree.insert(RadixTree::kRoot, 0, keys(i));
  for (std::size_t i = 0; i < letters.size(); i += 3) tree.match(keys(i), Lock::No);
  EXPECT_EQ(tree.evict(2000), 2000U);
  for (std::size_t i = 0; i < letters.size(); ++i)
    EXPECT_EQ(tree.find(keys(i)).pages, i % 3 == 0 ? 1U : 0U) << i;
  for (std::size_t i = 0; i < letters.size(); ++i) tree.insert(RadixTree::kRoot, 0, keys(i));
  EXPECT_EQ(tree.node_count(), 3000U);
  tree.verify();
}

}  // namespace
}  // namespace servecast::cache
