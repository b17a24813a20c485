// SPDX-License-Identifier: Apache-2.0
#include "cache/keyed_pool.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace servecast::cache {

const BlockKey* KeyedPool::key(BlockIndex block, KeyKind kind) const {
  for (const BlockKey& key : blocks_[block].keys) {
    if (key.kind == kind) return &key;
  }
  return nullptr;
}

BlockIndex KeyedPool::take() {
  SERVECAST_CHECK(room() > 0);
  if (free() == 0) evict_oldest();
  BlockIndex block = 0;
  if (free_blocks_.empty()) {
    block = static_cast<BlockIndex>(blocks_.size());
    blocks_.emplace_back();
  } else {
    block = free_blocks_.back();
    free_blocks_.pop_back();
  }
  SERVECAST_CHECK(blocks_[block].references == 0 && blocks_[block].keys.empty());
  blocks_[block].references = 1;
  return block;
}

void KeyedPool::reference(BlockIndex block) {
  Block& entry = blocks_[block];
  SERVECAST_CHECK(!entry.keys.empty());  // a private block has one holder
  if (entry.references++ == 0) unlink(block);
}

void KeyedPool::release(BlockIndex block) {
  Block& entry = blocks_[block];
  SERVECAST_CHECK(entry.references > 0);
  if (--entry.references > 0) return;
  if (entry.keys.empty()) {
    free_blocks_.push_back(block);
  } else {
    append(block);
  }
}

bool KeyedPool::publish(BlockIndex block, const BlockKey& key) {
  SERVECAST_CHECK(is_active(block) && this->key(block, key.kind) == nullptr);
  blocks_[block].keys.push_back(key);
  std::vector<BlockIndex>& copies = index_of(key)[{key.hash, key.slot}];
  copies.push_back(block);
  return copies.size() == 1;
}

void KeyedPool::withdraw(BlockIndex block, KeyKind kind) {
  const BlockKey* found = key(block, kind);
  SERVECAST_CHECK(found != nullptr);
  erase_from_index(block, *found);
  Block& entry = blocks_[block];
  entry.keys.erase(entry.keys.begin() + (found - entry.keys.data()));
  if (entry.references > 0 || !entry.keys.empty()) return;
  unlink(block);
  free_blocks_.push_back(block);
}

bool KeyedPool::erase_from_index(BlockIndex block, const BlockKey& key) {
  ++removals_;
  Index& index = index_of(key);
  const auto found = index.find({key.hash, key.slot});
  SERVECAST_CHECK(found != index.end());
  std::vector<BlockIndex>& copies = found->second;
  const auto at = std::find(copies.begin(), copies.end(), block);
  SERVECAST_CHECK(at != copies.end());
  copies.erase(at);
  if (!copies.empty()) return false;
  index.erase(found);
  return true;
}

void KeyedPool::evict_oldest() {
  const BlockIndex block = lru_.oldest();
  unlink(block);
  Block& entry = blocks_[block];
  for (const BlockKey& key : entry.keys) {
    const bool last = erase_from_index(block, key);
    if (last && key.kind == KeyKind::Page && keep_evicted_) evicted_names_.push_back(key.hash);
  }
  entry.keys.clear();
  free_blocks_.push_back(block);
  ++evictions_;
}

void KeyedPool::append(BlockIndex block) {
  lru_.append(blocks_, block);
  ++inactive_;
}

void KeyedPool::unlink(BlockIndex block) {
  SERVECAST_CHECK(inactive_ > 0);
  lru_.unlink(blocks_, block);
  --inactive_;
}

void KeyedPool::verify() const {
  SERVECAST_CHECK(blocks_.size() <= capacity_ && free() + inactive_ <= capacity_);
  std::uint32_t listed = 0;
  lru_.verify(blocks_, [&](BlockIndex block) {
    SERVECAST_CHECK(blocks_[block].references == 0 && !blocks_[block].keys.empty());
    SERVECAST_CHECK(++listed <= inactive_);
  });
  SERVECAST_CHECK(listed == inactive_);

  std::uint32_t referenced = 0;
  std::size_t keys = 0, indexed = 0;
  for (const Block& block : blocks_) {
    referenced += block.references > 0 ? 1 : 0;
    keys += block.keys.size();
    for (const BlockKey& key : block.keys) {
      SERVECAST_CHECK((key.kind == KeyKind::State) == (block.keys[0].kind == KeyKind::State));
    }
  }
  SERVECAST_CHECK(referenced == active());
  for (const BlockIndex block : free_blocks_) {
    SERVECAST_CHECK(blocks_[block].references == 0 && blocks_[block].keys.empty());
  }
  for (const Index* index : {&pages_, &states_}) {
    for (const auto& [name, copies] : *index) {
      SERVECAST_CHECK(!copies.empty());
      indexed += copies.size();
      for (const BlockIndex copy : copies) {
        const auto has = [&](const BlockKey& key) {
          return key.hash == name.hash && key.slot == name.slot &&
                 (key.kind == KeyKind::State) == (index == &states_);
        };
        const std::vector<BlockKey>& own = blocks_[copy].keys;
        SERVECAST_CHECK(std::count_if(own.begin(), own.end(), has) == 1);
      }
    }
  }
  SERVECAST_CHECK(indexed == keys);
}

}  // namespace servecast::cache
