// SPDX-License-Identifier: Apache-2.0
// Who gives way when running requests need more memory than there is (engine-sglang.md S7.8).
#include <algorithm>

#include "base/check.hpp"
#include "scheduler/sglang/scheduler.hpp"

namespace servecast::scheduler {

// Makes the decode pass fit, by retractions if need be; the survivors run in the order in which
// they were looked at, and the ratio is what they let expect. False when the only one left does not
// fit: it waits for the pass in flight, or it has failed.
bool SglangScheduler::make_room() {
  retracted_ = false;
  if (pages_needed() <= kv_.room()) return true;
  rows_.clear();
  std::vector<Slot> ghosts;
  for (Slot s = running_.first(); s != kNoSlot; s = requests_[s].after)
    (is_ghost(requests_[s]) ? ghosts : rows_).push_back(s);
  if (rows_.empty()) return true;
  if (!sampler_) {
    std::stable_sort(rows_.begin(), rows_.end(), [&](Slot a, Slot b) {
      const Request &x = requests_[a], &y = requests_[b];
      if (x.generated != y.generated) return x.generated > y.generated;
      return x.prompt_tokens < y.prompt_tokens;
    });
  }
  std::vector<Slot> victims;
  while (rows_.size() > 1 && pages_needed() > kv_.room()) {
    const Slot victim = rows_.back();
    rows_.pop_back();
    retract(victim, rows_.size());
    victims.push_back(victim);
  }
  running_ = {};
  for (const Slot slot : rows_) running_.push_back(requests_, slot);
  for (const Slot slot : ghosts) running_.push_back(requests_, slot);
  // To the back of the queue, behind whoever has never run.
  for (const Slot slot : victims) waiting_.push_back(requests_, slot);
  retracted_ = !victims.empty();
  if (retracted_) estimate_ratio();
  if (pages_needed() <= kv_.room()) return true;
  // What ends with the pass in flight gives its pages back when that has been observed.
  if (!ghosts.empty() || !canceled_.empty()) return false;
  if (chunked_ != kNoSlot) {  // decisions.md 25
    const Slot chunked = chunked_;
    chunked_ = kNoSlot;
    take_back(chunked);
    waiting_.push_front(requests_, chunked);
    if (pages_needed() <= kv_.room()) return true;
  }
  fail_last();
  return false;
}

// The request loses its pages; what it has in the tree may be found again. What its pass in flight
// gives is never seen.
void SglangScheduler::take_back(Slot slot) {
  Request& request = requests_[slot];
  ++retractions_;
  ++request.preemptions;
  if (options_.trace) trace_.preempted.push_back({request.ordinal, request.blocks});
  kv_.release(slot);
  request.generated -= request.unseen;
  request.unseen = 0;
  request.computed = 0;
  request.admission_order = 0;
  request.emitted_in = kNoPass;
  request.state = State::Preempted;
}

void SglangScheduler::retract(Slot slot, std::uint64_t survivors) {
  running_.remove(requests_, slot);
  take_back(slot);
  const auto reserve = static_cast<std::uint32_t>(survivors * settings_.retract_decode_steps);
  kv_.evict_towards(page_.ceiling(reserve), settings_.fidelity == Fidelity::Exact);
}

// From what the survivors have generated, before the pass (S7.9).
void SglangScheduler::estimate_ratio() {
  std::uint64_t generated = 0, wanted = 0, rows = 0;
  for (Slot s = running_.first(); s != kNoSlot; s = requests_[s].after) {
    const Request& request = requests_[s];
    if (is_ghost(request)) continue;
    ++rows;
    generated += request.generated;
    wanted += request.final_tokens - request.prompt_tokens;
  }
  const std::uint64_t expected = generated + settings_.retract_decode_steps * rows;
  ratio_ = std::min(1.0, static_cast<double>(expected) / static_cast<double>(wanted + 1));
}

// The only running request has no memory to go on, although everyone else has given way.
void SglangScheduler::fail_last() {
  for (Slot s = running_.first(); s != kNoSlot; s = requests_[s].after) {
    Request& request = requests_[s];
    if (is_ghost(request)) continue;
    request.kv_needed = page_.ceiling(places_after(request));
    request.reason = Reason::KvCapacity;
    failed_.push_back(s);
    return;
  }
}

}  // namespace servecast::scheduler
