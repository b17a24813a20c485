// SPDX-License-Identifier: Apache-2.0
// The end of a pass: tokens, completions, membership of the cohort (engine-vllm.md 5.8-5.9).
#include <algorithm>

#include "scheduler/vllm/scheduler.hpp"

namespace servecast::scheduler {

// One token for a request that is no member of the cohort.
inline void VllmScheduler::emit(Request& request, Time end, Outcome& outcome) {
  if (request.generated == 0) {
    request.first_token = end;
  } else {
    if (request.generated == 1) request.second_token = end;
    if (!each_by_itself_) outcome.gaps_ns.push_back((end - request.last_token).ns);
  }
  ++request.generated;
  request.last_token = end;
  request.emitted_in = pass_;
  if (each_by_itself_) {
    request.token_times.push_back(end);
  } else if (options_.take_back) {
    if (!request.token_passes.empty() && request.token_passes.back().second + 1 == pass_) {
      request.token_passes.back().second = pass_;
    } else {
      request.token_passes.emplace_back(pass_, pass_);
    }
  }
}

// The tokens of one verification. All but the last are computed; the last has its slot already.
// Blocks that the burst did not reach go back.
std::uint32_t VllmScheduler::emit_burst(const Scheduled& item, Time end, Outcome& outcome) {
  Request& request = requests_[item.slot];
  const std::uint32_t drawn = sampler_->draw();
  const std::uint32_t tokens = std::min(drawn, request.remaining());
  if (item.from >= request.prompt_tokens) {
    outcome.accepted_tokens += drawn;
    ++outcome.decode_forwards;
  }
  request.burst_sizes.push_back(tokens);
  for (std::uint32_t i = 0; i < tokens; ++i) emit(request, end, outcome);
  request.computed = request.known() - 1;
  const std::uint32_t unused = request.blocks - blocks_for(request.known());
  pool_.give_back(unused);
  promised_ += unused;
  request.blocks -= unused;
  seal_computed(request);
  return tokens;
}

// Whoever was preempted in the same pass has lost its place in scheduled_.
void VllmScheduler::note_admitted(Outcome& outcome) const {
  outcome.admitted.clear();
  for (const Scheduled& item : scheduled_) {
    if (item.slot == kNoSlot || requests_[item.slot].generated > 0) continue;
    outcome.admitted.push_back(requests_[item.slot].ordinal);
  }
}

void VllmScheduler::take_trace(Outcome& outcome) {
  for (const Scheduled& item : scheduled_) {
    if (item.slot == kNoSlot) continue;
    trace_.scheduled.push_back({requests_[item.slot].ordinal, item.from, item.to});
  }
  outcome.trace = std::move(trace_);
  trace_ = {};
}

// Requests that have nothing to generate, before everyone else.
void VllmScheduler::finish_without_tokens(Outcome& outcome) {
  for (Scheduled& item : scheduled_) {
    if (item.slot == kNoSlot) continue;
    const Request& request = requests_[item.slot];
    if (request.computed < request.known() || request.remaining() > 0) continue;
    if (options_.trace) outcome.trace.outputs.push_back({request.ordinal, 0, true});
    if (tail_ == item.slot) tail_ = kNoSlot;
    finish(item.slot, outcome);
    item.slot = kNoSlot;
  }
}

void VllmScheduler::complete(Time end, Outcome& outcome) {
  outcome.clear();
  if (kv_) kv_->end_step();
  if (options_.trace) take_trace(outcome);
  if (options_.demands != nullptr) note_admitted(outcome);
  if (nothing_to_generate_) finish_without_tokens(outcome);

  const bool formed = cohort_formed_;
  if (formed && cohort_.size() > 0) {
    outcome.cohort_tokens = cohort_.size();
    for (const Slot slot : cohort_.newcomers) requests_[slot].second_token = end;
    cohort_.newcomers.clear();
    for (Slot slot = cohort_.next_due(); slot != kNoSlot; slot = cohort_.next_due()) {
      Request& request = requests_[slot];
      request.generated += static_cast<std::uint32_t>(cohort_.step() - request.joined_step);
      request.computed = request.known();
      request.blocks = blocks_for(request.computed);
      cohort_.leave_due(request.known());
      ++request.generated;
      request.last_token = end;
      if (options_.take_back) request.token_passes.back().second = pass_;
      finish(slot, outcome);
    }
    cohort_.advance(1);
  }

  for (const Scheduled& item : scheduled_) {
    if (item.slot == kNoSlot) continue;
    Request& request = requests_[item.slot];
    if (request.computed < request.known()) {
      tail_ = item.slot;
      continue;
    }
    if (tail_ == item.slot) tail_ = kNoSlot;
    std::uint32_t tokens = 1;
    if (sampler_) {
      tokens = emit_burst(item, end, outcome);
    } else {
      emit(request, end, outcome);
    }
    const bool complete = request.remaining() == 0;
    if (options_.trace) outcome.trace.outputs.push_back({request.ordinal, tokens, complete});
    if (complete) {
      finish(item.slot, outcome);
    } else if (formed) {
      join(item.slot);
    }
  }

  for (const Slot slot : failed_) end_unserved(slot, Ending::Failed, outcome);
  for (const Slot slot : rejected_) end_unserved(slot, Ending::Rejected, outcome);

  if (options_.events) outcome.events.swap(kv_ ? kv_->events() : events_);
  last_end_ = end;
  ++pass_;
  if (each_by_itself_) return;
  if (options_.take_back) log_.push(end);
  if (!formed) {
    form_cohort();
  } else if (tail_ != kNoSlot && tail_ != running_.last()) {
    dissolve();  // overtaken while it was blocked (no chunked prefill) or held back (throttle)
  }
}

void VllmScheduler::finish(Slot slot, Outcome& outcome) {
  Request& request = requests_[slot];
  running_.remove(requests_, slot);
  release_kv(slot, request.content.outlives);
  request.state = State::Ended;
  request.ending = Ending::Completed;
  outcome.ended.push_back(slot);
}

// The end of a request that was rejected or failed: no gap of it counts.
void VllmScheduler::end_unserved(Slot slot, Ending ending, Outcome& outcome) {
  Request& request = requests_[slot];
  request.state = State::Ended;
  request.ending = ending;
  if (options_.trace) outcome.trace.outputs.push_back({request.ordinal, 0, false});
  if (!each_by_itself_ && options_.take_back) gaps_of(slot, pass_, outcome.taken_back);
  outcome.ended.push_back(slot);
}

void VllmScheduler::join(Slot slot) {
  Request& request = requests_[slot];
  request.joined_step = cohort_.step();
  cohort_.join(slot, request.known(), request.remaining(), request.admission_order);
  if (request.generated == 1) cohort_.newcomers.push_back(slot);
}

// Writes the members' counts back, so that the next pass can treat each by itself.
void VllmScheduler::dissolve() {
  for (Slot slot = running_.first(); slot != kNoSlot; slot = requests_[slot].after) {
    if (slot == tail_) continue;
    Request& request = requests_[slot];
    const std::uint64_t passes = cohort_.step() - request.joined_step;
    request.generated += static_cast<std::uint32_t>(passes);
    request.computed = request.known() - 1;
    request.blocks = blocks_for(request.computed);
    request.last_token = last_end_;
    request.emitted_in = pass_ - 1;
    if (options_.take_back) request.token_passes.back().second = pass_ - 1;
  }
  cohort_.newcomers.clear();
  cohort_.clear();
  cohort_formed_ = false;
  tail_ = kNoSlot;
}

// Members are those that got a token from the last pass; at most one other, at the end of
// the running order, may be unfinished. Otherwise the next pass goes request by request again.
void VllmScheduler::form_cohort() {
  tail_ = kNoSlot;
  for (Slot slot = running_.first(); slot != kNoSlot; slot = requests_[slot].after) {
    const Request& request = requests_[slot];
    // Not by the time of the last token: a pass of no duration ends when the one before did.
    if (request.generated > 0 && request.emitted_in + 1 == pass_) continue;
    if (slot != running_.last()) return;
    tail_ = slot;
  }
  for (Slot slot = running_.first(); slot != kNoSlot; slot = requests_[slot].after) {
    if (slot != tail_) join(slot);
  }
  cohort_formed_ = true;
}

void VllmScheduler::cancel(Slot slot, Time) {
  Request& request = requests_[slot];
  if (request.state == State::Running) {
    const bool formed = cohort_formed_;
    if (formed) dissolve();
    running_.remove(requests_, slot);
    release_kv(slot, false);
    if (formed) form_cohort();
  } else {
    waiting_.remove(requests_, slot);
    if (kv_) kv_->release(slot);
    blocked_ = Blocked::Untested;
  }
  request.state = State::Ended;
  request.ending = Ending::Canceled;
}

std::vector<Time> VllmScheduler::token_times(Slot slot, std::uint64_t passes) const {
  const Request& request = requests_[slot];
  if (each_by_itself_) return request.token_times;
  std::optional<std::uint64_t> still_running;
  if (cohort_formed_ && request.state == State::Running && slot != tail_) still_running = pass_ - 1;
  return log_.token_times(request.token_passes, still_running, passes);
}

std::vector<Slot> VllmScheduler::live() const {
  std::vector<Slot> slots;
  for (Slot s = running_.first(); s != kNoSlot; s = requests_[s].after) slots.push_back(s);
  for (Slot s = waiting_.first(); s != kNoSlot; s = requests_[s].after) slots.push_back(s);
  return slots;
}

}  // namespace servecast::scheduler
