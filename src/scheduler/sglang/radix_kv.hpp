// SPDX-License-Identifier: Apache-2.0
// The KV of an SGLang rank: pages that are free, private to a request, or in the radix tree, and
// what requests do with them (engine-sglang.md S3, S5). Pages are counted; a request's share stands
// in Request: `blocks` pages, of them the first `prefix_blocks` in the tree down to `prefix_node`,
// which is locked, and `computed` tokens that have their place.
//
//   if (kv.admit(slot, prefix, length)) ...          // first chunk
//   if (kv.extend(slot, length)) ...                 // a later one
//   kv.commit(slot, length);                         // its result has been observed
//   kv.reserve(pages); request.blocks += ...;        // a decode pass
//   kv.finish(slot, tokens);                         // or kv.release(slot): nothing is kept
//
// Without prefix caching nothing is looked for and nothing enters the tree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/divider.hpp"
#include "cache/page_text.hpp"
#include "cache/radix_tree.hpp"
#include "scheduler/kv_counts.hpp"
#include "scheduler/kv_event.hpp"
#include "scheduler/prefix_names.hpp"
#include "scheduler/rank_config.hpp"
#include "scheduler/rank_kv.hpp"
#include "scheduler/request.hpp"
#include "scheduler/sglang/kv_recorder.hpp"
#include "scheduler/spelling.hpp"

namespace servecast::scheduler {

class RadixKv {
 public:
  using Node = cache::RadixTree::Node;

  // requires: config.sglang; `requests` outlives it.
  RadixKv(const RankConfig& config, const KvNaming& naming, RequestSlab& requests);

  std::uint64_t capacity() const { return capacity_; }  // all counts in pages
  std::uint64_t free() const {
    return capacity_ - private_ - tree_.evictable_pages() - tree_.locked_pages();
  }
  std::uint64_t evictable() const { return tree_.evictable_pages(); }
  std::uint64_t room() const { return capacity_ - private_ - tree_.locked_pages(); }
  KvCounts counts() const;

  // Pages of the first `tokens` tokens of a request that are cached, and where they end. Leaves no
  // trace; `match` counts as a use.
  cache::RadixTree::Match find(Slot slot, std::uint32_t tokens) const;
  cache::RadixTree::Match match(Slot slot, std::uint32_t tokens);
  // Evictable pages that a lock on the first `tokens` tokens would protect. Counts as a use.
  std::uint64_t would_lock(Slot slot, std::uint32_t tokens);
  // A name of the first `tokens` tokens, that requests which begin alike share. requires: always
  // the same number of tokens.
  std::uint64_t beginning(Slot slot, std::uint32_t tokens);
  Node parent(Node node) const { return tree_.parent(node); }
  std::uint64_t created(Node node) const { return tree_.created(node); }

  // Gives a request without pages its first `length` tokens, of which the first `prefix`, whole
  // pages, are cached and get locked. False when they do not fit: only recency has changed then.
  bool admit(Slot slot, std::uint32_t prefix, std::uint32_t length);
  // The same for a request that has its first tokens already.
  bool extend(Slot slot, std::uint32_t length);
  // The first `through` tokens are computed: whole pages of them enter the tree.
  void commit(Slot slot, std::uint32_t through);
  // Takes free pages for whoever the caller says, evicting what is short. requires: pages <=
  // room().
  void reserve(std::uint64_t pages);
  void give_back(std::uint64_t pages) { private_ -= pages; }
  // Evicts until `pages` are free; with `all` so many in any case. May free less.
  void evict_towards(std::uint64_t pages, bool all);

  // The request ends and leaves the whole pages of its first `tokens` tokens in the tree.
  void finish(Slot slot, std::uint32_t tokens);
  // Nothing more of it enters the tree.
  void release(Slot slot);

  // What is left of a canceled request until its pass has been observed.
  struct Leaving {
    cache::PageText text;
    std::vector<std::uint64_t> names;
    std::vector<KvEvent::Block> blocks;  // of the pages that are not in the tree yet
    std::vector<std::uint32_t> tokens;   // and what they say
    std::optional<std::uint64_t> session;
    std::uint32_t pages = 0, prefix_blocks = 0, held = 0;
    Node prefix_node = cache::RadixTree::kRoot;
  };
  // Takes the lease off a request that would finish with `tokens` tokens.
  Leaving leave(Slot slot, std::uint32_t tokens);
  void finish(const Leaving& leaving);

  // Moves what has happened since the last flush (engine-sglang.md S6.4).
  void flush(std::vector<KvEvent>& out);
  // Checks the invariants. `private_pages`: what the caller counts of them.
  void verify(std::uint64_t private_pages, bool nobody_holds) const;

 private:
  std::uint32_t pages_left_behind(const Request& request, std::uint32_t tokens) const;
  KvEvent::Block spell(const Request& request, std::uint32_t page);
  // Valid until the next call.
  cache::PageKeys keys_of(Request& request, std::uint32_t pages) const;
  bool take(std::uint64_t pages);
  void evict(std::uint64_t pages);
  void publish(const Request& request, std::uint32_t first, std::uint32_t pages);

  std::uint64_t capacity_, private_ = 0;
  Divider page_;
  bool caching_, hashed_, events_, exact_;
  RequestSlab& requests_;
  cache::RadixTree tree_;
  mutable PrefixNames names_;
  Spelling spelling_;
  std::optional<Spelling> beginnings_;
  KvRecorder recorder_;
  std::vector<std::uint64_t> removed_;  // scratch
};

}  // namespace servecast::scheduler
