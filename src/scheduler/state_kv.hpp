// SPDX-License-Identifier: Apache-2.0
// The KV of a rank whose model carries recurrent state (engine-vllm.md 9): cache::StateCache with
// the leases and the names of this rank's requests.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/state_cache.hpp"
#include "scheduler/prefix_names.hpp"
#include "scheduler/rank_kv.hpp"
#include "scheduler/spelling.hpp"

namespace servecast::scheduler {

class StateKv final : public RankKv {
 public:
  // requires: config.state.
  StateKv(const RankConfig& config, const KvNaming& naming, const RequestSlab& requests);

  void begin_step() override;
  void end_step() override {}
  Found look_up(Slot slot, std::uint32_t budget, bool alone) override;
  void admit(Slot slot, std::uint32_t chunk) override;
  std::uint32_t next_tokens(Slot slot, std::uint32_t budget) const override;
  Room room_alone(Slot slot, std::uint32_t chunk) const override;
  bool allocate(Slot slot, std::uint32_t chunk) override;
  void finalise(Slot slot) override;
  void preempt(Slot slot) override;
  void release(Slot slot) override;
  KvCounts counts() const override;
  std::uint32_t held(Slot slot) const override;
  std::uint64_t need_alone(Slot slot, std::uint32_t target) const override;
  std::uint64_t limit() const override { return cache_.pool().capacity(); }
  std::vector<KvEvent>& events() override { return events_; }
  void verify(const std::vector<Slot>& running) const override;

 private:
  struct Entry {
    cache::StateLease lease;
    std::vector<std::uint64_t> names;
  };

  Entry& entry(Slot slot) {
    if (slot >= entries_.size()) entries_.resize(slot + std::size_t{1});
    return entries_[slot];
  }
  // Tokens that the next step of the request starts behind.
  std::uint32_t start_of(Slot slot) const {
    const cache::StateLease& lease = entries_[slot].lease;
    return lease.empty() ? hit_.tokens : lease.computed;
  }
  void extend_names(Slot slot);
  void publish_removed();
  void publish_stored(Slot slot, std::span<const std::uint32_t> pages);

  const RequestSlab& requests_;
  std::uint32_t block_tokens_, unit_, max_batched_tokens_;
  bool prefix_caching_, keep_events_;
  cache::StateCache cache_;
  PrefixNames names_;
  Spelling pages_;              // hashes the tokens of a page, for events
  std::vector<Entry> entries_;  // by slot
  cache::StateHit hit_;         // of the candidate looked up last
  std::vector<KvEvent> events_;
};

}  // namespace servecast::scheduler
