// SPDX-License-Identifier: Apache-2.0
// Evicting by what is asked for next (engine-vllm.md 15). The LRU list goes on beside it. Nothing
// here is asked block by block where the policy is LRU.
#include "cache/block_pool.hpp"

namespace servecast::cache {

void BlockPool::evict_by(const Demands& demands) {
  SERVECAST_CHECK(free_ == capacity_ && entries_.empty());
  clairvoyant_ = std::make_unique<Clairvoyant>(demands);
}

Clairvoyant::Content BlockPool::content_of(BlockIndex block) const {
  const Entry& entry = entries_[block];
  return {.name = entry.name, .is_redundant = entry.chain == kDuplicate || entry.copy != kNoBlock};
}

// About to be referenced.
void BlockPool::note_reserved(std::span<const BlockIndex> prefix) {
  for (const BlockIndex block : prefix) {
    if (!is_active(block)) clairvoyant_->remove(block);
  }
}

// Each block has lost a reference.
void BlockPool::note_released(std::span<const BlockIndex> prefix) {
  for (auto block = prefix.rbegin(); block != prefix.rend(); ++block) {
    if (!is_active(*block)) clairvoyant_->add(*block, content_of(*block));
  }
}

// Lists the inactive copies of a name where they belong now.
void BlockPool::note_copies(std::uint64_t name) {
  for (BlockIndex copy = find(name); copy != kNoBlock; copy = entries_[copy].copy) {
    if (entries_[copy].references == 0) clairvoyant_->place(copy, content_of(copy));
  }
}

void BlockPool::evict_farthest() {
  clairvoyant_->update([this](std::uint64_t name) { note_copies(name); });
  const BlockIndex block = clairvoyant_->first();
  const std::uint64_t name = entries_[block].name;
  clairvoyant_->remove(block);
  lru_.unlink(entries_, block);
  if (!index_erase(block)) {
    note_copies(name);
  } else if (keep_evicted_) {
    evicted_names_.push_back(name);
  }
  free_entry(block);
}

}  // namespace servecast::cache
