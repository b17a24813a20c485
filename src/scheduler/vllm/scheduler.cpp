// SPDX-License-Identifier: Apache-2.0
// Composing a pass: the running requests first, then admissions (engine-vllm.md 5.1-5.6).
#include "scheduler/vllm/scheduler.hpp"

#include <algorithm>

namespace servecast::scheduler {

VllmScheduler::VllmScheduler(const RankConfig& config, const Options& options,
                             RequestSlab& requests)
    : config_(config),
      block_(config.block_tokens),
      options_(options),
      requests_(requests),
      pool_(config.blocks),
      kv_(make_rank_kv(config, {.real_hashes = options.stepping, .events = options.events},
                       requests)),
      spelling_(config.block_tokens),
      each_by_itself_(options.stepping || config.speculation.has_value() || kv_),
      cohort_(config.block_tokens),
      cohort_formed_(!each_by_itself_) {
  if (config.speculation) sampler_.emplace(*config.speculation, options.rank);
  shape_.capacity_tokens = std::uint64_t{config.blocks} * config.block_tokens;
  if (options.events) pool_.keep_evicted_names();
  if (options.demands != nullptr) {
    SERVECAST_CHECK(options.stepping && config.prefix_caching && !kv_);
    pool_.evict_by(*options.demands);
  }
}

const perf::StepShape& VllmScheduler::schedule(Time now, Admit admit) {
  if (kv_) begin_managed();
  shape_ = {.capacity_tokens = shape_.capacity_tokens};
  budget_ = config_.max_batched_tokens;
  preempted_ = false;
  progress_ = false;
  nothing_to_generate_ = false;
  scheduled_.clear();
  failed_.clear();
  rejected_.clear();
  // Here, because what ended in the pass before has been shown by now and its gaps will stay.
  if (options_.take_back && !each_by_itself_) trim(log_, requests_);

  defer_prefills_ = throttles() && defers_prefills();
  if (cohort_formed_ && !cohort_fits()) dissolve();
  if (cohort_formed_) {
    schedule_cohort();
  } else {
    schedule_each();
  }
  if (admit == Admit::Yes && !preempted_) admit_waiting(now);
  if (sampler_) reserve_bursts();
  if (!defer_prefills_ && !preempted_) prefill_capacity_bound_ = !waiting_.empty();
  return shape_;
}

// Tokens that the unfinished last request would compute after everyone in the cohort had one.
std::uint32_t VllmScheduler::tail_chunk() const {
  const Request& request = requests_[tail_];
  if (is_held_back(request)) return 0;
  const std::uint32_t budget = config_.max_batched_tokens - cohort_.size();
  const std::uint32_t prompt_left =
      request.prompt_tokens - std::min(request.computed, request.prompt_tokens);
  if (!config_.chunked_prefill && !request.split && prompt_left > budget) return 0;
  return std::min(request.known() - request.computed, budget);
}

bool VllmScheduler::cohort_fits() const {
  if (cohort_.size() > config_.max_batched_tokens) return false;
  std::uint32_t blocks = cohort_.crossings();
  if (tail_ != kNoSlot)
    blocks += blocks_for(requests_[tail_].computed + tail_chunk()) - requests_[tail_].blocks;
  return blocks <= pool_.room();
}

void VllmScheduler::schedule_cohort() {
  if (cohort_.size() > 0) {
    take_promised(cohort_.crossings());
    budget_ -= cohort_.size();
    shape_.decode_requests = cohort_.size();
    shape_.decode_context = cohort_.context();
    progress_ = true;
  }
  if (tail_ == kNoSlot) return;
  const std::uint32_t chunk = tail_chunk();
  if (chunk == 0) return;
  Request& tail = requests_[tail_];
  const std::uint32_t from = tail.computed;
  const bool grown = grow(tail, from + chunk);
  SERVECAST_CHECK(grown);
  note_scheduled(tail_, from, from + chunk);
}

void VllmScheduler::schedule_each() {
  Slot slot = running_.first();
  while (slot != kNoSlot && budget_ > 0) {
    SERVECAST_CHECK(requests_[slot].state == State::Running);
    switch (kv_ ? schedule_managed(slot) : schedule_running(slot)) {
      case Step::Done:
        slot = requests_[slot].after;  // victims are gone
        break;
      case Step::Gone:
        slot = after_gone_;
        break;
      case Step::Blocked:
        return;
    }
  }
}

VllmScheduler::Step VllmScheduler::schedule_running(Slot slot) {
  Request& request = requests_[slot];
  const std::uint32_t from = request.computed;
  // Most are in steady decode inside a block: what follows would come to this.
  if (from >= request.prompt_tokens && from + 1 == request.known() && from < request.quiet_until) {
    note_decode(slot, from);
    return Step::Done;
  }
  if (is_held_back(request)) return Step::Done;  // skipped; later ones may decode
  const std::uint32_t prompt_left = request.prompt_tokens - std::min(from, request.prompt_tokens);
  if (!config_.chunked_prefill && !request.split && prompt_left > budget_) return Step::Blocked;
  const std::uint32_t target = from + std::min(request.known() - from, budget_);
  while (!grow(request, target)) {
    if (!preempt_for(slot, target)) return Step::Gone;
  }
  note_scheduled(slot, from, target);
  return Step::Done;
}

namespace {

// Is `a` less urgent than `b`, or as urgent and later? Total: ordinals differ.
bool yields(const Request& a, const Request& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  return a.arrival != b.arrival ? a.arrival > b.arrival : a.ordinal > b.ordinal;
}

}  // namespace

Slot VllmScheduler::next_victim() const {
  if (config_.policy == SchedulingPolicy::Priority) {
    Slot least = running_.first();
    for (Slot slot = least; slot != kNoSlot; slot = requests_[slot].after) {
      if (yields(requests_[slot], requests_[least])) least = slot;
    }
    return least;
  }
  return config_.preemption_mode == PreemptionMode::Lifo ? running_.last() : running_.first();
}

// Puts a request into the waiting queue: at its end, or at the head when it comes back; by urgency
// where that counts, so that whoever comes back stands before later arrivals as urgent as it is.
void VllmScheduler::enqueue(Slot slot) {
  const Request& request = requests_[slot];
  if (config_.policy == SchedulingPolicy::Fcfs) {
    if (request.state == State::Preempted) return waiting_.push_front(requests_, slot);
    return waiting_.push_back(requests_, slot);
  }
  Slot before = waiting_.last();
  while (before != kNoSlot && yields(requests_[before], request)) before = requests_[before].before;
  waiting_.insert(requests_, slot, before == kNoSlot ? waiting_.first() : requests_[before].after);
}

// Somebody gives way to `slot`, which needs blocks up to `target` tokens. False when that is `slot`
// itself, or when it is alone and the pool is too small (decisions.md 13).
bool VllmScheduler::preempt_for(Slot slot, std::uint32_t target) {
  const Slot victim = next_victim();
  if (victim == slot) after_gone_ = requests_[slot].after;
  if (victim == slot && running_.size() == 1) {
    fail_running(slot, target, Reason::KvCapacity);
    return false;
  }
  undo_scheduled(victim);
  preempt(victim);
  return victim != slot;
}

void VllmScheduler::fail_running(Slot slot, std::uint32_t target, Reason reason) {
  requests_[slot].kv_needed = kv_need(slot, target);
  requests_[slot].reason = reason;
  running_.remove(requests_, slot);
  release_kv(slot, false);
  failed_.push_back(slot);
  progress_ = true;
}

void VllmScheduler::preempt(Slot victim) {
  SERVECAST_CHECK(!config_.rules.promises_output);
  Request& request = requests_[victim];
  preempted_ = true;
  progress_ = true;
  ++preemptions_;
  ++request.preemptions;
  if (options_.trace) {
    trace_.preempted.push_back({request.ordinal, kv_ ? kv_->held(victim) : request.blocks});
  }
  running_.remove(requests_, victim);
  if (kv_) {
    preempt_managed(victim);
  } else {
    release_blocks(request, true);
  }
  request.state = State::Preempted;
  request.computed = 0;
  enqueue(victim);
}

namespace {

// Whoever will be ready is in the decode batch, unless it gets its first token from the prefill
// itself or generates nothing (engine-vllm.md 5.8).
bool decodes(const Request& request, std::uint32_t from, std::uint32_t to) {
  if (to < request.known() || request.remaining() == 0) return false;
  return request.generated > 0 || from >= request.prompt_tokens;
}

// Prompt tokens of a step, from the first one that is computed in it to the one past the last.
struct PromptPart {
  std::uint32_t from, to;
  PromptPart(const Request& request, std::uint32_t first, std::uint32_t last)
      : from(std::min(first, request.prompt_tokens)), to(std::min(last, request.prompt_tokens)) {}
  bool empty() const { return from == to; }
  // Tokens that each token of the part attends to, summed and doubled.
  std::uint64_t attention() const { return std::uint64_t{to - from} * (std::uint64_t{from} + to); }
};

}  // namespace

void VllmScheduler::note_scheduled(Slot slot, std::uint32_t from, std::uint32_t to) {
  scheduled_.push_back({slot, from, to});
  progress_ = true;
  budget_ -= to - from;
  const Request& request = requests_[slot];
  nothing_to_generate_ |= to == request.known() && request.remaining() == 0;
  if (decodes(request, from, to)) {
    ++shape_.decode_requests;
    shape_.decode_context += to;
  }
  const PromptPart part(request, from, to);
  if (part.empty()) return;
  ++shape_.prefill_requests;
  shape_.prefill_isl += part.to;
  shape_.prefill_prefix += part.from;
  shape_.prefill_attention += part.attention();
}

// A victim that was scheduled in this very pass gives its share back.
void VllmScheduler::undo_scheduled(Slot slot) {
  const Request& request = requests_[slot];
  for (Scheduled& item : scheduled_) {
    if (item.slot != slot) continue;
    item.slot = kNoSlot;
    budget_ += item.to - item.from;
    if (decodes(request, item.from, item.to)) {
      --shape_.decode_requests;
      shape_.decode_context -= item.to;
    }
    const PromptPart part(request, item.from, item.to);
    if (part.empty()) continue;
    --shape_.prefill_requests;
    shape_.prefill_isl -= part.to;
    shape_.prefill_prefix -= part.from;
    shape_.prefill_attention -= part.attention();
  }
}

Quiet VllmScheduler::quiet(std::uint32_t passes_max) const {
  if (!cohort_formed_ || cohort_.size() == 0 || tail_ != kNoSlot) return {};
  if (!waiting_.empty() && !blocked_for_good()) return {};
  if (cohort_.size() > config_.max_batched_tokens) return {};
  if (!waiting_.empty() && blocked_ == Blocked::Throttle) {
    passes_max =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(passes_max, passes_throttled()));
  }
  const std::uint64_t due = cohort_.passes_to_due();
  const auto wanted = static_cast<std::uint32_t>(std::min<std::uint64_t>(due, passes_max));
  const bool completes = due < passes_max;
  const std::uint32_t passes = wanted + (completes ? 1 : 0);
  const std::uint64_t most = std::uint64_t{cohort_.size()} * (passes / config_.block_tokens + 1);
  if (most <= pool_.room()) return {wanted, completes};
  std::uint64_t room = pool_.room();
  for (std::uint32_t i = 0; i < passes; ++i) {
    if (cohort_.crossings(i) > room) return {i, false};
    room -= cohort_.crossings(i);
  }
  return {wanted, completes};
}

