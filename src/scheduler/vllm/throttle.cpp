// SPDX-License-Identifier: Apache-2.0
// In a group of ranks that run in lockstep a prompt on one holds up the decodes of all. With a
// prefill interval a rank that decodes computes prompts only in every so many passes of the group,
// unless such a pass left somebody waiting (engine-vllm.md 5.1.4, 5.3).
#include "scheduler/vllm/scheduler.hpp"

namespace servecast::scheduler {

// Passes from the next one on that the interval throttles.
std::uint64_t VllmScheduler::passes_throttled() const {
  const std::uint64_t interval = config_.prefill_schedule_interval;
  const std::uint64_t past = wave_step_ % interval;
  return past == 0 ? 0 : interval - past;
}

bool VllmScheduler::somebody_decodes() const {
  const auto decodes = [&](Slot slot) {
    return requests_[slot].computed >= requests_[slot].prompt_tokens;
  };
  if (cohort_formed_) return cohort_.size() > 0 || (tail_ != kNoSlot && decodes(tail_));
  for (Slot slot = running_.first(); slot != kNoSlot; slot = requests_[slot].after) {
    if (decodes(slot)) return true;
  }
  return false;
}

bool VllmScheduler::defers_prefills() const {
  return passes_throttled() > 0 && !prefill_capacity_bound_ && somebody_decodes();
}

// What quiet passes leave behind: those free to prefill found the queue as it is.
void VllmScheduler::note_quiet_passes(std::uint64_t passes) {
  if (prefill_capacity_bound_ || passes > passes_throttled()) {
    prefill_capacity_bound_ = !waiting_.empty();
  }
}

}  // namespace servecast::scheduler
