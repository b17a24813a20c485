// SPDX-License-Identifier: Apache-2.0
// The tree, with either kind of keys, against a slow model of the rules (engine-sglang.md S4) that
// knows prefixes and where edges end, and no tree: random operations, every answer compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "base/hash.hpp"
#include "base/random.hpp"
#include "cache/radix_tree.hpp"

namespace servecast::cache {
namespace {

using Prefix = std::vector<std::uint32_t>;  // one number a page: equal pages have equal numbers
using Lock = RadixTree::Lock;

struct Model {
  struct Edge {
    std::uint64_t stamp = 0;
    std::size_t end = 0;  // pages of the prefix that it ends
    std::uint32_t locks = 0;
    std::vector<Prefix> pages;
  };
  bool exact = false;
  std::uint64_t clock = 0;
  std::uint64_t edges_made = 0;
  std::map<std::uint64_t, Edge> edges;     // by when they were made
  std::map<Prefix, std::uint64_t> cached;  // prefix to its last page's edge

  static Prefix first(const Prefix& pages, std::size_t count) {
    return {pages.begin(), pages.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  std::size_t find(const Prefix& pages) const {
    std::size_t equal = 0;
    while (equal < pages.size() && cached.count(first(pages, equal + 1)) > 0) ++equal;
    return equal;
  }
  std::set<std::uint64_t> edges_of(const Prefix& prefix) const {
    std::set<std::uint64_t> met;
    for (std::size_t i = 1; i <= prefix.size(); ++i) met.insert(cached.at(first(prefix, i)));
    return met;
  }
  bool has_children(const Edge& edge) const {
    return std::any_of(cached.begin(), cached.end(), [&](const auto& other) {
      return other.first.size() == edge.end + 1 &&
             std::equal(edge.pages.back().begin(), edge.pages.back().end(), other.first.begin());
    });
  }
  void add(std::uint64_t edge, const Prefix& page) {
    edges[edge].pages.push_back(page);
    edges[edge].end = page.size();
    cached[page] = edge;
  }

  std::size_t match(const Prefix& pages) {
    const Prefix met = first(pages, find(pages));
    ++clock;
    for (const std::uint64_t edge : edges_of(met)) edges[edge].stamp = clock;
    if (met.empty()) return 0;
    Edge& last = edges[cached[met]];
    if (last.end == met.size()) return met.size();
    const std::uint64_t upper = ++edges_made;
    edges[upper] = {.stamp = clock, .locks = last.locks, .pages = {}};
    std::vector<Prefix> all;
    all.swap(last.pages);
    for (const Prefix& page : all) {
      if (page.size() > met.size()) {
        last.pages.push_back(page);
      } else {
        add(upper, page);
      }
    }
    return met.size();
  }
  std::size_t insert(std::size_t start, const Prefix& pages) {
    const std::size_t met = match(pages);
    if (met == pages.size()) return 0;
    bool grows = false;
    if (met > 0 && !exact) {
      const Edge& last = edges[cached[first(pages, met)]];
      grows = !has_children(last) && (last.locks == 0 || (last.locks == 1 && met == start));
    }
    const std::uint64_t edge = grows ? cached[first(pages, met)] : ++edges_made;
    edges[edge].stamp = clock;
    for (std::size_t i = met + 1; i <= pages.size(); ++i) add(edge, first(pages, i));
    return pages.size() - met;
  }
  void lock(const Prefix& prefix) {
    for (const std::uint64_t edge : edges_of(prefix)) ++edges[edge].locks;
  }
  void unlock(const Prefix& prefix) {
    for (const std::uint64_t edge : edges_of(prefix)) --edges[edge].locks;
  }
  std::vector<Prefix> evict(std::uint64_t wanted) {
    std::vector<Prefix> gone;
    while (gone.size() < wanted) {
      auto victim = edges.end();
      for (auto edge = edges.begin(); edge != edges.end(); ++edge) {
        if (edge->second.locks > 0 || has_children(edge->second)) continue;
        if (victim == edges.end() || edge->second.stamp < victim->second.stamp) victim = edge;
      }
      if (victim == edges.end()) break;
      std::vector<Prefix>& pages = victim->second.pages;
      const std::size_t held = pages.size();
      const std::size_t going = exact ? held : std::min<std::size_t>(held, wanted - gone.size());
      for (std::size_t i = held - going; i < held; ++i) {
        gone.push_back(pages[i]);
        cached.erase(pages[i]);
      }
      pages.resize(held - going);
      if (pages.empty()) {
        edges.erase(victim);
      } else {
        victim->second.end = pages.back().size();
      }
    }
    return gone;
  }
  std::uint64_t pages_locked(bool locked) const {
    std::uint64_t sum = 0;
    for (const auto& [made, edge] : edges)
      sum += (edge.locks > 0) == locked ? edge.pages.size() : 0;
    return sum;
  }
};

struct Sequence {
  std::vector<std::uint32_t> ids;
  PageText text;
  Prefix pages;
  std::vector<std::uint64_t> hashes;
};

// Sequences that often begin alike, spelled token by token for the model.
class Sequences {
 public:
  Sequences(std::size_t count, std::uint32_t page_tokens, Random& random) : all_(count) {
    const auto trace_block = static_cast<std::uint32_t>(1 + random.below(4));
    const std::uint64_t letters = 1 + random.below(3), owners = 1 + random.below(3);
    for (Sequence& sequence : all_) {
      sequence.ids.resize(random.below(8));
      for (std::uint32_t& id : sequence.ids) id = static_cast<std::uint32_t>(random.below(letters));
      PageText& text = sequence.text;
      text.extra_key = random.below(8) == 0 ? 1 : 0;
      text.owner = random.below(owners);
      text.group = static_cast<std::uint32_t>(random.below(2));
      text.trace_block = trace_block;
      text.ids = sequence.ids;
      const std::uint64_t most = sequence.ids.empty() ? 12 : sequence.ids.size() * trace_block;
      text.shared_tokens = static_cast<std::uint32_t>(most - random.below(trace_block));
      spell(sequence, 1 + random.below(10), page_tokens);
    }
  }
  const Sequence& any(Random& random) const { return all_[random.below(all_.size())]; }
  const std::vector<Sequence>& all() const { return all_; }
  std::uint64_t hash(const Prefix& prefix) const { return hash_of_.at(prefix); }

 private:
  void spell(Sequence& sequence, std::uint64_t pages, std::uint32_t page_tokens) {
    const PageText& text = sequence.text;
    for (std::uint64_t page = 0; page < pages; ++page) {
      std::vector<std::uint64_t> tokens = {text.extra_key};
      for (std::uint64_t at = page * page_tokens; at < (page + 1) * page_tokens; ++at) {
        std::uint64_t token = (3ULL << 40) + text.owner;
        if (at < text.shared_tokens && text.ids.empty()) token = (1ULL << 40) + text.group;
        if (at < text.shared_tokens && !text.ids.empty()) token = text.ids[at / text.trace_block];
        tokens.push_back(token);
      }
      const auto number = static_cast<std::uint32_t>(number_of_.size());
      sequence.pages.push_back(number_of_.emplace(tokens, number).first->second);
      const std::uint64_t hash = mix(0x9E3779B97F4A7C15ULL + hash_of_.size());
      sequence.hashes.push_back(hash_of_.emplace(sequence.pages, hash).first->second);
    }
  }

  std::vector<Sequence> all_;
  std::map<std::vector<std::uint64_t>, std::uint32_t> number_of_;
  std::map<Prefix, std::uint64_t> hash_of_;
};

class Trio {
 public:
  Trio(std::uint64_t seed, bool exact)
      : random_(seed, "radix_tree_model"),
        page_tokens_(static_cast<std::uint32_t>(1 + random_.below(3))),
        sequences_(12, page_tokens_, random_),
        trees_{RadixTree({.page_tokens = page_tokens_, .hashed = true, .exact = exact}),
               RadixTree({.page_tokens = page_tokens_, .exact = exact})} {
    model_.exact = exact;
  }

  void step() {
    switch (random_.below(6)) {
      case 0:
        match();
        break;
      case 1:
        insert();
        break;
      case 2:
      case 3:
        extend();
        break;
      case 4:
        unlock();
        break;
      default:
        evict();
        break;
    }
    compare();
  }

 private:
  // What somebody locked, as the model and each tree know it.
  struct Held {
    const Sequence* sequence;
    std::uint32_t pages;
    RadixTree::Node nodes[2];
  };
  static PageKeys keys_of(const Sequence& sequence, std::uint32_t pages) {
    return {.pages = pages, .hashes = sequence.hashes, .text = &sequence.text};
  }
  static Prefix prefix_of(const Sequence& sequence, std::uint32_t pages) {
    return Model::first(sequence.pages, pages);
  }
  std::uint32_t any_pages(const Sequence& sequence, std::uint32_t least) {
    return least + static_cast<std::uint32_t>(random_.below(sequence.pages.size() - least + 1));
  }

  void match() {
    const Sequence& sequence = sequences_.any(random_);
    const std::uint32_t pages = any_pages(sequence, 0);
    const Lock lock = random_.below(2) == 0 ? Lock::Yes : Lock::No;
    const std::size_t expected = model_.match(prefix_of(sequence, pages));
    Held held{&sequence, static_cast<std::uint32_t>(expected), {}};
    for (int i = 0; i < 2; ++i) {
      const RadixTree::Match hit = trees_[i].match(keys_of(sequence, pages), lock);
      ASSERT_EQ(hit.pages, expected);
      held.nodes[i] = hit.node;
    }
    if (lock == Lock::No) return;
    model_.lock(prefix_of(sequence, held.pages));
    held_.push_back(held);
  }
  void insert() {
    const Sequence& sequence = sequences_.any(random_);
    put({&sequence, 0, {RadixTree::kRoot, RadixTree::kRoot}}, any_pages(sequence, 0));
  }
  Held put(const Held& start, std::uint32_t pages) {
    const std::size_t fresh = model_.insert(start.pages, prefix_of(*start.sequence, pages));
    Held end{start.sequence, pages, {}};
    for (int i = 0; i < 2; ++i) {
      const RadixTree::Inserted put =
          trees_[i].insert(start.nodes[i], start.pages, keys_of(*start.sequence, pages));
      EXPECT_EQ(put.new_pages, fresh);
      EXPECT_EQ(put.first_new, pages - fresh);
      EXPECT_EQ(put.node, trees_[i].find(keys_of(*start.sequence, pages)).node);
      end.nodes[i] = put.node;
    }
    return end;
  }
  // A request that commits more of its sequence, or finishes.
  void extend() {
    if (held_.empty()) return;
    const std::size_t at = random_.below(held_.size());
    const Held old = held_[at];
    const Held end = put(old, any_pages(*old.sequence, old.pages));
    if (random_.below(3) == 0) {
      forget(at);
      return;
    }
    model_.lock(prefix_of(*end.sequence, end.pages));
    for (int i = 0; i < 2; ++i) trees_[i].lock(end.nodes[i]);
    forget(at);
    held_.push_back(end);
  }
  void unlock() {
    if (!held_.empty()) forget(random_.below(held_.size()));
  }
  void forget(std::size_t at) {
    const Held held = held_[at];
    model_.unlock(prefix_of(*held.sequence, held.pages));
    for (int i = 0; i < 2; ++i) trees_[i].unlock(held.nodes[i]);
    held_[at] = held_.back();
    held_.pop_back();
  }
  void evict() {
    const std::uint64_t wanted = random_.below(6);
    const std::vector<Prefix> gone = model_.evict(wanted);
    std::vector<std::uint64_t> expected, removed;
    for (const Prefix& prefix : gone) expected.push_back(sequences_.hash(prefix));
    ASSERT_EQ(trees_[0].evict(wanted, &removed), gone.size());
    ASSERT_EQ(trees_[1].evict(wanted), gone.size());
    ASSERT_EQ(removed, expected);
    evicted_ += gone.size();
  }

  void compare() {
    for (const RadixTree& tree : trees_) {
      tree.verify();
      ASSERT_EQ(tree.node_count(), model_.edges.size());
      ASSERT_EQ(tree.evictable_pages(), model_.pages_locked(false));
      ASSERT_EQ(tree.locked_pages(), model_.pages_locked(true));
      ASSERT_EQ(tree.evictions(), evicted_);
    }
    for (const Sequence& sequence : sequences_.all()) {
      const auto pages = static_cast<std::uint32_t>(sequence.pages.size());
      const std::size_t expected = model_.find(sequence.pages);
      ASSERT_EQ(trees_[0].find(keys_of(sequence, pages)).pages, expected);
      ASSERT_EQ(trees_[1].find(keys_of(sequence, pages)).pages, expected);
    }
  }

  Random random_;
  std::uint32_t page_tokens_;
  Sequences sequences_;
  RadixTree trees_[2];
  Model model_;
  std::vector<Held> held_;
  std::uint64_t evicted_ = 0;
};

void run(bool exact) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Trio trio(seed, exact);
    for (int i = 0; i < 50; ++i) {
      trio.step();
      if (testing::Test::HasFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
  }
}

TEST(RadixTreeModel, AgreesOverRandomOperationsInCompat) {
  run(false);
}
TEST(RadixTreeModel, AgreesOverRandomOperationsInExact) {
  run(true);
}

}  // namespace
}  // namespace servecast::cache
