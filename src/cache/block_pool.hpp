// SPDX-License-Identifier: Apache-2.0
// The KV blocks of one rank and the index of the prefixes that they hold (engine-vllm.md 6). Knows
// no request. Most blocks of a running request are only counted; a block becomes an entry of its
// own when it is sealed, that is when its content gets a name by which others can find it.
//
//   BlockPool pool(4);
//   pool.take(1);                        // one anonymous active block
//   BlockIndex b = pool.seal(0x1234).block;   // full now: it has a name
//   pool.release(b);                     // inactive: cached, the next to be evicted
//
// Invariants:
//  (1) capacity = free + active + inactive;
//  (2) an entry is on the LRU list iff nothing references it;
//  (3) the index chains hold exactly the primary copy of each name; further copies hang off it in
//  the order
//      in which they were sealed, and the next one becomes primary when the primary is evicted.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "cache/clairvoyant.hpp"
#include "cache/lru_list.hpp"

namespace servecast::cache {

class BlockPool {
 public:
  explicit BlockPool(std::uint32_t capacity);
  // From now on evicts what is asked for latest (engine-vllm.md 15) instead of what was released
  // first. requires: the pool is new; `demands` outlives it; every block is sealed, none retired.
  void evict_by(const Demands& demands);

  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t free() const { return free_; }
  std::uint32_t inactive() const { return inactive_; }
  std::uint32_t active() const { return capacity_ - free_ - inactive_; }
  // Blocks that a request could still get: free ones first, then the least recently released or the
  // one that evict_by() chooses.
  std::uint32_t room() const { return free_ + inactive_; }
  std::uint64_t evictions() const { return evictions_; }

  // The primary copy with this name, or kNoBlock. Changes no recency.
  BlockIndex find(std::uint64_t name) const;
  bool is_active(BlockIndex block) const { return entries_[block].references > 0; }
  std::uint64_t name(BlockIndex block) const { return entries_[block].name; }

  // Makes `count` anonymous blocks active. requires: count <= room().
  void take(std::uint32_t count) {
    SERVECAST_DCHECK(count <= room());
    if (count <= free_) {
      free_ -= count;
      return;
    }
    take_evicting(count);
  }
  // Can the blocks of a resident prefix be kept while `fresh` others are taken?
  bool can_reserve(std::span<const BlockIndex> prefix, std::uint32_t fresh) const;
  // References the resident blocks of a prefix and takes `fresh` anonymous ones; all or nothing.
  bool reserve(std::span<const BlockIndex> prefix, std::uint32_t fresh);

  struct Sealed {
    BlockIndex block;
    bool visible;  // no other copy had this name
  };
  // Gives a name to one anonymous active block; the entry has one reference.
  Sealed seal(std::uint64_t name);
  // Drops one reference of each block, the last block first, so that the end of a prefix is evicted
  // before its beginning. A block without references is inactive, youngest of all.
  void release(std::span<const BlockIndex> prefix);
  void release(BlockIndex block) { release({&block, 1}); }
  // Anonymous active blocks become free.
  void give_back(std::uint32_t count) { free_ += count; }
  // One anonymous active block becomes inactive under a name.
  void retire(std::uint64_t name);
  // `count` anonymous active blocks whose content nobody will ask for become inactive as one entry.
  void retire_unnamed(std::uint32_t count);

  // Names whose last copy was evicted since the list was last cleared; kept only when asked for.
  void keep_evicted_names() { keep_evicted_ = true; }
  std::vector<std::uint64_t>& evicted_names() { return evicted_names_; }

  void verify() const;  // checks the invariants; O(entries)

 private:
  struct Entry {
    std::uint64_t name;         // of a span: how many blocks it stands for
    std::uint32_t references;   // 0: on the LRU list; kSpan, kFree
    BlockIndex older, younger;  // LRU list; `younger` links free entries too
    BlockIndex chain;     // next primary in the same index chain; kDuplicate for further copies
    BlockIndex copy;      // next copy of the same name
    BlockIndex previous;  // copy before this one; of a primary: the last of its copies, if any
  };
  static constexpr BlockIndex kDuplicate = UINT32_MAX - 1;
  static constexpr std::uint32_t kSpan = UINT32_MAX, kFree = UINT32_MAX - 1;

  BlockIndex new_entry(std::uint64_t name, std::uint32_t references);
  void free_entry(BlockIndex block);
  bool index_insert(BlockIndex block);  // true when it is the only copy
  bool index_erase(BlockIndex block);   // true when it was the only copy
  void grow_index();
  void take_evicting(std::uint32_t count);

  // With a clairvoyant (block_pool_clairvoyant.cpp).
  Clairvoyant::Content content_of(BlockIndex block) const;
  void note_reserved(std::span<const BlockIndex> prefix);
  void note_released(std::span<const BlockIndex> prefix);
  void note_copies(std::uint64_t name);
  void evict_farthest();
  std::size_t slot(std::uint64_t name) const {
    return static_cast<std::size_t>(name) & (heads_.size() - 1);
  }

  std::uint32_t capacity_;
  std::uint32_t free_;
  std::uint32_t inactive_ = 0;
  std::uint64_t evictions_ = 0;
  std::vector<Entry> entries_;
  BlockIndex free_entries_ = kNoBlock;
  LruList lru_;
  std::vector<BlockIndex> heads_;  // a power of two; grows with the number of names
  std::uint32_t names_ = 0;
  bool keep_evicted_ = false;
  std::vector<std::uint64_t> evicted_names_;
  std::unique_ptr<Clairvoyant> clairvoyant_;  // chooses the victims; null: the LRU list does
};

}  // namespace servecast::cache
