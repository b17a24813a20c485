// SPDX-License-Identifier: Apache-2.0
// Strict FIFO admission from the waiting queue (engine-vllm.md 5.3-5.5, 7).
#include <algorithm>

#include "scheduler/vllm/scheduler.hpp"

namespace servecast::scheduler {

// The output asked for, cut at the model's length (engine-vllm.md 5.8) and, where it is promised,
// at the pool (14).
std::uint32_t VllmScheduler::final_tokens(const Request& request) const {
  const std::uint32_t prompt = request.prompt_tokens;
  std::uint64_t limit = std::uint64_t{prompt} + request.output_tokens;
  if (config_.max_model_len) limit = std::min<std::uint64_t>(limit, *config_.max_model_len);
  if (config_.rules.promises_output) limit = std::min(limit, shape_.capacity_tokens);
  return std::max(prompt, static_cast<std::uint32_t>(limit));
}

bool VllmScheduler::submit(Slot slot, Time) {
  Request& request = requests_[slot];
  request.final_tokens = final_tokens(request);
  enqueue(slot);
  if (waiting_.first() == slot) {
    blocked_ = running_.size() >= config_.max_sequences ? Blocked::Seats : Blocked::Untested;
  }
  return !blocked_for_good();
}

// True while nothing but a release of blocks or seats can let the head in: in quiet passes used
// blocks only grow, and nothing becomes visible that it could hit.
bool VllmScheduler::blocked_for_good() const {
  switch (blocked_) {
    case Blocked::Untested:
      return false;
    case Blocked::Seats:
      return true;
    // Without chunked prefill an eviction shrinks the head's hit, which can turn waiting into
    // rejection.
    case Blocked::Pool:
      return config_.chunked_prefill;
    // Sticky only if steady decode alone uses up the budget.
    case Blocked::Budget:
      return config_.chunked_prefill && cohort_.size() == config_.max_batched_tokens;
    // Until the throttle opens; quiet() looks when.
    case Blocked::Throttle:
      return config_.chunked_prefill;
  }
  return false;
}

// Fills hits_ with the resident blocks from the first one on, and counts the active ones among
// them.
void VllmScheduler::look_up(const Request& request) {
  hits_.clear();
  hits_active_ = 0;
  if (!config_.prefix_caching) return;
  std::uint32_t full = block_.quotient(request.known());
  // Nobody else has the blocks past the shareable part; the request itself has after a preemption.
  if (!options_.stepping && request.preemptions == 0) {
    full = std::min(full, block_.quotient(request.content.shareable_tokens));
  }
  std::uint64_t parent = 0;
  for (std::uint32_t block = 0; block < full; ++block) {
    parent = name_of(request, block, parent);
    const cache::BlockIndex hit = pool_.find(parent);
    if (hit == cache::kNoBlock) break;
    hits_.push_back(hit);
    hits_active_ += pool_.is_active(hit) ? 1 : 0;
  }
}

void VllmScheduler::reject(Slot slot, Reason reason) {
  waiting_.remove(requests_, slot);
  Request& request = requests_[slot];
  request.reason = reason;
  request.kv_needed = kv_need(slot, request.known());
  if (kv_) kv_->release(slot);
  rejected_.push_back(slot);
  progress_ = true;
  if (options_.trace) trace_.rejected.push_back(request.ordinal);
}

// The end of a preempted request that has grown beyond the pool, or of one whose next pass cannot
// fit into it.
void VllmScheduler::fail_waiting(Slot slot, std::uint32_t target, Reason reason) {
  waiting_.remove(requests_, slot);
  Request& request = requests_[slot];
  request.reason = reason;
  request.kv_needed = kv_need(slot, target);
  SERVECAST_CHECK(request.kv_needed > kv_limit());
  if (kv_) kv_->release(slot);
  failed_.push_back(slot);
  progress_ = true;
}

// The hashes of the full prompt blocks, once per request (reference mode).
void VllmScheduler::spell_prompt(Request& request) {
  if (!options_.stepping || !config_.prefix_caching || !request.prompt_names.empty()) return;
  std::uint64_t parent = 0;
  for (std::uint32_t block = 0; block < request.prompt_tokens / config_.block_tokens; ++block) {
    parent = spelling_.hash(request.content, request.prompt_tokens, block, parent).prefix;
    request.prompt_names.push_back(parent);
  }
}

void VllmScheduler::admit_waiting(Time now) {
  blocked_ = Blocked::Untested;
  while (!waiting_.empty()) {
    if (running_.size() >= config_.max_sequences) {
      blocked_ = Blocked::Seats;
      return;
    }
    const Slot slot = waiting_.first();
    const Verdict verdict = kv_ ? judge_managed(slot) : judge(requests_[slot]);
    switch (verdict.kind) {
      case Verdict::Kind::Admit:
        if (kv_) {
          admit_managed(slot, verdict.chunk, now);
        } else {
          admit(slot, verdict.chunk, now);
        }
        if (verdict.chunk == 0 && budget_ == 0) return;
        break;
      case Verdict::Kind::Wait:
        blocked_ = verdict.blocked;
        return;
      case Verdict::Kind::Reject:
        reject(slot, verdict.reason);
        break;
      case Verdict::Kind::Fail:
        fail_waiting(slot, verdict.chunk, verdict.reason);
        break;
    }
  }
}

// What becomes of the head of the queue in this pass; hits_ holds the blocks that it can reuse.
VllmScheduler::Verdict VllmScheduler::judge(Request& request) {
  const std::uint32_t known = request.known();
  const bool first_time = request.state == State::Waiting;
  if (config_.max_model_len && request.prompt_tokens >= *config_.max_model_len) {
    return Verdict::reject(Reason::ModelLength);
  }
  if (first_time && blocks_for(known) > pool_.capacity()) {
    return Verdict::reject(Reason::PoolTooSmall);
  }
  if (config_.rules.promises_output && request.prompt_tokens >= shape_.capacity_tokens) {
    return Verdict::reject(Reason::PoolTooSmall);
  }

  spell_prompt(request);
  look_up(request);
  if (config_.rules.recomputes_last &&
      request.remaining() > 0) {  // logits need at least one computed token (engine-vllm.md 7.3)
    std::uint32_t usable = block_.quotient(known - 1);
    if (hits_.size() < usable) usable = static_cast<std::uint32_t>(hits_.size());
    if (config_.speculation && config_.speculation->needs_last_block && usable > 0) --usable;
    hits_.resize(usable);
    hits_active_ = std::min(hits_active_, usable);
  }
  const std::uint32_t cached = cached_tokens();
  const std::uint32_t prompt_left = request.prompt_tokens - std::min(cached, request.prompt_tokens);
  if (!config_.chunked_prefill && prompt_left > config_.max_batched_tokens) {
    if (first_time) return Verdict::reject(Reason::PromptExceedsStepBudget);
    request.split = true;
  }

  // The whole known sequence must fit, even if only a chunk is computed now; with promises the
  // whole output too, beside what the running requests will still take. Inactive hits take room
  // too.
  const bool promises = config_.rules.promises_output;
  const std::uint32_t wanted = blocks_for(promises ? request.final_tokens : known);
  if (wanted - hits_active_ > pool_.room() - (promises ? promised_ : 0)) {
    // With nothing running it fitted only beside a request that shared blocks (decisions.md 13).
    return running_.empty() ? Verdict::fail(known, Reason::KvCapacity)
                            : Verdict::wait(Blocked::Pool);
  }
  const bool whole = !config_.chunked_prefill && !request.split;
  const std::uint32_t chunk = std::min(known - cached, budget_);
  if ((whole && prompt_left > budget_) || (chunk == 0 && known > cached)) {
    return Verdict::wait(Blocked::Budget);
  }
  // The test above counts active hits before the cap on hits, so it is one block too generous when
  // the active one was capped off. A waiting candidate never preempts (decisions.md 16): it waits.
  const auto hit_blocks = static_cast<std::uint32_t>(hits_.size());
  if (!pool_.can_reserve(hits_, blocks_for(cached + chunk) - hit_blocks)) {
    return Verdict::wait(Blocked::Pool);
  }
  if (waits_for_step(known - cached)) return Verdict::wait(Blocked::Throttle);
  return Verdict::admit(chunk);
}

void VllmScheduler::admit(Slot slot, std::uint32_t chunk, Time now) {
  Request& request = requests_[slot];
  const auto hit_blocks = static_cast<std::uint32_t>(hits_.size());
  const std::uint32_t cached = cached_tokens();
  const std::uint32_t fresh = blocks_for(cached + chunk) - hit_blocks;
  const bool reserved = pool_.reserve(hits_, fresh);
  SERVECAST_CHECK(reserved);
  if (options_.events) publish_removed();

  request.sealed.assign(hits_.begin(), hits_.end());
  request.blocks = hit_blocks + fresh;
  promised_ += blocks_for(request.final_tokens) - request.blocks;
  start(slot, cached, chunk, now);
  seal_computed(request);
}

// From the queue to the running requests, with the tokens that it computes in this pass.
void VllmScheduler::start(Slot slot, std::uint32_t cached, std::uint32_t chunk, Time now) {
  Request& request = requests_[slot];
  waiting_.remove(requests_, slot);
  running_.push_back(requests_, slot);
  request.state = State::Running;
  request.admission_order = next_order_++;
  request.computed = cached + chunk;
  prefix_queried_ += request.known();
  prefix_hits_ += cached;
  const std::uint32_t reused = std::min(cached, request.prompt_tokens);
  if (request.admissions++ == 0) {
    request.first_admit = now;
    request.reused_first = reused;
  }
  request.reused_max = std::max(request.reused_max, reused);
  if (options_.history) request.history.push_back({now, reused});
  if (options_.trace) trace_.admitted.push_back({request.ordinal, cached});
  note_scheduled(slot, cached, request.computed);
}

}  // namespace servecast::scheduler
