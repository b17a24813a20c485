// SPDX-License-Identifier: Apache-2.0
#include "cache/grouped_pool.hpp"

#include <utility>

#include "base/check.hpp"

namespace servecast::cache {

BlockIndex GroupedPool::find(const GroupKey& key) const {
  KeyIndex at = heads_[slot(key)];
  while (at != kNoKey && keys_[at].key != key) at = keys_[at].chain;
  return at == kNoKey ? kNoBlock : keys_[at].block;
}

BlockIndex GroupedPool::take() {
  SERVECAST_CHECK(available() > 0);
  if (free() == 0) evict_oldest();
  BlockIndex block = 0;
  if (free_blocks_.empty()) {
    block = static_cast<BlockIndex>(blocks_.size());
    blocks_.emplace_back();
  } else {
    block = free_blocks_.back();
    free_blocks_.pop_back();
  }
  SERVECAST_CHECK(!is_held(block) && !has_keys(block));
  blocks_[block].references = 1;
  return block;
}

void GroupedPool::hold(BlockIndex block) {
  Block& entry = blocks_[block];
  SERVECAST_CHECK(entry.references > 0 || entry.keys != kNoKey);
  if (entry.references++ == 0) unlink(block);
}

void GroupedPool::release(BlockIndex block) {
  Block& entry = blocks_[block];
  SERVECAST_CHECK(entry.references > 0);
  if (--entry.references > 0) return;
  if (entry.keys == kNoKey) {
    free_blocks_.push_back(block);
  } else {
    append(block);
  }
}

bool GroupedPool::add_key(BlockIndex block, const GroupKey& key) {
  SERVECAST_CHECK(is_held(block));
  for (KeyIndex at = blocks_[block].keys; at != kNoKey; at = keys_[at].of_block) {
    if (keys_[at].key == key) return false;
  }
  KeyIndex at = free_keys_;
  if (at == kNoKey) {
    at = static_cast<KeyIndex>(keys_.size());
    keys_.emplace_back();
  } else {
    free_keys_ = keys_[at].of_block;
  }
  if (key_count_ == heads_.size()) grow_index();
  keys_[at] = {.key = key, .block = block, .chain = kNoKey, .of_block = blocks_[block].keys};
  blocks_[block].keys = at;
  link_key(at);
  ++key_count_;
  ++mutations_;
  return true;
}

void GroupedPool::drop_keys(BlockIndex block) {
  SERVECAST_CHECK(is_held(block));
  while (has_keys(block)) unlink_key(blocks_[block].keys);
}

void GroupedPool::move_keys(BlockIndex from, BlockIndex to) {
  SERVECAST_CHECK(is_held(from) && is_held(to) && !has_keys(to));
  blocks_[to].keys = std::exchange(blocks_[from].keys, kNoKey);
  for (KeyIndex at = blocks_[to].keys; at != kNoKey; at = keys_[at].of_block) {
    keys_[at].block = to;
  }
  ++mutations_;
}

void GroupedPool::link_key(KeyIndex at) {
  KeyIndex* link = &heads_[slot(keys_[at].key)];
  while (*link != kNoKey) link = &keys_[*link].chain;
  *link = at;
}

// Takes the first key of its block away.
void GroupedPool::unlink_key(KeyIndex at) {
  Key& entry = keys_[at];
  KeyIndex* link = &heads_[slot(entry.key)];
  while (*link != at) link = &keys_[*link].chain;
  *link = entry.chain;
  blocks_[entry.block].keys = entry.of_block;
  entry.of_block = free_keys_;
  free_keys_ = at;
  --key_count_;
  ++mutations_;
  if (keep_gone_ && find(entry.key) == kNoBlock) gone_keys_.push_back(entry.key);
}

void GroupedPool::grow_index() {
  std::vector<KeyIndex> old(heads_.size() * 2, kNoKey);
  old.swap(heads_);
  for (KeyIndex at : old) {
    while (at != kNoKey) {  // equal keys stay in order: they were in one chain and are in one again
      const KeyIndex next = std::exchange(keys_[at].chain, kNoKey);
      link_key(at);
      at = next;
    }
  }
}

void GroupedPool::append(BlockIndex block) {
  lru_.append(blocks_, block);
  ++cached_;
}

void GroupedPool::unlink(BlockIndex block) {
  SERVECAST_CHECK(cached_ > 0);
  lru_.unlink(blocks_, block);
  --cached_;
}

void GroupedPool::evict_oldest() {
  const BlockIndex block = lru_.oldest();
  SERVECAST_CHECK(block != kNoBlock);
  unlink(block);
  while (has_keys(block)) unlink_key(blocks_[block].keys);
  free_blocks_.push_back(block);
  ++evictions_;
}

void GroupedPool::verify() const {
  SERVECAST_CHECK(blocks_.size() <= capacity_ && free() + cached_ <= capacity_);
  std::uint32_t listed = 0;
  lru_.verify(blocks_, [&](BlockIndex block) {
    SERVECAST_CHECK(!is_held(block) && has_keys(block));
    SERVECAST_CHECK(++listed <= cached_);
  });
  SERVECAST_CHECK(listed == cached_);

  std::uint32_t held_blocks = 0, keys = 0;
  for (BlockIndex block = 0; block < blocks_.size(); ++block) {
    held_blocks += is_held(block) ? 1 : 0;
    for (KeyIndex at = blocks_[block].keys; at != kNoKey; at = keys_[at].of_block) {
      SERVECAST_CHECK(keys_[at].block == block && ++keys <= key_count_);
    }
  }
  SERVECAST_CHECK(held_blocks == held() && keys == key_count_);
  for (const BlockIndex block : free_blocks_) {
    SERVECAST_CHECK(!is_held(block) && !has_keys(block));
  }
  std::uint32_t indexed = 0;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    for (KeyIndex at = heads_[i]; at != kNoKey; at = keys_[at].chain) {
      SERVECAST_CHECK(slot(keys_[at].key) == i && ++indexed <= key_count_);
    }
  }
  SERVECAST_CHECK(indexed == key_count_);
}

}  // namespace servecast::cache
