// SPDX-License-Identifier: Apache-2.0
#include "cache/radix_tree.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace servecast::cache {
namespace {

std::uint64_t child_hash(RadixTree::Node parent, std::uint64_t name) {
  return mix(name + parent * 0x9E3779B97F4A7C15ULL);
}

}  // namespace

RadixTree::RadixTree(const Options& options) : options_(options), hashes_(options.hashed ? 1 : 0) {
  SERVECAST_CHECK(options.page_tokens > 0);
}

RadixTree::Match RadixTree::match(const PageKeys& keys, Lock wanted) {
  Match hit = find(keys);
  touch(hit);
  if (wanted == Lock::Yes) lock(hit.node);
  return hit;
}

RadixTree::Match RadixTree::find(const PageKeys& keys) const {
  return find_below({}, keys);
}

RadixTree::Inserted RadixTree::insert(Node start, std::uint32_t prefix_pages,
                                      const PageKeys& keys) {
  SERVECAST_CHECK(prefix_pages <= keys.pages && entries_[start].to == prefix_pages);
  Match hit = find_below({.pages = prefix_pages, .node = start}, keys);
  touch(hit);
  Inserted put{.node = hit.node, .new_pages = keys.pages - hit.pages, .first_new = hit.pages};
  if (put.new_pages == 0) return put;
  const Entry& end = entries_[hit.node];
  const bool own = hit.node == start && end.locks == 1;
  const bool extends =
      !options_.exact && hit.node != kRoot && end.children == 0 && (end.locks == 0 || own);
  if (extends) {
    extend(hit.node, keys);
  } else {
    put.node = add_child(hit, keys);
  }
  (entries_[put.node].locks == 0 ? evictable_ : locked_) += put.new_pages;
  ++version_;
  return put;
}

void RadixTree::lock(Node node) {
  for (; node != kRoot; node = entries_[node].parent) {
    Entry& entry = entries_[node];
    if (entry.locks++ > 0) continue;
    evictable_ -= entry.pages();
    locked_ += entry.pages();
  }
}

void RadixTree::unlock(Node node) {
  for (; node != kRoot; node = entries_[node].parent) {
    Entry& entry = entries_[node];
    SERVECAST_CHECK(entry.locks > 0);
    if (--entry.locks > 0) continue;
    locked_ -= entry.pages();
    evictable_ += entry.pages();
    list(node);
  }
}

std::uint64_t RadixTree::evict(std::uint64_t pages, std::vector<std::uint64_t>* removed) {
  SERVECAST_CHECK(removed == nullptr || options_.hashed);
  std::uint64_t gone = 0;
  while (gone < pages) {
    const Node leaf = oldest_leaf();
    if (leaf == kRoot) break;
    const std::uint32_t held = entries_[leaf].pages();
    const bool whole = options_.exact || pages - gone >= held;
    const std::uint32_t going = whole ? held : static_cast<std::uint32_t>(pages - gone);
    cut(leaf, going, removed);
    gone += going;
  }
  if (gone == 0) return 0;
  evictable_ -= gone;
  evicted_ += gone;
  ++version_;
  return gone;
}

std::uint64_t RadixTree::name_of(const PageKeys& keys, std::uint32_t page) const {
  return options_.hashed ? keys.hashes[page] : keys.text->page_name(page, options_.page_tokens);
}

RadixTree::Node RadixTree::child(Node parent, std::uint64_t name) const {
  return children_.find(child_hash(parent, name), [&](Node node) {
    return entries_[node].parent == parent && entries_[node].name == name;
  });
}

// The number of pages, from the first of the keys on, that are equal when the edge of `node` has
// been compared as well. requires: the keys are equal up to that edge.
std::uint32_t RadixTree::equal_pages(Node node, const PageKeys& keys) const {
  const Entry& entry = entries_[node];
  const std::uint32_t limit = std::min(entry.to, keys.pages);
  if (!options_.hashed) {
    const std::uint64_t end = std::uint64_t{limit} * options_.page_tokens;
    const std::uint64_t from = std::uint64_t{entry.from} * options_.page_tokens;
    const std::uint64_t equal = entry.text.equal_until(*keys.text, from, end);
    return equal == end ? limit : static_cast<std::uint32_t>(equal / options_.page_tokens);
  }
  // A prefix hash that is equal says that all before it are.
  const std::vector<std::uint64_t>& edge = hashes_[node];
  std::uint32_t equal = entry.from, differs = limit + 1;
  for (std::uint32_t probe = limit; differs - equal > 1; probe = equal + (differs - equal) / 2) {
    (edge[probe - 1 - entry.from] == keys.hashes[probe - 1] ? equal : differs) = probe;
  }
  return equal;
}

