// SPDX-License-Identifier: Apache-2.0
// The blocks of a rank with grouped caches (engine-vllm.md 10.4): one pool for all groups. A block
// is free, held or cached: it is held while somebody references it, and when nobody does, its keys
// decide whether it stays as cache until it is evicted or becomes free. A key is a prefix and a
// group; a block may have more than one, since a full block may also serve a prefix that ends
// inside it. Knows no request and no rule of a group.
//
//   GroupedPool pool(64);
//   const BlockIndex block = pool.take();               // held
//   pool.add_key(block, {.hash = 0x1234, .group = 0});
//   pool.release(block);                                // cached, the last to be evicted
//
// Invariants:
//  (1) capacity = free + held + cached;
//  (2) a block is on the LRU list iff it has a key and no reference;
//  (3) the index holds exactly the keys of the blocks; of equal keys the first one given is found.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash.hpp"
#include "cache/block_pool.hpp"

namespace servecast::cache {

struct GroupKey {
  std::uint64_t hash = 0;  // of the prefix that ends where the block's content is needed to
  std::uint32_t group = 0;
  friend bool operator==(const GroupKey&, const GroupKey&) = default;
};

class GroupedPool {
 public:
  explicit GroupedPool(std::uint32_t capacity) : capacity_(capacity), heads_(16, kNoBlock) {}

  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t free() const {
    return capacity_ - static_cast<std::uint32_t>(blocks_.size() - free_blocks_.size());
  }
  std::uint32_t cached() const { return cached_; }
  std::uint32_t held() const { return capacity_ - free() - cached_; }
  // Blocks that a request could get: free ones first, then the least recently released.
  std::uint32_t available() const { return free() + cached_; }
  std::uint64_t evictions() const { return evictions_; }
  // Grows whenever a key comes or goes. Blocks found before may be other blocks when it changed.
  std::uint64_t mutations() const { return mutations_; }

  // The block that got this key first, or kNoBlock. Changes no recency.
  BlockIndex find(const GroupKey& key) const;
  std::uint32_t references(BlockIndex block) const { return blocks_[block].references; }
  bool is_held(BlockIndex block) const { return references(block) > 0; }
  bool has_keys(BlockIndex block) const { return blocks_[block].keys != kNoKey; }

  // A block without keys and with one reference: the last one freed, else the oldest of the cache.
  // requires: available() > 0.
  BlockIndex take();
  void hold(BlockIndex block);  // one more reference. requires: it is held or cached
  void release(BlockIndex block);
  // False when the block has the key already. requires: the block is held.
  bool add_key(BlockIndex block, const GroupKey& key);
  void drop_keys(BlockIndex block);  // requires: the block is held
  // All keys of one held block to another, which has none.
  void move_keys(BlockIndex from, BlockIndex to);

  // Keys whose last block lost them since the list was last cleared; kept only when asked for.
  void keep_gone_keys() { keep_gone_ = true; }
  std::vector<GroupKey>& gone_keys() { return gone_keys_; }

  void verify() const;  // checks the invariants; O(blocks ever used)

 private:
  using KeyIndex = std::uint32_t;
  static constexpr KeyIndex kNoKey = UINT32_MAX;
  struct Key {
    GroupKey key;
    BlockIndex block;
    KeyIndex chain;     // next in the same index chain, in the order in which they were given
    KeyIndex of_block;  // next key of the same block; links free entries too
  };
  struct Block {
    std::uint32_t references = 0;
    KeyIndex keys = kNoKey;
    BlockIndex older = kNoBlock, younger = kNoBlock;  // LRU list
  };

  std::size_t slot(const GroupKey& key) const {
    return mix(key.hash + key.group) & (heads_.size() - 1);
  }
  void link_key(KeyIndex at);  // to the end of its chain
  void unlink_key(KeyIndex at);
  void grow_index();
  void append(BlockIndex block);  // to the LRU list
  void unlink(BlockIndex block);
  void evict_oldest();

  std::uint32_t capacity_;
  std::uint32_t cached_ = 0;
  std::uint64_t evictions_ = 0, mutations_ = 0;
  std::vector<Block> blocks_;  // those that were ever used
  std::vector<BlockIndex> free_blocks_;
  LruList lru_;
  std::vector<Key> keys_;
  KeyIndex free_keys_ = kNoKey;
  std::uint32_t key_count_ = 0;
  std::vector<KeyIndex> heads_;  // a power of two; grows with the number of keys
  bool keep_gone_ = false;
  std::vector<GroupKey> gone_keys_;
};

}  // namespace servecast::cache
