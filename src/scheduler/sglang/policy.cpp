// SPDX-License-Identifier: Apache-2.0
// In which order waiting requests are looked at (engine-sglang.md S7.2). The queue itself is
// sorted, stably, before each pass that may admit somebody.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "scheduler/sglang/scheduler.hpp"

namespace servecast::scheduler {
namespace {

constexpr std::uint32_t kLpmQueueMax = 128;     // longer queues stay as they are
constexpr std::uint32_t kInBatchTokens = 32;    // prefix that several waiting requests may share
constexpr std::uint32_t kInBatchMatchMax = 32;  // only those with no more in the tree count

}  // namespace

// The order may change from one pass to the next although nobody comes or goes.
bool SglangScheduler::has_moving_order() const {
  switch (settings_.policy) {
    case SglangPolicy::Lpm:
    case SglangPolicy::DfsWeight:
      return config_.prefix_caching;
    case SglangPolicy::Random:
      return true;
    case SglangPolicy::Fcfs:
    case SglangPolicy::Lof:
    case SglangPolicy::Priority:
      return false;
  }
  return false;
}

void SglangScheduler::requeue_as(const std::vector<Slot>& order) {
  waiting_ = {};
  for (const Slot slot : order) waiting_.push_back(requests_, slot);
}

void SglangScheduler::order_waiting() {
  if (waiting_.size() < 2 || settings_.policy == SglangPolicy::Fcfs) return;
  rows_.clear();
  for (Slot s = waiting_.first(); s != kNoSlot; s = requests_[s].after) rows_.push_back(s);
  switch (settings_.policy) {
    case SglangPolicy::Fcfs:
      return;
    case SglangPolicy::Lof:
      std::ranges::stable_sort(rows_, std::ranges::greater(), [&](Slot s) {
        return requests_[s].final_tokens - requests_[s].prompt_tokens;
      });
      break;
    case SglangPolicy::Priority:
      std::ranges::stable_sort(rows_, std::ranges::less(),
                               [&](Slot s) { return requests_[s].priority; });
      break;
    case SglangPolicy::Random:
      for (std::size_t i = rows_.size() - 1; i > 0; --i)
        std::swap(rows_[i], rows_[shuffle_.below(i + 1)]);
      break;
    case SglangPolicy::Lpm:
      if (!config_.prefix_caching || rows_.size() > kLpmQueueMax) return;
      order_by_prefix();
      break;
    case SglangPolicy::DfsWeight:
      if (!config_.prefix_caching) return;
      order_by_subtree();
      break;
  }
  requeue_as(rows_);
}

// What of its whole sequence is cached. SGLang itself counts that as a use [F-polmatch].
cache::RadixTree::Match SglangScheduler::policy_match(Slot slot) {
  const std::uint32_t known = requests_[slot].known();
  return settings_.fidelity == Fidelity::Exact ? kv_.match(slot, known) : kv_.find(slot, known);
}

// Longest cached prefix first. Of those with little in the tree that begin alike, the first goes
// ahead; the others wait for what it will leave there.
void SglangScheduler::order_by_prefix() {
  struct Key {
    Slot slot;
    bool later;
    std::uint32_t matched;
  };
  std::vector<Key> keys;
  std::unordered_set<std::uint64_t> beginnings;
  for (const Slot slot : rows_) {
    Key key{slot, false, policy_match(slot).pages * page_.divisor()};
    if (key.matched <= kInBatchMatchMax && requests_[slot].known() >= kInBatchTokens)
      key.later = !beginnings.insert(kv_.beginning(slot, kInBatchTokens)).second;
    keys.push_back(key);
  }
  std::ranges::stable_sort(keys, [](const Key& a, const Key& b) {
    return a.later != b.later ? b.later : a.matched > b.matched;
  });
  for (std::size_t i = 0; i < keys.size(); ++i) rows_[i] = keys[i].slot;
}

// Depth first through the tree, heavy subtrees first; a node weighs as much as requests wait in its
// subtree. Whoever ends at a node comes after those below it.
void SglangScheduler::order_by_subtree() {
  using Node = RadixKv::Node;
  struct Place {
    std::vector<Slot> requests;
    std::vector<Node> children;
    std::size_t weight = 0;
  };
  std::unordered_map<Node, Place> places;
  std::vector<Node> ends;
  for (const Slot slot : rows_) ends.push_back(policy_match(slot).node);
  // A match of a later request may have split the edge at which an earlier one ended; the node that
  // it found still stands below the new one.
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    places[ends[i]].requests.push_back(rows_[i]);
    ++places[ends[i]].weight;
    for (Node node = ends[i]; node != cache::RadixTree::kRoot;) {
      const Node above = kv_.parent(node);
      Place& place = places[above];
      if (std::ranges::find(place.children, node) == place.children.end())
        place.children.push_back(node);
      ++place.weight;
      node = above;
    }
  }
  rows_.clear();
  struct Visit {
    Node node;
    std::size_t next = 0;
  };
  std::vector<Visit> path{{cache::RadixTree::kRoot}};
  while (!path.empty()) {
    Visit& visit = path.back();
    Place& place = places[visit.node];
    if (visit.next == 0) {
      std::ranges::sort(place.children, [&](Node a, Node b) {
        if (places[a].weight != places[b].weight) return places[a].weight > places[b].weight;
        return kv_.created(a) < kv_.created(b);
      });
    }
    if (visit.next < place.children.size()) {
      path.push_back({place.children[visit.next++]});
      continue;
    }
    rows_.insert(rows_.end(), place.requests.begin(), place.requests.end());
    path.pop_back();
  }
}

}  // namespace servecast::scheduler
