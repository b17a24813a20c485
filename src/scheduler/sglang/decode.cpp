// SPDX-License-Identifier: Apache-2.0
// A decode pass: memory for it, and its rows (engine-sglang.md S7.7, decisions.md 25, 26).
#include <algorithm>

#include "base/check.hpp"
#include "scheduler/sglang/scheduler.hpp"

namespace servecast::scheduler {

// Tokens that have their place once the pass has run, at most.
std::uint32_t SglangScheduler::places_after(const Request& request) const {
  return request.known() + std::min(burst(), request.remaining()) - 1 + ahead_;
}

// Pages that the live rows lack.
std::uint64_t SglangScheduler::pages_needed() const {
  std::uint64_t pages = 0;
  for (Slot s = running_.first(); s != kNoSlot; s = requests_[s].after) {
    const Request& request = requests_[s];
    if (is_ghost(request)) continue;
    const std::uint32_t wanted = page_.ceiling(places_after(request));
    pages += wanted - std::min(wanted, request.blocks);
  }
  return pages;
}

void SglangScheduler::build_decode() {
  if (cohort_formed_) {
    const std::uint32_t pages = cohort_.crossings();
    if (pages <= kv_.room()) {
      kv_.reserve(pages);
      cohort_decodes_ = progress_ = true;
      shape_.decode_requests = cohort_.size();
      shape_.decode_context = cohort_.context();
      decay_ratio();
      return;
    }
    dissolve();
  }
  build_decode_each();
}

void SglangScheduler::build_decode_each() {
  const bool fits = make_room();
  if (!retracted_) decay_ratio();
  if (!fits) return;
  kv_.reserve(pages_needed());
  shape_.decode_tokens_each = burst();
  for (Slot s = running_.first(); s != kNoSlot; s = requests_[s].after) {
    if (is_ghost(requests_[s])) {
      note_ghost(s);
    } else {
      note_decode(s);
    }
  }
  note_lingering();
  progress_ |= !flight_.decode.empty();
}

// Running requests get their token along with a prefill. Their memory comes first; where somebody
// has to give way for it, they decode alone (S7.6).
void SglangScheduler::build_mixed(Time now) {
  if (make_room()) {
    kv_.reserve(pages_needed());
    rows_.clear();
    for (Slot s = running_.first(); s != kNoSlot; s = requests_[s].after) rows_.push_back(s);
    if (!retracted_) build_prefill(now);
    for (const Slot slot : rows_) note_decode(slot);
    shape_.mixed_chunk = !flight_.prefill.empty();
    progress_ = true;
  }
  if (!retracted_ && flight_.prefill.empty()) decay_ratio();
}

// A row that computes the last of its Row::to known tokens.
SglangScheduler::Row& SglangScheduler::add_decode(const Row& row) {
  ++shape_.decode_requests;
  shape_.decode_context += row.to;
  flight_.decode.push_back(row);
  flight_.decode.back().from = row.to - 1;
  return flight_.decode.back();
}

void SglangScheduler::note_decode(Slot slot) {
  Request& request = requests_[slot];
  Row& row = add_decode({.slot = slot,
                         .ordinal = request.ordinal,
                         .order = request.admission_order,
                         .to = request.known(),
                         .tokens = 1});
  const std::uint32_t places = places_after(request);
  request.blocks = std::max(request.blocks, page_.ceiling(places));
  if (sampler_) return;  // how many tokens it gives is drawn when it has run
  request.computed = places;
  ++request.generated;
  ++request.unseen;
  row.last = request.remaining() == 0;
}

// SGLang only marks a canceled request; it leaves when its pass has been observed [F-ghost].
void SglangScheduler::note_lingering() {
  for (const Canceled& canceled : canceled_) {
    if (!canceled.lingers) continue;
    add_decode({.slot = canceled.slot, .ordinal = canceled.ordinal, .to = canceled.known});
  }
}

std::uint32_t SglangScheduler::lingering() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(canceled_, [](const Canceled& canceled) { return canceled.lingers; }));
}

// A request whose last token nobody has looked at yet is in one batch more and writes that token's
// KV, if a page for it is free (decisions.md 26).
void SglangScheduler::note_ghost(Slot slot) {
  Request& request = requests_[slot];
  add_decode({.slot = slot,
              .ordinal = request.ordinal,
              .order = request.admission_order,
              .to = request.known()});
  const std::uint32_t pages = page_.ceiling(request.known());
  if (pages > request.blocks) {
    if (kv_.free() < pages - request.blocks) return;
    kv_.reserve(pages - request.blocks);
    request.blocks = pages;
  }
  request.computed = std::max(request.computed, request.known());
}

}  // namespace servecast::scheduler
