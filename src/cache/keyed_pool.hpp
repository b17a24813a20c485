// SPDX-License-Identifier: Apache-2.0
// The blocks of a rank whose requests have recurrent state (engine-vllm.md 6, 9.1): one pool for
// pages of tokens and for states, each block by itself. Knows no request. A block without a key is
// private; a key lets others find it, and keeps it as cache when nobody references it any more.
// BlockPool (block_pool.hpp) is the pool of ranks without state; it counts where this one lists.
//
//   KeyedPool pool(4);
//   const BlockIndex page = pool.take();                                    // private, active
//   pool.publish(page, {.kind = KeyKind::Page, .hash = 0x1234});
//   pool.release(page);                                                     // inactive, cached
//
// Invariants:
//  (1) capacity = free + active + inactive;
//  (2) a block is on the LRU list iff it has a key and no reference; without either it is free;
//  (3) an index holds exactly the blocks with a key, in the order in which they got it; the first
//  is the primary copy;
//  (4) a page has no state key and a state has no other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/hash.hpp"
#include "cache/block_pool.hpp"

namespace servecast::cache {

enum class KeyKind : std::uint8_t {
  Page,  // a full page, by the hash of the prefix that ends with it
  Tail,  // a page that holds at least the prefix with this hash, which ends inside it
  State  // one slot of the state after the prefix
};

struct BlockKey {
  KeyKind kind = KeyKind::Page;
  std::uint32_t slot = 0;  // State only
  std::uint64_t hash = 0;
  std::uint64_t serial = 0;  // State only: number of the publication, which orders them
};

class KeyedPool {
 public:
  explicit KeyedPool(std::uint32_t capacity) : capacity_(capacity) {}

  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t free() const {
    return static_cast<std::uint32_t>(capacity_ - blocks_.size() + free_blocks_.size());
  }
  std::uint32_t inactive() const { return inactive_; }
  std::uint32_t active() const { return capacity_ - free() - inactive_; }
  // Blocks that a request could still get: free ones first, then the least recently released.
  std::uint32_t room() const { return free() + inactive_; }
  std::uint64_t evictions() const { return evictions_; }
  // Grows whenever a key goes: blocks found before may be other blocks now.
  std::uint64_t removals() const { return removals_; }

  // The primary copy, or kNoBlock. Changes no recency.
  BlockIndex find_page(std::uint64_t prefix) const { return find(pages_, {prefix, 0}); }
  BlockIndex find_state(std::uint64_t prefix, std::uint32_t slot) const {
    return find(states_, {prefix, slot});
  }
  std::uint32_t references(BlockIndex block) const { return blocks_[block].references; }
  bool is_active(BlockIndex block) const { return references(block) > 0; }
  // The key of this kind, or null.
  const BlockKey* key(BlockIndex block, KeyKind kind) const;

  // A private block with one reference. requires: room() > 0.
  BlockIndex take();
  void reference(BlockIndex block);
  // Drops one reference. The last one frees a private block; one with a key becomes inactive,
  // youngest of all.
  void release(BlockIndex block);
  // Gives an active block a key. True when no other block has it: the prefix became visible.
  // requires: the block has no key of this kind.
  bool publish(BlockIndex block, const BlockKey& key);
  // Takes the key of this kind away; an inactive block whose only key it was becomes free.
  void withdraw(BlockIndex block, KeyKind kind);

  // Hashes of full pages whose last copy was evicted since the list was last cleared; kept only
  // when asked for. Losing a state or a tail takes no full page from anybody, so they are not told.
  void keep_evicted_names() { keep_evicted_ = true; }
  std::vector<std::uint64_t>& evicted_names() { return evicted_names_; }

  void verify() const;  // checks the invariants; O(blocks ever used)

 private:
  struct Block {
    std::uint32_t references = 0;
    BlockIndex older = kNoBlock, younger = kNoBlock;  // LRU list
    std::vector<BlockKey> keys;                       // at most one of a kind
  };
  struct Name {
    std::uint64_t hash;
    std::uint32_t slot;
    bool operator==(const Name&) const = default;
  };
  struct NameHash {
    std::size_t operator()(const Name& name) const { return mix(name.hash + name.slot); }
  };
  // Never iterated where the order could be seen.
  using Index = std::unordered_map<Name, std::vector<BlockIndex>, NameHash>;

  static BlockIndex find(const Index& index, const Name& name) {
    const auto found = index.find(name);
    return found == index.end() ? kNoBlock : found->second.front();
  }
  Index& index_of(const BlockKey& key) { return key.kind == KeyKind::State ? states_ : pages_; }
  bool erase_from_index(BlockIndex block, const BlockKey& key);  // true when it was the only copy
  void evict_oldest();
  void append(BlockIndex block);  // to the LRU list
  void unlink(BlockIndex block);

  std::uint32_t capacity_;
  std::uint32_t inactive_ = 0;
  std::uint64_t evictions_ = 0, removals_ = 0;
  std::vector<Block> blocks_;  // those that were ever used
  std::vector<BlockIndex> free_blocks_;
  LruList lru_;
  Index pages_;   // full pages and tails: a position is one or the other, so hashes do not meet
  Index states_;  // apart, so that looking for tokens is not slowed down by them
  bool keep_evicted_ = false;
  std::vector<std::uint64_t> evicted_names_;
};

}  // namespace servecast::cache