RadixTree::Match RadixTree::find_below(Match start, const PageKeys& keys) const {
  Match hit = start;
  while (hit.pages < keys.pages) {
    const Node next = child(hit.node, name_of(keys, hit.pages));
    if (next == kRoot) break;
    const std::uint32_t equal = equal_pages(next, keys);
    SERVECAST_CHECK(equal > hit.pages);
    hit = {.pages = equal, .node = next};
    if (equal < entries_[next].to) break;
  }
  return hit;
}

// Marks all that an operation met, which is the way from the root to where it ended, as used now.
// Of an edge used in part both halves are (S4.7).
void RadixTree::touch(Match& hit) {
  ++clock_;
  entries_[kRoot].stamp = clock_;
  for (Node at = hit.node; at != kRoot; at = entries_[at].parent) entries_[at].stamp = clock_;
  if (hit.pages < entries_[hit.node].to) hit.node = split(hit.node, hit.pages);
}

// Gives the first pages of an edge, up to position `pages`, a node of their own above `node`, which
// stays who it is for those who locked it (S4.3).
RadixTree::Node RadixTree::split(Node node, std::uint32_t pages) {
  Entry top = entries_[node];
  SERVECAST_DCHECK(top.from < pages && pages < top.to);
  top.to = pages;
  top.children = 1;
  const Node upper = make_entry(top);
  children_.replace(child_hash(top.parent, top.name), node, upper);
  Entry& lower = entries_[node];
  lower.parent = upper;
  lower.from = pages;
  if (options_.hashed) {
    std::vector<std::uint64_t>& edge = hashes_[node];
    hashes_[upper].assign(edge.begin(), edge.begin() + top.pages());
    edge.erase(edge.begin(), edge.begin() + top.pages());
    lower.name = edge.front();
  } else {
    lower.name = lower.text.page_name(pages, options_.page_tokens);
  }
  children_.add(child_hash(upper, lower.name), node);
  ++version_;
  return upper;
}

RadixTree::Node RadixTree::make_entry(const Entry& entry) {
  if (unused_.empty()) {
    SERVECAST_CHECK(entries_.size() < UINT32_MAX);
    unused_.push_back(static_cast<Node>(entries_.size()));
    entries_.emplace_back();
    if (options_.hashed) hashes_.emplace_back();
  }
  const Node node = unused_.back();
  unused_.pop_back();
  entries_[node] = entry;
  entries_[node].created = ++created_;
  entries_[node].listed = false;
  return node;
}

void RadixTree::extend(Node node, const PageKeys& keys) {
  Entry& entry = entries_[node];
  if (options_.hashed) {
    const auto fresh = keys.hashes.first(keys.pages).subspan(entry.to);
    hashes_[node].insert(hashes_[node].end(), fresh.begin(), fresh.end());
  } else {
    entry.text = *keys.text;
  }
  entry.to = keys.pages;
}

RadixTree::Node RadixTree::add_child(const Match& hit, const PageKeys& keys) {
  const std::uint64_t name = name_of(keys, hit.pages);
  const Node node = make_entry({.text = {},
                                .name = name,
                                .stamp = clock_,
                                .parent = hit.node,
                                .from = hit.pages,
                                .to = hit.pages});
  extend(node, keys);
  ++entries_[hit.node].children;
  children_.add(child_hash(hit.node, name), node);
  list(node);
  return node;
}

void RadixTree::list(Node node) {
  Entry& entry = entries_[node];
  if (node == kRoot || entry.listed || !entry.is_evictable()) return;
  entry.listed = true;
  leaves_.push_back({entry.stamp, entry.created, node});
  std::push_heap(leaves_.begin(), leaves_.end(), Younger{});
}

