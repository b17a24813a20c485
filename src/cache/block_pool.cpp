// SPDX-License-Identifier: Apache-2.0
#include "cache/block_pool.hpp"

#include <algorithm>

namespace servecast::cache {

BlockPool::BlockPool(std::uint32_t capacity)
    : capacity_(capacity), free_(capacity), heads_(16, kNoBlock) {}

BlockIndex BlockPool::find(std::uint64_t name) const {
  BlockIndex at = heads_[slot(name)];
  while (at != kNoBlock && entries_[at].name != name) at = entries_[at].chain;
  return at;
}

BlockIndex BlockPool::new_entry(std::uint64_t name, std::uint32_t references) {
  BlockIndex block = free_entries_;
  if (block == kNoBlock) {
    block = static_cast<BlockIndex>(entries_.size());
    entries_.emplace_back();
  } else {
    free_entries_ = entries_[block].younger;
  }
  entries_[block] = {name, references, kNoBlock, kNoBlock, kNoBlock, kNoBlock, kNoBlock};
  return block;
}

void BlockPool::free_entry(BlockIndex block) {
  entries_[block].references = kFree;
  entries_[block].younger = free_entries_;
  free_entries_ = block;
}

void BlockPool::grow_index() {
  std::vector<BlockIndex> old(heads_.size() * 2, kNoBlock);
  old.swap(heads_);
  for (BlockIndex at : old) {
    while (at != kNoBlock) {
      const BlockIndex next = entries_[at].chain;
      BlockIndex& head = heads_[slot(entries_[at].name)];
      entries_[at].chain = head;
      head = at;
      at = next;
    }
  }
}

bool BlockPool::index_insert(BlockIndex block) {
  Entry& entry = entries_[block];
  const BlockIndex primary = find(entry.name);
  if (primary != kNoBlock) {
    BlockIndex& last = entries_[primary].previous;
    entry.previous = last == kNoBlock ? primary : last;
    entries_[entry.previous].copy = block;
    entry.chain = kDuplicate;
    last = block;
    if (clairvoyant_) note_copies(entry.name);
    return false;
  }
  if (names_ == heads_.size()) grow_index();
  ++names_;
  BlockIndex& head = heads_[slot(entry.name)];
  entry.chain = head;
  head = block;
  return true;
}

bool BlockPool::index_erase(BlockIndex block) {
  const Entry& entry = entries_[block];
  if (entry.chain == kDuplicate) {
    entries_[entry.previous].copy = entry.copy;
    if (entry.copy != kNoBlock) {
      entries_[entry.copy].previous = entry.previous;
    } else {
      const BlockIndex primary = find(entry.name);
      entries_[primary].previous = entry.previous == primary ? kNoBlock : entry.previous;
    }
    return false;
  }
  BlockIndex* link = &heads_[slot(entry.name)];
  while (*link != block) link = &entries_[*link].chain;
  if (entry.copy != kNoBlock) {
    Entry& next = entries_[entry.copy];
    next.chain = entry.chain;
    next.previous = entry.previous == entry.copy ? kNoBlock : entry.previous;
    *link = entry.copy;
    return false;
  }
  *link = entry.chain;
  --names_;
  return true;
}

void BlockPool::take_evicting(std::uint32_t count) {
  SERVECAST_CHECK(count <= room());
  std::uint32_t missing = count - free_;
  free_ = 0;
  inactive_ -= missing;
  evictions_ += missing;
  if (clairvoyant_) {
    for (; missing > 0; --missing) evict_farthest();
    return;
  }
  while (missing > 0) {
    const BlockIndex block = lru_.oldest();
    Entry& entry = entries_[block];
    if (entry.references == kSpan) {
      const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(missing, entry.name));
      entry.name -= part;
      missing -= part;
      if (entry.name > 0) break;
      lru_.unlink(entries_, block);
    } else {
      --missing;
      lru_.unlink(entries_, block);
      if (index_erase(block) && keep_evicted_) evicted_names_.push_back(entry.name);
    }
    free_entry(block);
  }
}

bool BlockPool::can_reserve(std::span<const BlockIndex> prefix, std::uint32_t fresh) const {
  std::uint32_t pinned = 0;  // inactive blocks of the prefix cannot be evicted for the fresh ones
  for (const BlockIndex block : prefix) pinned += is_active(block) ? 0 : 1;
  return fresh <= room() - pinned;
}

bool BlockPool::reserve(std::span<const BlockIndex> prefix, std::uint32_t fresh) {
  if (!can_reserve(prefix, fresh)) return false;
  if (clairvoyant_) note_reserved(prefix);
  for (const BlockIndex block : prefix) {
    Entry& entry = entries_[block];
    if (entry.references++ == 0) {
      lru_.unlink(entries_, block);
      --inactive_;
    }
  }
  take(fresh);
  return true;
}

BlockPool::Sealed BlockPool::seal(std::uint64_t name) {
  const BlockIndex block = new_entry(name, 1);
  return {block, index_insert(block)};
}

void BlockPool::release(std::span<const BlockIndex> prefix) {
  for (auto block = prefix.rbegin(); block != prefix.rend(); ++block) {
    Entry& entry = entries_[*block];
    SERVECAST_DCHECK(entry.references > 0 && entry.references < kFree);
    if (--entry.references > 0) continue;
    lru_.append(entries_, *block);
    ++inactive_;
  }
  if (clairvoyant_) note_released(prefix);
}

void BlockPool::retire(std::uint64_t name) {
  const BlockIndex block = new_entry(name, 0);
  index_insert(block);
  lru_.append(entries_, block);
  ++inactive_;
}

void BlockPool::retire_unnamed(std::uint32_t count) {
  if (count == 0) return;
  inactive_ += count;
  const BlockIndex youngest = lru_.youngest();
  if (youngest != kNoBlock && entries_[youngest].references == kSpan) {
    entries_[youngest].name += count;  // neighbours that nobody can tell apart
    return;
  }
  lru_.append(entries_, new_entry(count, kSpan));
}

void BlockPool::verify() const {
  SERVECAST_CHECK(free_ + inactive_ <= capacity_);
  std::uint32_t listed = 0;
  lru_.verify(entries_, [&](BlockIndex block) {
    const Entry& entry = entries_[block];
    SERVECAST_CHECK(entry.references == 0 || (entry.references == kSpan && entry.name > 0));
    listed += entry.references == kSpan ? static_cast<std::uint32_t>(entry.name) : 1;
  });
  SERVECAST_CHECK(listed == inactive_);
  SERVECAST_CHECK(!clairvoyant_ || clairvoyant_->size() == inactive_);
  std::uint32_t primaries = 0, indexed = 0, named = 0;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    for (BlockIndex at = heads_[i]; at != kNoBlock; at = entries_[at].chain) {
      SERVECAST_CHECK(slot(entries_[at].name) == i && entries_[at].chain != kDuplicate);
      ++primaries;
      for (BlockIndex copy = at; copy != kNoBlock; copy = entries_[copy].copy) {
        SERVECAST_CHECK(entries_[copy].name == entries_[at].name);
        SERVECAST_CHECK(copy == at || entries_[copy].chain == kDuplicate);
        ++indexed;
      }
    }
  }
  for (const Entry& entry : entries_) named += entry.references < kFree ? 1 : 0;
  SERVECAST_CHECK(primaries == names_ && indexed == named);
}

}  // namespace servecast::cache
