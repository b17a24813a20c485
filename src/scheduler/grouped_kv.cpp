// SPDX-License-Identifier: Apache-2.0
#include "scheduler/grouped_kv.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace servecast::scheduler {

GroupedKv::GroupedKv(const RankConfig& config, const KvNaming& naming, const RequestSlab& requests)
    : requests_(requests),
      blocks_(*config.grouped->rules),
      names_(config.grouped->rules->unit, naming.real_hashes) {
  if (!naming.events) return;
  blocks_.keep_changes();
  for (const cache::GroupRule& rule : blocks_.rules().groups) blocks_of_.emplace_back(rule.block);
}

cache::KnownTokens GroupedKv::known_tokens(Slot slot) const {
  const Request& request = requests_[slot];
  return {
      .hashes = entries_[slot].names, .prompt = request.prompt_tokens, .known = request.known()};
}

// All known tokens first, then those of this pass; both must fit (engine-vllm.md 23).
bool GroupedKv::fits(Slot slot, std::uint32_t chunk) const {
  const cache::GroupedLease& lease = entries_[slot].lease;
  const cache::KnownTokens tokens = known_tokens(slot);
  if (blocks_.full_need(lease, tokens) > blocks_.available()) return false;
  return chunk == 0 || blocks_.need(lease, tokens, chunk) <= blocks_.available();
}

RankKv::Found GroupedKv::look_up(Slot slot, std::uint32_t budget, bool alone) {
  Entry& own = entry(slot);
  names_.extend(own.names, requests_[slot]);
  const cache::KnownTokens tokens = known_tokens(slot);
  if (blocks_.cold_need(tokens) > blocks_.capacity()) return {.room = Room::Never};
  blocks_.look_up(own.lease, tokens);
  std::uint32_t chunk = blocks_.next_tokens(own.lease, tokens, budget);
  bool enough = fits(slot, chunk);
  if (!enough && alone && own.lease.hit.tokens > 0) {
    blocks_.drop_hit(own.lease);
    chunk = blocks_.next_tokens(own.lease, tokens, budget);
    enough = fits(slot, chunk);
  }
  return {
      .cached = own.lease.hit.tokens, .chunk = chunk, .room = enough ? Room::Enough : Room::Wait};
}

void GroupedKv::admit(Slot slot, std::uint32_t chunk) {
  blocks_.admit(entries_[slot].lease, known_tokens(slot), chunk);
  publish(slot);
}

std::uint32_t GroupedKv::next_tokens(Slot slot, std::uint32_t budget) const {
  return blocks_.next_tokens(entries_[slot].lease, known_tokens(slot), budget);
}

RankKv::Room GroupedKv::room_alone(Slot slot, std::uint32_t chunk) const {
  if (chunk == 0) return Room::Enough;
  const bool fits = blocks_.fits_alone(entries_[slot].lease, known_tokens(slot), chunk);
  return fits ? Room::Enough : Room::Never;
}

bool GroupedKv::allocate(Slot slot, std::uint32_t chunk) {
  Entry& own = entries_[slot];
  names_.extend(own.names, requests_[slot]);
  if (!blocks_.allocate(own.lease, known_tokens(slot), chunk)) return false;
  publish(slot);
  return true;
}

void GroupedKv::preempt(Slot slot) {
  blocks_.preempt(entries_[slot].lease);
  publish(slot);
}

void GroupedKv::release(Slot slot) {
  Entry& own = entry(slot);
  blocks_.release(own.lease);
  own.names.clear();
}

// What the call before has changed. What it evicted went before anything was stored.
void GroupedKv::publish(Slot slot) {
  if (blocks_of_.empty()) return;
  publish_removed();
  publish_stored(slot);
}

void GroupedKv::publish_removed() {
  const std::size_t first = events_.size();
  for (const cache::GroupKey& key : blocks_.gone_keys()) {
    if (told_.erase({key.group, key.hash}) == 0) continue;
    if (events_.size() == first || events_.back().group != key.group)
      events_.push_back({.group = key.group, .blocks = {}});
    events_.back().blocks.push_back({key.hash, 0});
  }
  blocks_.gone_keys().clear();
}

// One event for each run of blocks that follow each other in a group.
void GroupedKv::publish_stored(Slot slot) {
  const Request& request = requests_[slot];
  const std::vector<std::uint64_t>& names = entries_[slot].names;
  const std::uint32_t unit = blocks_.rules().unit;
  const auto name_at = [&](std::uint64_t boundary) { return names[boundary / unit - 1]; };
  const cache::GroupedBlocks::NewKey* before = nullptr;
  for (const cache::GroupedBlocks::NewKey& key : blocks_.new_keys()) {
    const std::uint32_t block = blocks_.rules().groups[key.group].block;
    if (key.boundary % block != 0) continue;
    const std::uint64_t start = key.boundary - block;
    const bool follows =
        before != nullptr && before->group == key.group && before->boundary == start;
    if (!follows) {
      events_.push_back({.stored = true,
                         .group = key.group,
                         .has_parent = start > 0,
                         .parent = start > 0 ? name_at(start) : 0,
                         .blocks = {}});
    }
    Spelling& spelling = blocks_of_[key.group];
    const auto position = static_cast<std::uint32_t>(start / block);
    const std::uint64_t tokens_hash =
        spelling.hash(request.content, request.prompt_tokens, position, 0).local;
    events_.back().add({name_at(key.boundary), tokens_hash}, spelling.tokens());
    told_.emplace(key.group, name_at(key.boundary));
    before = &key;
  }
  blocks_.new_keys().clear();
}

KvCounts GroupedKv::counts() const {
  const cache::GroupedPool& pool = blocks_.pool();
  const cache::GroupedUsage usage = blocks_.usage();
  return {.capacity = pool.capacity(),
          .active = pool.held(),
          .inactive = pool.cached(),
          .free = pool.free(),
          .evictions = pool.evictions(),
          .used_bytes = usage.used_bytes,
          .cached_bytes = usage.cached_bytes,
          .capacity_bytes = usage.capacity_bytes};
}

std::uint64_t GroupedKv::need_alone(Slot slot, std::uint32_t target) const {
  const Request& request = requests_[slot];
  std::uint64_t needed = blocks_.cold_need({.prompt = request.prompt_tokens, .known = target});
  // Chunks of attention that no block divides can take one more than vLLM's estimate says.
  if (slot < entries_.size() && entries_[slot].lease.admitted && target > request.computed) {
    needed = std::max(needed, blocks_.need_alone(entries_[slot].lease, known_tokens(slot),
                                                 target - request.computed));
  }
  return needed;
}

void GroupedKv::verify(const std::vector<Slot>& running) const {
  std::vector<const cache::GroupedLease*> leases;
  std::vector<bool> runs(entries_.size());
  for (const Slot slot : running) {
    runs[slot] = true;
    leases.push_back(&entries_[slot].lease);
    SERVECAST_CHECK(entries_[slot].lease.computed == requests_[slot].computed);
  }
  for (std::size_t slot = 0; slot < entries_.size(); ++slot) {
    if (!runs[slot]) SERVECAST_CHECK(!entries_[slot].lease.admitted);
  }
  blocks_.verify(leases);
  for (const auto& [group, hash] : told_) {
    SERVECAST_CHECK(blocks_.pool().find({.hash = hash, .group = group}) != cache::kNoBlock);
  }
}

}  // namespace servecast::scheduler
