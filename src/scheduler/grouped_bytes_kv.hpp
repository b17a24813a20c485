// SPDX-License-Identifier: Apache-2.0
// The KV of a rank whose layers keep it in several shapes, without prefix caching (engine-vllm.md
// 10.3): cache::GroupedBytes with the leases of this rank's requests.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/grouped_bytes.hpp"
#include "scheduler/rank_kv.hpp"

namespace servecast::scheduler {

class GroupedBytesKv final : public RankKv {
 public:
  // requires: config.grouped.
  GroupedBytesKv(const RankConfig& config, const RequestSlab& requests);

  void begin_step() override {}
  void end_step() override {}
  Found look_up(Slot slot, std::uint32_t budget, bool alone) override;
  void admit(Slot slot, std::uint32_t chunk) override;
  std::uint32_t next_tokens(Slot slot, std::uint32_t budget) const override;
  Room room_alone(Slot slot, std::uint32_t chunk) const override;
  bool allocate(Slot slot, std::uint32_t chunk) override;
  void finalise(Slot) override {}
  void preempt(Slot slot) override { release(slot); }
  void release(Slot slot) override;
  KvCounts counts() const override;
  std::uint32_t held(Slot) const override { return 0; }
  std::uint64_t need_alone(Slot slot, std::uint32_t target) const override;
  std::uint64_t limit() const override { return pool_.capacity_bytes(); }
  std::vector<KvEvent>& events() override { return no_events_; }
  void verify(const std::vector<Slot>& running) const override;

 private:
  const RequestSlab& requests_;
  cache::GroupedBytes pool_;
  std::vector<cache::ByteLease> leases_;  // by slot
  std::vector<KvEvent> no_events_;
};

}  // namespace servecast::scheduler
