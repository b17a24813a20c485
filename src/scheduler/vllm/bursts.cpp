// SPDX-License-Identifier: Apache-2.0
// Speculative decoding: a step of a ready request verifies its draft tokens and emits a burst,
// whose slots are reserved while the pass is composed (engine-vllm.md 8).
#include <algorithm>

#include "scheduler/vllm/scheduler.hpp"

namespace servecast::scheduler {

// Gives every request that will be ready the blocks of its longest burst, all or none; while they
// do not fit, a running request is preempted. Who remains is the decode batch, first tokens
// included. vLLM reserves these slots while it schedules, so a victim leaves the whole batch.
void VllmScheduler::reserve_bursts() {
  const std::uint32_t width = config_.speculation->width();
  const auto burst_end = [&](const Request& request) {
    return request.known() + std::min(width, request.remaining());
  };
  const auto burst_blocks = [&](const Request& request) { return blocks_for(burst_end(request)); };
  const auto verifies = [&](const Scheduled& item) {
    return item.slot != kNoSlot && item.to == requests_[item.slot].known() &&
           requests_[item.slot].remaining() > 0;
  };
  for (std::size_t i = 0; i < scheduled_.size(); ++i) {
    if (!verifies(scheduled_[i])) continue;
    const Slot slot = scheduled_[i].slot;
    if (burst_blocks(requests_[slot]) <= pool_.capacity()) continue;
    undo_scheduled(slot);
    fail_running(slot, burst_end(requests_[slot]), Reason::KvCapacity);
  }
  for (;;) {
    std::uint32_t missing = 0;
    Slot only_ready = kNoSlot;
    shape_.decode_requests = 0;
    shape_.decode_context = 0;
    for (const Scheduled& item : scheduled_) {
      if (!verifies(item)) continue;
      const Request& request = requests_[item.slot];
      missing += burst_blocks(request) - request.blocks;
      ++shape_.decode_requests;
      shape_.decode_context += request.known();
      only_ready = item.slot;
    }
    if (missing <= pool_.room()) {
      take_promised(missing);
      if (options_.events) publish_removed();
      break;
    }
    Slot least = next_victim();
    // In FIFO order not the only one that would emit: two requests that prefill in turns could
    // otherwise take each other's place for ever. In other orders somebody always gets through.
    const bool fifo =
        config_.policy == SchedulingPolicy::Fcfs && config_.preemption_mode == PreemptionMode::Fifo;
    if (fifo && shape_.decode_requests == 1 && least == only_ready) least = requests_[least].after;
    undo_scheduled(least);
    preempt(least);
  }
  shape_.decode_tokens_each = width;
  for (const Scheduled& item : scheduled_) {
    if (verifies(item)) requests_[item.slot].blocks = burst_blocks(requests_[item.slot]);
  }
}

}  // namespace servecast::scheduler
