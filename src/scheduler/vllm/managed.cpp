// SPDX-License-Identifier: Apache-2.0
// Ranks with another cache than the linear pool (rank_kv.hpp): every request by itself, with the
// same queues, budget and preemption (engine-vllm.md 5, 9, 23).
#include <algorithm>

#include "scheduler/vllm/scheduler.hpp"

namespace servecast::scheduler {
namespace {

// A state that is kept gives blocks back after the step, so a victim may find room again before
// who took its blocks has a token; when the first admitted gives way, two can go on so for ever.
// After so many preemptions in which nobody decoded, requests run one at a time until somebody
// does.
constexpr std::uint32_t kFruitlessPreemptionsMax = 256;

Reason failure_of(RankKv::Room room) {
  return room == RankKv::Room::Oversized ? Reason::OversizedPass : Reason::KvCapacity;
}

}  // namespace

void VllmScheduler::begin_managed() {
  if (shape_.decode_requests > 0) fruitless_preemptions_ = 0;  // in the pass before
  kv_->begin_step();
}

void VllmScheduler::preempt_managed(Slot victim) {
  ++fruitless_preemptions_;
  kv_->preempt(victim);
}

// As schedule_running; the cache may stop a prefill where its state is worth keeping.
VllmScheduler::Step VllmScheduler::schedule_managed(Slot slot) {
  Request& request = requests_[slot];
  const std::uint32_t from = request.computed;
  const std::uint32_t prompt_left = request.prompt_tokens - std::min(from, request.prompt_tokens);
  const bool whole = !config_.chunked_prefill && !request.split;
  if (whole && prompt_left > budget_ && !is_held_back(request)) return Step::Blocked;
  if (from >= request.prompt_tokens && from + 1 == request.known() && kv_->take_quietly(slot)) {
    note_decode(slot, from);
    return Step::Done;
  }
  const std::uint32_t chunk = kv_->next_tokens(slot, budget_);
  const RankKv::Room alone = kv_->room_alone(slot, chunk);
  if (alone != RankKv::Room::Enough) {
    after_gone_ = request.after;
    fail_running(slot, from + chunk, failure_of(alone));
    return Step::Gone;
  }
  // Skipped; later ones may still decode (engine-vllm.md 5.2).
  if (chunk == 0 || is_held_back(request)) return Step::Done;
  while (!kv_->allocate(slot, chunk)) {
    if (!preempt_for(slot, from + chunk)) return Step::Gone;
  }
  request.computed = from + chunk;
  note_scheduled(slot, from, request.computed);
  kv_->finalise(slot);
  return Step::Done;
}

// In the order of judge().
VllmScheduler::Verdict VllmScheduler::judge_managed(Slot slot) {
  Request& request = requests_[slot];
  const bool first_time = request.state == State::Waiting;
  if (config_.max_model_len && request.prompt_tokens >= *config_.max_model_len) {
    return Verdict::reject(Reason::ModelLength);
  }
  if (fruitless_preemptions_ >= kFruitlessPreemptionsMax && !running_.empty()) {
    return Verdict::wait(Blocked::Pool);
  }
  const RankKv::Found found = kv_->look_up(slot, budget_, running_.empty());
  if (found.room == RankKv::Room::Never) {
    return first_time ? Verdict::reject(Reason::PoolTooSmall)
                      : Verdict::fail(request.known(), Reason::KvCapacity);
  }
  found_cached_ = found.cached;
  const std::uint32_t left = request.known() - found.cached;
  // Grouped caches count what a preempted request had generated too (engine-vllm.md 10.6, 5.4).
  const std::uint32_t prefill =
      config_.grouped ? left
                      : request.prompt_tokens - std::min(found.cached, request.prompt_tokens);
  if (!config_.chunked_prefill && prefill > config_.max_batched_tokens) {
    if (first_time) return Verdict::reject(Reason::PromptExceedsStepBudget);
    request.split = true;
  }
  const bool whole = !config_.chunked_prefill && !request.split;
  if (whole && prefill > budget_) return Verdict::wait(Blocked::Budget);
  if (found.room == RankKv::Room::Oversized) {
    return Verdict::fail(found.cached + found.chunk, Reason::OversizedPass);
  }
  if (found.room == RankKv::Room::Wait) return Verdict::wait(Blocked::Pool);
  if (found.chunk == 0 && left > 0) return Verdict::wait(Blocked::Budget);
  if (waits_for_step(left)) return Verdict::wait(Blocked::Throttle);
  return Verdict::admit(found.chunk);
}

void VllmScheduler::admit_managed(Slot slot, std::uint32_t chunk, Time now) {
  kv_->admit(slot, chunk);
  start(slot, found_cached_, chunk, now);
  kv_->finalise(slot);
}

void VllmScheduler::release_kv(Slot slot, bool asked_again) {
  if (kv_) {
    kv_->release(slot);
    blocked_ = Blocked::Untested;
  } else {
    release_blocks(requests_[slot], asked_again);
  }
}

KvCounts VllmScheduler::kv() const {
  if (kv_) return kv_->counts();
  return {.capacity = pool_.capacity(),
          .active = pool_.active(),
          .inactive = pool_.inactive(),
          .free = pool_.free(),
          .evictions = pool_.evictions()};
}

void VllmScheduler::verify_managed() const {
  SERVECAST_CHECK(running_.size() <= config_.max_sequences && !cohort_formed_ && promised_ == 0);
  std::vector<Slot> running;
  for (Slot s = running_.first(); s != kNoSlot; s = requests_[s].after) {
    SERVECAST_CHECK(requests_[s].state == State::Running);
    SERVECAST_CHECK(requests_[s].computed <= requests_[s].known() && requests_[s].blocks == 0);
    running.push_back(s);
  }
  for (Slot s = waiting_.first(); s != kNoSlot; s = requests_[s].after) {
    SERVECAST_CHECK(requests_[s].state != State::Running && requests_[s].computed == 0);
  }
  kv_->verify(running);
}

}  // namespace servecast::scheduler