void VllmScheduler::advance(std::span<const Time> ends) {
  if (ends.empty()) return;
  if (throttles()) note_quiet_passes(ends.size());
  take_promised(static_cast<std::uint32_t>(cohort_.crossings_total(ends.size())));
  for (const Slot slot : cohort_.newcomers) requests_[slot].second_token = ends.front();
  cohort_.newcomers.clear();
  cohort_.advance(ends.size());
  if (options_.take_back) {
    for (const Time end : ends) log_.push(end);
  }
  pass_ += ends.size();
  last_end_ = ends.back();
}

void VllmScheduler::verify() const {
  if (kv_) {
    verify_managed();
    return;
  }
  pool_.verify();
  SERVECAST_CHECK(running_.size() <= config_.max_sequences);
  std::uint64_t context = 0, promised = 0;
  std::uint32_t members = 0;
  std::uint64_t blocks =
      0;  // anonymous and referenced blocks of running requests, shared ones counted per holder
  for (Slot s = running_.first(); s != kNoSlot; s = requests_[s].after) {
    const Request& request = requests_[s];
    SERVECAST_CHECK(request.state == State::Running);
    if (cohort_formed_ && s != tail_) {
      ++members;
      const auto known =
          request.known() + static_cast<std::uint32_t>(cohort_.step() - request.joined_step);
      context += known;
      blocks += blocks_for(known - 1);
      promised += blocks_for(request.final_tokens) - blocks_for(known - 1);
    } else {
      SERVECAST_CHECK(request.computed <= request.known());
      // The last token of a burst has its slot before it is computed.
      SERVECAST_CHECK(request.blocks == blocks_for(request.computed) ||
                      (sampler_ && request.blocks == blocks_for(request.known())));
      blocks += request.blocks;
      promised += blocks_for(request.final_tokens) - request.blocks;
    }
  }
  SERVECAST_CHECK(blocks >= pool_.active());
  SERVECAST_CHECK(promised == promised_);
  if (config_.rules.promises_output) SERVECAST_CHECK(promised <= pool_.room());
  if (cohort_formed_) {
    SERVECAST_CHECK(members == cohort_.size() && context == cohort_.context());
    SERVECAST_CHECK(tail_ == kNoSlot || tail_ == running_.last());
  }
  for (Slot s = waiting_.first(); s != kNoSlot; s = requests_[s].after) {
    SERVECAST_CHECK(requests_[s].state != State::Running && requests_[s].blocks == 0);
  }
  if (running_.empty()) SERVECAST_CHECK(pool_.active() == 0);
}

}  // namespace servecast::scheduler
