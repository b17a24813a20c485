// SPDX-License-Identifier: Apache-2.0
// The end of a pass: what it computed enters the tree, tokens, completions, KV event flushes
// (engine-sglang.md S6.4, S7.5, S8.1-S8.3, S11).
#include <algorithm>

#include "base/check.hpp"
#include "scheduler/sglang/scheduler.hpp"

namespace servecast::scheduler {

// One of the tokens that the request has beyond those shown.
void SglangScheduler::emit(Request& request, Time end, Outcome& outcome) {
  const std::uint32_t shown = request.generated - request.unseen;
  --request.unseen;
  if (shown == 0) {
    request.first_token = end;
  } else {
    if (shown == 1) request.second_token = end;
    if (!each_by_itself_) outcome.gaps_ns.push_back((end - request.last_token).ns);
  }
  request.last_token = end;
  if (each_by_itself_) {
    request.token_times.push_back(end);
  } else if (options_.take_back) {
    // A stretch begins with a prefill and goes on with every decode pass.
    if (!flight_.prefill.empty() || request.emitted_in == kNoPass || request.token_passes.empty()) {
      request.token_passes.emplace_back(pass_, pass_);
    } else {
      request.token_passes.back().second = pass_;
    }
  }
  request.emitted_in = pass_;
}

void SglangScheduler::show(const Row& row, std::uint32_t tokens, Outcome& outcome) const {
  if (options_.trace)
    outcome.trace.outputs.push_back({requests_[row.slot].ordinal, tokens, row.last});
}

// The request leaves the running ones; its KV has been settled.
void SglangScheduler::finish(Slot slot, Outcome& outcome) {
  Request& request = requests_[slot];
  running_.remove(requests_, slot);
  request.state = State::Ended;
  request.ending = Ending::Completed;
  request.admission_order = 0;
  outcome.ended.push_back(slot);
}

// The end of a request that was rejected or failed: no gap of it counts.
void SglangScheduler::end_unserved(Slot slot, Ending ending, Outcome& outcome) {
  Request& request = requests_[slot];
  request.state = State::Ended;
  request.ending = ending;
  request.admission_order = 0;
  if (options_.trace) outcome.trace.outputs.push_back({request.ordinal, 0, false});
  if (!each_by_itself_ && options_.take_back) gaps_of(slot, pass_, outcome.taken_back);
  outcome.ended.push_back(slot);
}

void SglangScheduler::take_trace(Outcome& outcome) {
  for (const std::vector<Row>* rows : {&flight_.prefill, &flight_.decode}) {
    for (const Row& row : *rows) trace_.scheduled.push_back({row.ordinal, row.from, row.to});
  }
  trace_.new_token_ratio = ratio_;
  outcome.trace = std::move(trace_);
  trace_ = {};
}

void SglangScheduler::complete(Time end, Outcome& outcome) {
  outcome.clear();
  if (options_.trace) take_trace(outcome);
  Flight& seen = settings_.host_loop ? before_ : flight_;
  const bool prefilled = !seen.prefill.empty();
  const bool decoded = cohort_decodes_ || !seen.decode.empty();
  if (settings_.host_loop) {
    observe_launched(seen, end, outcome);
  } else if (cohort_decodes_) {
    complete_cohort(end, outcome);
  } else {
    if (prefilled) observe_prefill(seen, end, outcome);
    if (!seen.decode.empty()) observe_decode(seen, end, outcome);
  }
  for (const Slot slot : failed_) {
    running_.remove(requests_, slot);
    kv_.release(slot);
    end_unserved(slot, Ending::Failed, outcome);
  }
  for (const Slot slot : rejected_) end_unserved(slot, Ending::Rejected, outcome);

  if (decoded && !prefilled) ++decodes_observed_;
  const bool interval = decoded && decodes_observed_ % settings_.decode_log_interval == 0;
  const bool chose_nothing = flight_.empty() && !cohort_decodes_;
  if (options_.events && (prefilled || interval || chose_nothing)) kv_.flush(outcome.events);
  if (settings_.host_loop) before_ = std::move(flight_);
  if (!each_by_itself_) {
    if (options_.take_back) decoded ? log_.push(end) : log_.push_prefill(end);
    if (decoded) {
      last_decode_ = pass_ + 1;
      last_decode_end_ = end;
    }
  }
  ++pass_;
  if (!each_by_itself_ && !cohort_formed_) form_cohort();
}

void SglangScheduler::observe_prefill(Flight& flight, Time end, Outcome& outcome) {
  for (Row& row : flight.prefill) {
    Request& request = requests_[row.slot];
    row.last = !row.chunk && request.remaining() <= row.tokens;
    if (row.last) {
      request.generated += row.tokens;
      request.unseen += row.tokens;
      kv_.finish(row.slot, request.known());
    } else {
      kv_.commit(row.slot, row.to);
    }
  }
  reserve_first_slots();
  const auto emit_one = [&](Request& request) {
    emit(request, end, outcome);
    if (sampler_) request.burst_sizes.push_back(1);
  };
  for (const bool with_token : {false, true}) {
    for (const Row& row : flight.prefill) {
      if (!row.last || (row.tokens > 0) != with_token) continue;
      if (with_token) emit_one(requests_[row.slot]);
      show(row, row.tokens, outcome);
      finish(row.slot, outcome);
    }
  }
  for (const Row& row : flight.prefill) {
    if (row.last || row.chunk) continue;
    if (row.late) {
      if (cohort_formed_) dissolve();
      continue;
    }
    Request& request = requests_[row.slot];
    ++request.generated;
    ++request.unseen;
    emit_one(request);
    show(row, 1, outcome);
    if (cohort_formed_) join(row.slot);
  }
}

// The tokens of one verification; places that it did not use go back.
std::uint32_t SglangScheduler::emit_burst(Request& request, Time end, Outcome& outcome) {
  const std::uint32_t drawn = sampler_->draw();
  const std::uint32_t tokens = std::min(drawn, request.remaining());
  outcome.accepted_tokens += drawn;
  ++outcome.decode_forwards;
  request.burst_sizes.push_back(tokens);
  request.generated += tokens;
  request.unseen += tokens;
  request.computed = request.known() - 1 + ahead_;
  const std::uint32_t pages = page_.ceiling(request.computed);
  kv_.give_back(request.blocks - pages);
  request.blocks = pages;
  for (std::uint32_t i = 0; i < tokens; ++i) emit(request, end, outcome);
  return tokens;
}

void SglangScheduler::observe_decode(Flight& flight, Time end, Outcome& outcome) {
  for (Row& row : flight.decode) {
    Request& request = requests_[row.slot];
    std::uint32_t tokens = row.tokens;
    if (sampler_) {
      tokens = emit_burst(request, end, outcome);
      row.last = request.remaining() == 0;
    } else {
      emit(request, end, outcome);
      ++outcome.accepted_tokens;
      ++outcome.decode_forwards;
    }
    show(row, tokens, outcome);
  }
  for (const Row& row : flight.decode) {
    if (!row.last) continue;
    kv_.finish(row.slot, requests_[row.slot].known());
    finish(row.slot, outcome);
  }
}

// What the pass before gave, with the overlapping host loop: prompts enter the tree, then what has
// ended, then what was canceled, then the tokens show (S8.1-5). Rows of requests that were
// retracted or have ended meanwhile give nothing.
void SglangScheduler::observe_launched(const Flight& flight, Time end, Outcome& outcome) {
  for (const Row& row : flight.prefill) {
    if (is_current(row) && !row.chunk && !row.last) kv_.commit(row.slot, row.to);
  }
  for (const std::vector<Row>* rows : {&flight.prefill, &flight.decode}) {
    for (const Row& row : *rows) {
      if (is_current(row) && row.last) kv_.finish(row.slot, requests_[row.slot].known());
    }
  }
  for (const Canceled& canceled : canceled_) kv_.finish(canceled.kv);
  canceled_.clear();
  const auto give = [&](const Row& row, bool counts) {
    if (row.tokens > 0) emit(requests_[row.slot], end, outcome);
    outcome.accepted_tokens += counts ? row.tokens : 0;
    outcome.decode_forwards += counts ? row.tokens : 0;
    show(row, row.tokens, outcome);
    if (row.last) finish(row.slot, outcome);
  };
  for (const std::uint32_t tokens : {0U, 1U}) {
    for (const Row& row : flight.prefill) {
      if (is_current(row) && row.last && row.tokens == tokens) give(row, false);
    }
  }
  for (const Row& row : flight.prefill) {
    if (is_current(row) && !row.last && row.tokens > 0) give(row, false);
  }
  for (const Row& row : flight.decode) {
    if (is_current(row) && row.tokens > 0) give(row, true);
  }
}

void SglangScheduler::complete_cohort(Time end, Outcome& outcome) {
  const auto steady = cohort_.size() - static_cast<std::uint32_t>(cohort_.newcomers.size());
  if (last_decode_ == pass_) {
    outcome.cohort_tokens = steady;
  } else {
    outcome.held_tokens = steady;
    outcome.held_since = last_decode_end_;
  }
  for (const Slot slot : cohort_.newcomers) {
    Request& request = requests_[slot];
    outcome.gaps_ns.push_back((end - request.last_token).ns);
    if (request.generated == 1) request.second_token = end;
  }
  cohort_.newcomers.clear();
  reserved_.advance(cohort_.step(), 1, cohort_.size());
  for (Slot slot = cohort_.next_due(); slot != kNoSlot; slot = cohort_.next_due()) {
    Request& request = requests_[slot];
    request.generated += static_cast<std::uint32_t>(cohort_.step() - request.joined_step);
    cohort_.leave_due(request.known());
    ++request.generated;
    request.computed = request.known() - 1 + ahead_;
    request.blocks = page_.ceiling(request.computed);
    request.last_token = end;
    if (options_.take_back) request.token_passes.back().second = pass_;
    kv_.finish(slot, request.known());
    finish(slot, outcome);
  }
  cohort_.advance(1);
}

void SglangScheduler::end_pass(Outcome& outcome) {
  if (has_work()) return;
  if (options_.events) kv_.flush(outcome.events);
  if (settings_.fidelity == Fidelity::Exact) ratio_ = init_ratio_;
}

void SglangScheduler::join(Slot slot) {
  Request& request = requests_[slot];
  request.joined_step = cohort_.step();
  request.admission_order = next_order_++;  // the running order, which a retraction changes
  cohort_.join(slot, request.known(), request.remaining(), request.admission_order);
  reserved_.join(cohort_.step(), request.remaining());
  if (request.emitted_in + 1 != last_decode_ || request.generated == 1)
    cohort_.newcomers.push_back(slot);
}

// Writes the members' counts back, so that the next pass can treat each by itself.
void SglangScheduler::dissolve() {
  for (Slot slot = running_.first(); slot != kNoSlot; slot = requests_[slot].after) {
    Request& request = requests_[slot];
    const std::uint64_t passes = cohort_.step() - request.joined_step;
    if (passes == 0) continue;
    request.generated += static_cast<std::uint32_t>(passes);
    request.computed = request.known() - 1 + ahead_;
    request.blocks = page_.ceiling(request.computed);
    request.last_token = last_decode_end_;
    request.emitted_in = last_decode_ - 1;
    if (options_.take_back) request.token_passes.back().second = last_decode_ - 1;
  }
  cohort_.newcomers.clear();
  cohort_.clear();
  reserved_.clear();
  cohort_formed_ = false;
}

// Everyone who runs, unless somebody is still to get its first token since its prefill.
void SglangScheduler::form_cohort() {
  for (Slot slot = running_.first(); slot != kNoSlot; slot = requests_[slot].after) {
    const Request& request = requests_[slot];
    if (request.generated == 0 || request.emitted_in == kNoPass) return;
  }
  for (Slot slot = running_.first(); slot != kNoSlot; slot = requests_[slot].after) {
    join(slot);
  }
  cohort_formed_ = true;
}

void SglangScheduler::cancel(Slot slot, Time now) {
  if (!frontend_ || !frontend_->cancel(slot, now)) take_out(slot);
  Request& request = requests_[slot];
  request.admission_order = 0;
  request.state = State::Ended;
  request.ending = Ending::Canceled;
}

void SglangScheduler::take_out(Slot slot) {
  const bool formed = cohort_formed_;
  if (requests_[slot].state == State::Running) {
    if (formed) dissolve();
    settle(slot);
    if (slot == chunked_) {
      chunked_ = kNoSlot;
    } else {
      running_.remove(requests_, slot);
    }
    if (formed) form_cohort();
  } else if (std::erase(unfit_, slot) == 0) {
    waiting_.remove(requests_, slot);
  }
}

// The KV of a request that is canceled: at once, or when its pass in flight has been observed.
void SglangScheduler::settle(Slot slot) {
  const Request& request = requests_[slot];
  const auto is_its = [&](const Row& row) { return row.slot == slot && is_current(row); };
  const bool in_flight =
      std::ranges::any_of(before_.prefill, is_its) || std::ranges::any_of(before_.decode, is_its);
  if (in_flight) {
    const bool lingers = settings_.fidelity == Fidelity::Exact && slot != chunked_;
    const std::uint32_t known = request.known();
    canceled_.push_back({.slot = slot,
                         .ordinal = request.ordinal,
                         .known = known,
                         .lingers = lingers,
                         .kv = kv_.leave(slot, known - request.unseen)});
  } else {
    kv_.finish(slot, request.known());
  }
}

std::vector<Time> SglangScheduler::token_times(Slot slot, std::uint64_t passes) const {
  const Request& request = requests_[slot];
  if (each_by_itself_) return request.token_times;
  std::optional<std::uint64_t> still_running;
  if (cohort_formed_ && request.state == State::Running && slot != chunked_)
    still_running = pass_ - 1;
  return log_.token_times(request.token_passes, still_running, passes);
}

}  // namespace servecast::scheduler
