// SPDX-License-Identifier: Apache-2.0
// The KV of a rank whose layers keep it in several shapes, with prefix caching (engine-vllm.md
// 10.4-10.7, 23): cache::GroupedBlocks with the leases and the names of this rank's requests.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "cache/grouped_blocks.hpp"
#include "scheduler/prefix_names.hpp"
#include "scheduler/rank_kv.hpp"
#include "scheduler/spelling.hpp"

namespace servecast::scheduler {

class GroupedKv final : public RankKv {
 public:
  // requires: config.grouped with rules.
  GroupedKv(const RankConfig& config, const KvNaming& naming, const RequestSlab& requests);

  void begin_step() override { blocks_.begin_step(); }
  void end_step() override { blocks_.end_step(); }
  Found look_up(Slot slot, std::uint32_t budget, bool alone) override;
  void admit(Slot slot, std::uint32_t chunk) override;
  std::uint32_t next_tokens(Slot slot, std::uint32_t budget) const override;
  Room room_alone(Slot slot, std::uint32_t chunk) const override;
  bool take_quietly(Slot slot) override { return blocks_.take_quietly(entries_[slot].lease); }
  bool allocate(Slot slot, std::uint32_t chunk) override;
  void finalise(Slot) override {}  // blocks get their keys when they are taken
  void preempt(Slot slot) override;
  void release(Slot slot) override;
  KvCounts counts() const override;
  std::uint32_t held(Slot slot) const override { return entries_[slot].lease.blocks(); }
  std::uint64_t need_alone(Slot slot, std::uint32_t target) const override;
  std::uint64_t limit() const override { return blocks_.capacity(); }
  std::vector<KvEvent>& events() override { return events_; }
  void verify(const std::vector<Slot>& running) const override;

 private:
  struct Entry {
    cache::GroupedLease lease;
    std::vector<std::uint64_t> names;
  };

  Entry& entry(Slot slot) {
    if (slot >= entries_.size()) entries_.resize(slot + std::size_t{1});
    return entries_[slot];
  }
  cache::KnownTokens known_tokens(Slot slot) const;
  bool fits(Slot slot, std::uint32_t chunk) const;
  void publish(Slot slot);
  void publish_removed();
  void publish_stored(Slot slot);

  const RequestSlab& requests_;
  cache::GroupedBlocks blocks_;
  PrefixNames names_;
  std::vector<Entry> entries_;  // by slot

  // With events only.
  std::vector<Spelling> blocks_of_;  // by group: the tokens of its blocks
  // Keys that were told and not taken back. A prefix that ends inside a block has a key and is no
  // event: an event tells whole blocks.
  std::set<std::pair<std::uint32_t, std::uint64_t>> told_;
  std::vector<KvEvent> events_;
};

}  // namespace servecast::scheduler