// The unlocked leaf that was used longest ago, or the root if there is none. It stays listed.
RadixTree::Node RadixTree::oldest_leaf() {
  while (!leaves_.empty()) {
    const Leaf oldest = leaves_.front();
    Entry& entry = entries_[oldest.node];
    if (entry.is_evictable() && entry.stamp == oldest.stamp) return oldest.node;
    std::pop_heap(leaves_.begin(), leaves_.end(), Younger{});
    leaves_.pop_back();
    entry.listed = false;
    list(oldest.node);
  }
  return kRoot;
}

// Takes the last `pages` off the oldest leaf, and the leaf away with the last of them.
void RadixTree::cut(Node leaf, std::uint32_t pages, std::vector<std::uint64_t>* removed) {
  Entry& entry = entries_[leaf];
  if (options_.hashed) {
    std::vector<std::uint64_t>& edge = hashes_[leaf];
    const auto first = edge.end() - pages;
    if (removed != nullptr) removed->insert(removed->end(), first, edge.end());
    edge.erase(first, edge.end());
  }
  entry.to -= pages;
  if (entry.pages() > 0) return;
  SERVECAST_CHECK(leaves_.front().node == leaf);
  std::pop_heap(leaves_.begin(), leaves_.end(), Younger{});
  leaves_.pop_back();
  children_.remove(child_hash(entry.parent, entry.name), leaf);
  unused_.push_back(leaf);
  --entries_[entry.parent].children;
  list(entry.parent);
}

void RadixTree::verify() const {
  std::vector<bool> used(entries_.size(), true);
  for (const Node node : unused_) {
    SERVECAST_CHECK(used[node]);
    used[node] = false;
  }
  std::uint64_t evictable = 0, locked = 0;
  std::uint32_t nodes = 0;
  std::vector<std::uint32_t> children(entries_.size(), 0);
  std::vector<std::uint64_t> locks(entries_.size(), 0);
  for (Node node = 1; node < entries_.size(); ++node) {
    if (!used[node]) continue;
    const Entry& entry = entries_[node];
    const Entry& above = entries_[entry.parent];
    SERVECAST_CHECK(entry.parent != node && used[entry.parent]);
    SERVECAST_CHECK(entry.from == above.to && entry.from < entry.to);
    SERVECAST_CHECK(entry.stamp <= above.stamp && above.stamp <= clock_);
    SERVECAST_CHECK(child(entry.parent, entry.name) == node);
    if (options_.hashed) {
      SERVECAST_CHECK(hashes_[node].size() == entry.pages());
      SERVECAST_CHECK(hashes_[node].front() == entry.name);
    } else {
      SERVECAST_CHECK(entry.text.page_name(entry.from, options_.page_tokens) == entry.name);
    }
    ++nodes;
    ++children[entry.parent];
    locks[entry.parent] += entry.locks;
    (entry.locks == 0 ? evictable : locked) += entry.pages();
  }
  SERVECAST_CHECK(nodes == node_count() && nodes + unused_.size() + 1 == entries_.size());
  SERVECAST_CHECK(evictable == evictable_ && locked == locked_);
  SERVECAST_CHECK(entries_[kRoot].to == 0 && entries_[kRoot].locks == 0);
  for (Node node = 0; node < entries_.size(); ++node) {
    if (!used[node]) continue;
    SERVECAST_CHECK(children[node] == entries_[node].children);
    SERVECAST_CHECK(node == kRoot || locks[node] <= entries_[node].locks);
  }
  verify_leaves();
}

void RadixTree::verify_leaves() const {
  SERVECAST_CHECK(std::is_heap(leaves_.begin(), leaves_.end(), Younger{}));
  std::vector<bool> seen(entries_.size(), false);
  for (const Leaf& leaf : leaves_) {
    const Entry& entry = entries_[leaf.node];
    SERVECAST_CHECK(!seen[leaf.node] && entry.listed && entry.pages() > 0);
    SERVECAST_CHECK(leaf.stamp <= entry.stamp && leaf.created == entry.created);
    seen[leaf.node] = true;
  }
  for (Node node = 1; node < entries_.size(); ++node) {
    const Entry& entry = entries_[node];
    if (entry.pages() == 0) continue;
    SERVECAST_CHECK(entry.listed == seen[node] && (entry.listed || !entry.is_evictable()));
  }
}

}  // namespace servecast::cache
