// SPDX-License-Identifier: Apache-2.0
// Which prompts are computed next (engine-sglang.md S7.3, decisions.md 23, 24, 30).
#include <algorithm>

#include "base/check.hpp"
#include "scheduler/sglang/scheduler.hpp"

namespace servecast::scheduler {

// Output that running requests may still ask memory for.
std::uint64_t SglangScheduler::reserved() const {
  if (cohort_formed_) return reserved_.tokens();
  std::uint64_t tokens = 0;
  for (Slot s = running_.first(); s != kNoSlot; s = requests_[s].after)
    tokens += std::min(requests_[s].remaining(), settings_.clip_max_new_tokens);
  return tokens;
}

double SglangScheduler::total_budget(std::uint64_t room, std::uint64_t reserved,
                                     double ratio) const {
  return static_cast<double>(room * page_.divisor()) - static_cast<double>(reserved) * ratio;
}

SglangScheduler::Budget SglangScheduler::budget() const {
  const std::uint32_t decoding = settings_.mixed_chunk ? running_.size() : 0;
  const std::uint32_t seats = config_.max_sequences - running_.size();
  const auto left = [&](std::uint32_t limit) { return limit - std::min(limit, decoding); };
  return {.total = total_budget(kv_.room(), reserved(), ratio_),
          .input = left(settings_.max_prefill_tokens),
          .chunk = left(settings_.chunked_prefill_size),
          .seats = seats - std::min(seats, lingering()),
          .nobody_runs = running_.empty() && chunked_ == kNoSlot};
}

// What the request would compute in this pass; nothing when no whole page of its prompt has room
// in it. `first`: it has no pages yet.
std::optional<SglangScheduler::Candidate> SglangScheduler::fit(Slot slot, const Budget& budget,
                                                               bool first) const {
  const Request& request = requests_[slot];
  Candidate candidate;
  candidate.prefix = request.computed;
  if (first) {
    // The last token is computed again for what follows it.
    const std::uint32_t cap = request.known() - (request.remaining() > 0 ? 1 : 0);
    candidate.prefix = kv_.find(slot, cap).pages * page_.divisor();
  }
  const std::uint32_t extend = request.known() - candidate.prefix;
  const auto in_pages = [&](std::uint32_t tokens) {
    return std::uint64_t{page_.ceiling(tokens)} * page_.divisor();
  };
  candidate.take = extend;
  if (in_pages(extend) > budget.chunk) {
    const std::uint32_t chunk =
        page_.quotient(static_cast<std::uint32_t>(budget.chunk)) * page_.divisor();
    if (chunk == 0) return std::nullopt;
    candidate.take = std::min(chunk, extend);
  }
  candidate.charge = in_pages(candidate.take);
  if (candidate.take == extend)
    candidate.output = std::min(request.remaining(), settings_.clip_max_new_tokens);
  if (settings_.fidelity == Fidelity::Exact) candidate.output += page_.divisor();  // F-page
  return candidate;
}

// `later`: somebody else is in the pass already.
bool SglangScheduler::passes_gates(const Candidate& candidate, const Budget& budget,
                                   bool later) const {
  const bool free_pass = budget.nobody_runs && !later;
  if (!free_pass && static_cast<double>(candidate.charge + candidate.output) >= budget.total)
    return false;
  return !later || candidate.charge <= budget.input;
}

void SglangScheduler::build_prefill(Time now) {
  if (chunked_ == kNoSlot && waiting_.empty()) return;
  Budget left = budget();
  const auto has_seat = [&] { return flight_.prefill.size() < left.seats && left.chunk > 0; };
  if (chunked_ != kNoSlot) {
    if (!has_seat() || !continue_chunk(left)) return;
  }
  while (!waiting_.empty() && has_seat() && chunked_ == kNoSlot) {
    const Slot slot = waiting_.first();
    const bool later = !flight_.prefill.empty();
    const std::optional<Candidate> candidate = fit(slot, left, true);
    if (!candidate || !passes_gates(*candidate, left, later)) return;
    if (!admit(slot, *candidate, left, now)) return;
  }
}

// The request whose prompt is computed in parts goes on; the total-token gate is not for it
// (decisions.md 23). False when it cannot.
bool SglangScheduler::continue_chunk(Budget& left) {
  const Slot slot = chunked_;
  Request& request = requests_[slot];
  const std::optional<Candidate> candidate = fit(slot, left, false);
  if (!candidate) return false;
  const std::uint32_t from = request.computed;
  if (!kv_.extend(slot, from + candidate->take)) return false;
  chunked_ = kNoSlot;
  charge(*candidate, left);
  note_prefill(slot, from);
  return true;
}

void SglangScheduler::charge(const Candidate& candidate, Budget& left) const {
  left.total -= static_cast<double>(candidate.charge + candidate.output);
  left.input -= std::min(left.input, candidate.charge);
  left.chunk -= candidate.charge;
}

// SGLang looks once more at what is left after it has locked what the request reuses, which nobody
// can evict any more.
bool SglangScheduler::passes_locked(Slot slot, const Candidate& candidate, const Budget& left) {
  const std::uint64_t locked = kv_.would_lock(slot, candidate.prefix);
  const auto needs = static_cast<double>(candidate.charge + candidate.output);
  return needs < left.total - static_cast<double>(locked * page_.divisor());
}

bool SglangScheduler::admit(Slot slot, const Candidate& candidate, Budget& left, Time now) {
  Request& request = requests_[slot];
  const bool exact = settings_.fidelity == Fidelity::Exact;
  const bool free_pass = left.nobody_runs && flight_.prefill.empty();
  if (exact && !free_pass && !passes_locked(slot, candidate, left)) return false;
  const std::uint64_t before = kv_.room();
  if (!kv_.admit(slot, candidate.prefix, candidate.prefix + candidate.take)) return false;
  if (exact) {  // what is locked now is gone from the room, beside the pages charged
    const std::uint64_t taken = request.blocks - request.prefix_blocks;
    left.total -= static_cast<double>((before - kv_.room() - taken) * page_.divisor());
  }
  waiting_.remove(requests_, slot);
  request.state = State::Running;
  request.admission_order = next_order_++;
  charge(candidate, left);
  prefix_queried_ += request.known();
  prefix_hits_ += candidate.prefix;
  const std::uint32_t reused = std::min(candidate.prefix, request.prompt_tokens);
  if (request.admissions++ == 0) {
    request.first_admit = now;
    request.reused_first = reused;
  }
  request.reused_max = std::max(request.reused_max, reused);
  if (options_.history) request.history.push_back({now, reused});
  if (options_.trace) trace_.admitted.push_back({request.ordinal, candidate.prefix});
  note_prefill(slot, candidate.prefix);
  return true;
}

// The request computes its tokens from `from` on up to Request::computed.
void SglangScheduler::note_prefill(Slot slot, std::uint32_t from) {
  Request& request = requests_[slot];
  request.joined_step = cohort_.step();
  const std::uint32_t to = request.computed;
  const bool whole = to == request.known();
  flight_.prefill.push_back({.slot = slot,
                             .ordinal = request.ordinal,
                             .order = request.admission_order,
                             .from = from,
                             .to = to,
                             .tokens = whole && request.remaining() > 0 ? 1U : 0U,
                             .chunk = !whole});
  if (to > from) {
    ++shape_.prefill_requests;
    shape_.prefill_isl += to;
    shape_.prefill_prefix += from;
    shape_.prefill_attention += std::uint64_t{to - from} * (std::uint64_t{from} + to);
  }
  if (whole) {
    running_.push_back(requests_, slot);
  } else {
    chunked_ = slot;
  }
}

// The vision tower runs before the prefill, over the images that the pass computes a part of.
void SglangScheduler::encode_images() {
  images_.clear();
  for (const Row& row : flight_.prefill) {
    for (const workload::Image& image : requests_[row.slot].images) {
      if (image.start < row.to && row.from < image.end) images_.push_back(image);
    }
  }
  shape_.images = vision_->encode(images_);
}

// With the host loop the tokens of the pass count as sampled from now on.
void SglangScheduler::launch_prefill() {
  reserve_first_slots();
  for (Row& row : flight_.prefill) {
    Request& request = requests_[row.slot];
    request.generated += row.tokens;
    request.unseen += row.tokens;
    row.last = !row.chunk && request.remaining() == 0;
  }
}

// The place of each first token that more tokens follow [F-slot]: all of the pass or none; those
// that get none have their first token with the next decode pass (S7.5).
void SglangScheduler::reserve_first_slots() {
  if (ahead_ == 0) return;
  std::uint64_t pages = 0;
  const auto needs = [&](const Row& row) {
    return row.tokens > 0 && requests_[row.slot].remaining() > 1;
  };
  for (const Row& row : flight_.prefill) {
    const Request& request = requests_[row.slot];
    if (needs(row)) pages += page_.ceiling(request.known() + 1) - request.blocks;
  }
  const bool fits = pages <= kv_.room();
  if (fits) kv_.reserve(pages);
  for (Row& row : flight_.prefill) {
    if (!needs(row)) continue;
    Request& request = requests_[row.slot];
    if (!fits) {
      row.tokens = 0;
      row.late = true;
      continue;
    }
    request.computed = request.known() + 1;
    request.blocks = page_.ceiling(request.computed);
  }
}

}  // namespace servecast::scheduler
