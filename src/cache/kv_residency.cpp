// SPDX-License-Identifier: Apache-2.0
#include "cache/kv_residency.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace servecast::cache {
namespace {

KvPlace place_of(std::uint32_t rank, const std::optional<std::string>& medium,
                 std::optional<std::uint32_t> group) {
  return {rank, medium.value_or(std::string(kGpuMedium)), group.value_or(0)};
}

}  // namespace

void KvResidency::apply(const KvBatch& batch) {
  const std::uint32_t rank = batch.data_parallel_rank.value_or(0);
  for (const KvWireEvent& event : batch.events)
    std::visit([&](const auto& one) { apply(rank, one); }, event);
}

void KvResidency::apply(std::uint32_t rank, const BlockStored& event) {
  ++counts_.stored_events;
  // A parent in another group or medium is known: windows and tiers keep parts of a chain.
  if (event.parent_block_hash && !holds_anywhere(rank, *event.parent_block_hash))
    ++counts_.orphan_stores;
  Blocks& blocks = blocks_[place_of(rank, event.medium, event.group_idx)];
  std::optional<KvHash> parent = event.parent_block_hash;
  for (const KvHash& hash : event.block_hashes) {
    const bool is_new = blocks.try_emplace(hash, Block{std::move(parent), stores_}).second;
    ++(is_new ? counts_.stored_blocks : counts_.stored_again);
    ++stores_;
    parent = hash;
  }
}

void KvResidency::apply(std::uint32_t rank, const BlockRemoved& event) {
  ++counts_.removed_events;
  const auto place = blocks_.find(place_of(rank, event.medium, event.group_idx));
  for (const KvHash& hash : event.block_hashes) {
    const bool was_there = place != blocks_.end() && place->second.erase(hash) == 1;
    ++(was_there ? counts_.removed_blocks : counts_.unknown_removals);
  }
}

void KvResidency::apply(std::uint32_t rank, const AllBlocksCleared&) {
  ++counts_.cleared_events;
  std::erase_if(blocks_, [&](const auto& entry) { return entry.first.rank == rank; });
}

bool KvResidency::holds_anywhere(std::uint32_t rank, const KvHash& hash) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const auto& entry) {
    return entry.first.rank == rank && entry.second.contains(hash);
  });
}

bool KvResidency::holds(const KvPlace& place, const KvHash& hash) const {
  const auto blocks = blocks_.find(place);
  return blocks != blocks_.end() && blocks->second.contains(hash);
}

std::size_t KvResidency::prefix(const KvPlace& where, std::span<const std::uint32_t> groups,
                                std::span<const KvHash> hashes) const {
  std::size_t shortest = groups.empty() ? 0 : hashes.size();
  for (const std::uint32_t group : groups) {
    const auto blocks = blocks_.find(KvPlace{where.rank, where.medium, group});
    if (blocks == blocks_.end()) return 0;
    std::size_t length = 0;
    for (std::optional<KvHash> parent; length < shortest; ++length) {
      const auto block = blocks->second.find(hashes[length]);
      if (block == blocks->second.end() || block->second.parent != parent) break;
      parent = hashes[length];
    }
    shortest = length;
  }
  return shortest;
}

std::vector<KvPlace> KvResidency::places() const {
  std::vector<KvPlace> places;
  for (const auto& [place, blocks] : blocks_) {
    if (!blocks.empty()) places.push_back(place);
  }
  return places;
}

std::size_t KvResidency::size(const KvPlace& place) const {
  const auto blocks = blocks_.find(place);
  return blocks == blocks_.end() ? 0 : blocks->second.size();
}

std::vector<KvResidency::Resident> KvResidency::resident(const KvPlace& place) const {
  const auto blocks = blocks_.find(place);
  if (blocks == blocks_.end()) return {};
  std::vector<const Blocks::value_type*> order;
  for (const auto& entry : blocks->second) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const auto* a, const auto* b) { return a->second.since < b->second.since; });
  std::vector<Resident> list;
  for (const auto* entry : order) list.push_back({entry->first, entry->second.parent});
  return list;
}

std::size_t KvResidency::orphans() const {
  std::size_t orphans = 0;
  for (auto rank_first = blocks_.begin(); rank_first != blocks_.end();) {
    const std::uint32_t rank = rank_first->first.rank;
    const auto rank_end = std::find_if(rank_first, blocks_.end(),
                                       [&](const auto& entry) { return entry.first.rank != rank; });
    // Down from the root, so that a chain that bites its own tail is aside too.
    std::unordered_multimap<KvHash, const KvHash*> children;
    std::unordered_set<KvHash> attached;
    std::vector<const KvHash*> open;
    for (auto place = rank_first; place != rank_end; ++place) {
      for (const auto& [hash, block] : place->second) {
        if (block.parent) {
          children.emplace(*block.parent, &hash);
        } else if (attached.insert(hash).second) {
          open.push_back(&hash);
        }
      }
    }
    while (!open.empty()) {
      const auto [first, end] = children.equal_range(*open.back());
      open.pop_back();
      for (auto child = first; child != end; ++child) {
        if (attached.insert(*child->second).second) open.push_back(child->second);
      }
    }
    for (auto place = rank_first; place != rank_end; ++place) {
      orphans += static_cast<std::size_t>(
          std::count_if(place->second.begin(), place->second.end(),
                        [&](const auto& entry) { return !attached.contains(entry.first); }));
    }
    rank_first = rank_end;
  }
  return orphans;
}

}  // namespace servecast::cache
