// SPDX-License-Identifier: Apache-2.0
// What an SGLang rank admits (engine-sglang.md S7.2, S7.3, decisions.md 23, 24, 30).
#include <algorithm>

#include "support/audit_sglang.hpp"

namespace servecast::test {

using replay::PassRecord;
using scheduler::Fidelity;
using scheduler::SglangPolicy;

// Pages that are free or can be evicted; nothing when that is not told.
std::optional<std::uint64_t> SglangAudit::room(const SglangRank& rank) const {
  if (!config_.prefix_caching) return config_.blocks - std::min(config_.blocks, held_pages(rank));
  if (!rank.held) return std::nullopt;
  return config_.blocks - *rank.held;
}

SglangAudit::Budget SglangAudit::budget(const SglangRank& rank) const {
  std::uint64_t reserved = 0;
  for (const SglangLife* life : rank.running)
    reserved += std::min(life->remaining(), settings_.clip_max_new_tokens);
  const std::optional<std::uint64_t> pages_left = room(rank);
  const std::size_t seated = rank.running.size() + rank.lingering.size();
  const auto decoding = static_cast<std::uint32_t>(settings_.mixed_chunk ? rank.running.size() : 0);
  return {.total = static_cast<double>(pages_left.value_or(0) * page_) -
                   static_cast<double>(reserved) * rank.ratio,
          .total_known = pages_left.has_value(),
          .input = settings_.max_prefill_tokens - std::min(settings_.max_prefill_tokens, decoding),
          .chunk = chunk_ - std::min(chunk_, decoding),
          .pages = pages_left.value_or(0),
          .seats = config_.max_sequences -
                   std::min(config_.max_sequences, static_cast<std::uint32_t>(seated)),
          .nobody_runs = rank.running.empty() && rank.chunked == nullptr};
}

// Whether the passes tell who stands where in the queue.
bool SglangAudit::has_queue_order(const SglangRank& rank) const {
  if (!rank.queue_is_told) return false;
  switch (settings_.policy) {
    case SglangPolicy::Fcfs:
    case SglangPolicy::Lof:
      return true;
    case SglangPolicy::Lpm:
    case SglangPolicy::DfsWeight:
      return !config_.prefix_caching;
    case SglangPolicy::Random:
    case SglangPolicy::Priority:
      return false;
  }
  return false;
}

void SglangAudit::sort_queue(SglangRank& rank) const {
  if (settings_.policy != SglangPolicy::Lof) return;
  std::ranges::stable_sort(rank.waiting, std::ranges::greater(),
                           [](const SglangLife* life) { return life->limit; });
}

// The rows that compute what was not known to be next: of admitted requests, and of the chunked
// one.
void SglangAudit::admit_rows(SglangRank& rank, const PassRecord& part, Budget& left,
                             std::vector<SglangRow>& rows) {
  const SglangLife* begun = rank.chunked;
  for (const auto& item : part.scheduled) {
    SglangLife& life = lives_[item.request];
    const bool admitted = std::ranges::find(part.admitted, item.request,
                                            &PassRecord::Admitted::request) != part.admitted.end();
    if (!admitted && &life != begun) break;
    SglangRow row{.life = &life, .from = item.from, .to = item.to, .prefill = true};
    v_.expect(begun == nullptr || !rows.empty() || begun == &life,
              "{}: request {} comes before the prompt that has begun", where(part), life.id);
    v_.expect(rows.empty() || !rows.back().chunk, "{}: request {} comes behind a chunk",
              where(part), life.id);
    v_.expect(item.to >= item.from && item.to <= life.known(),
              "{}: request {} computes tokens {} to {} of {}", where(part), life.id, item.from,
              item.to, life.known());
    check_row(rank, part, row, !rows.empty(), left);
    admit(rank, part, row);
    rows.push_back(row);
  }
  v_.expect(rows.size() <= left.seats, "{}: {} requests for {} seats", where(part), rows.size(),
            left.seats);
}

std::vector<SglangRow> SglangAudit::prefill(SglangRank& rank, const PassRecord& part,
                                            const PassRecord* next) {
  Budget left = budget(rank);
  const bool goes_on = rank.chunked != nullptr;
  std::vector<SglangRow> rows;
  admit_rows(rank, part, left, rows);
  if (rank.chunked == nullptr || (goes_on && rows.empty()))
    nobody_passed_over(rank, part, left, rows.size());
  const bool late = first_tokens_late(rank, part, next, rows);
  for (SglangRow& row : rows) {
    SglangLife& life = *row.life;
    const bool needs_place = row.tokens > 0 && life.remaining() > 1;
    if (late && needs_place) row.tokens = 0;
    if (!late && needs_place) life.computed += ahead_;
    life.generated += row.tokens;
    life.unseen += row.tokens;
    row.last = !row.chunk && life.remaining() == 0;
  }
  return rows;
}

// The budgets before and after one row.
void SglangAudit::check_row(const SglangRank& rank, const PassRecord& part, const SglangRow& row,
                            bool later, Budget& left) {
  const SglangLife& life = *row.life;
  const bool goes_on = rank.chunked == &life;
  const std::uint64_t extend = life.known() - row.from, take = row.to - row.from;
  const bool whole = in_pages(extend) <= left.chunk;
  const std::uint64_t wanted = whole ? extend : left.chunk / page_ * page_;
  v_.expect(take == wanted && (whole || take > 0), "{}: request {} computes {} of {} tokens, {}",
            where(part), life.id, take, extend, left.chunk);
  const std::uint64_t charge = in_pages(take);
  v_.expect(!later || charge <= left.input, "{}: request {} passes the input cap", where(part),
            life.id);
  std::uint64_t output =
      take == extend ? std::min(life.remaining(), settings_.clip_max_new_tokens) : 0;
  if (settings_.fidelity == Fidelity::Exact) output += page_;
  const auto needs = static_cast<double>(charge + output);
  const bool free_pass = goes_on || (left.nobody_runs && !later);
  v_.expect(free_pass || !left.total_known || needs < left.total,
            "{}: request {} needs {} tokens, {} are left", where(part), life.id, needs, left.total);
  left.total -= needs;
  left.input -= std::min(left.input, charge);
  left.chunk -= std::min(left.chunk, charge);
  const std::uint64_t taken = pages(row.to) - (goes_on ? pages(row.from) : 0);
  left.pages -= std::min(left.pages, taken);
}

void SglangAudit::admit(SglangRank& rank, const PassRecord& part, SglangRow& row) {
  SglangLife& life = *row.life;
  if (rank.chunked == &life) {
    v_.expect(row.from == life.computed, "{}: request {} goes on at {}, had computed {}",
              where(part), life.id, row.from, life.computed);
    rank.chunked = nullptr;
  } else {
    const auto told = std::ranges::find(part.admitted, life.id, &PassRecord::Admitted::request);
    if (std::ranges::find(rank.waiting, &life) == rank.waiting.end()) swap_arrivals(rank, life);
    const auto place = std::ranges::find(rank.waiting, &life);
    v_.expect(told != part.admitted.end() && told->reused_tokens == row.from,
              "{}: request {} is computed from {} without such an admission", where(part), life.id,
              row.from);
    v_.expect(place != rank.waiting.end(), "{}: request {} does not wait", where(part), life.id);
    v_.expect(!has_queue_order(rank) || place == rank.waiting.begin(),
              "{}: request {} is admitted before its turn", where(part), life.id);
    if (place != rank.waiting.end()) rank.waiting.erase(place);
    const std::uint32_t reusable = life.known() - (life.remaining() > 0 ? 1 : 0);
    v_.expect(
        row.from % page_ == 0 && row.from <= reusable && (config_.prefix_caching || row.from == 0),
        "{}: request {} reuses {} of {} tokens", where(part), life.id, row.from, life.known());
    life.lease = ++leases_;
    life.tree_pages = row.from / page_;
    life.admit(part.start, row.from);
  }
  life.computed = row.to;
  row.lease = life.lease;
  row.chunk = row.to < life.known();
  row.tokens = !row.chunk && life.remaining() > 0 ? 1 : 0;
  if (row.chunk) {
    rank.chunked = &life;
  } else {
    rank.running.push_back(&life);
  }
}

// Whether the request would be admitted if nothing of it were cached.
bool SglangAudit::fits_cold(const SglangLife& life, const Budget& left, bool later) const {
  const bool whole = in_pages(life.known()) <= left.chunk;
  if (!whole && config_.prefix_caching) return false;  // a hit could make it whole
  const std::uint64_t charge = whole ? in_pages(life.known()) : left.chunk / page_ * page_;
  if (charge == 0 || charge > left.pages * page_ || (later && charge > left.input)) return false;
  if (left.nobody_runs && !later) return true;
  std::uint64_t needs = charge;
  if (whole) needs += std::min(life.remaining(), settings_.clip_max_new_tokens);
  if (settings_.fidelity == Fidelity::Exact) needs += page_;
  return static_cast<double>(needs) < left.total;
}

// Nobody waits who has room; with a hit a request needs less. `rows`: admitted in this pass.
void SglangAudit::nobody_passed_over(const SglangRank& rank, const PassRecord& part,
                                     const Budget& left, std::size_t rows) {
  // What an admission locks of the tree is not told.
  const bool exact = settings_.fidelity == Fidelity::Exact && config_.prefix_caching && rows > 0;
  if (!left.total_known || exact || rows >= left.seats || left.chunk == 0) return;
  if (rank.chunked != nullptr) {
    const SglangLife& life = *rank.chunked;
    const std::uint64_t extend = life.known() - life.computed;
    const std::uint64_t take = in_pages(extend) <= left.chunk ? extend : left.chunk / page_ * page_;
    const std::uint64_t needs = pages(life.computed + take) - pages(life.computed);
    v_.expect(needs > *room(rank), "{}: the chunked request {} has room and does not go on",
              where(part), life.id);
    return;
  }
  if (rank.waiting.empty()) return;
  const std::size_t looked_at = has_queue_order(rank) ? 1 : rank.waiting.size();
  const bool all = std::all_of(
      rank.waiting.begin(), rank.waiting.begin() + static_cast<std::ptrdiff_t>(looked_at),
      [&](const SglangLife* life) { return fits_cold(*life, left, rows > 0); });
  v_.expect(!all, "{}: request {} waits although there is room", where(part),
            rank.waiting.front()->id);
}

// Whether the pass with the outputs of its prefill says that a first token had no place; nothing
// when it does not say.
std::optional<bool> SglangAudit::told_late(const SglangLife& life, const PassRecord& shown) const {
  for (const auto& output : shown.outputs) {
    if (output.request == life.id && output.tokens > 0) return false;
  }
  for (const auto& [request, blocks] : shown.preempted) {
    if (request != life.id) continue;
    if (pages(life.known()) == pages(life.known() + 1)) return std::nullopt;
    return blocks == pages(life.known());
  }
  const replay::RequestRecord& r = *life.record;
  if (r.status == replay::Status::Canceled && (r.terminal <= shown.start || r.terminal < shown.end))
    return std::nullopt;
  return true;
}

// The places of the first tokens of a pass: all have one or none has (S7.5).
bool SglangAudit::first_tokens_late(const SglangRank& rank, const PassRecord& part,
                                    const PassRecord* next, std::span<const SglangRow> rows) {
  if (ahead_ == 0) return false;
  std::uint64_t needed = 0, leaving = 0;
  bool late = false;
  const PassRecord* shown = settings_.host_loop ? next : &part;
  for (const SglangRow& row : rows) {
    const SglangLife& life = *row.life;
    if (row.chunk) continue;
    if (row.tokens > 0 && life.remaining() > 1) {
      needed += pages(life.known() + 1) - pages(life.computed);
      late |= shown != nullptr && told_late(life, *shown).value_or(false);
    } else if (!settings_.host_loop) {
      leaving += pages(life.computed);
    }
  }
  if (needed == 0) return false;
  if (!config_.prefix_caching) return needed > *room(rank) + leaving;
  // The same holds of the end of the pass, unless what decodes beside the prompts leaves then.
  const bool told = !settings_.host_loop && !settings_.mixed_chunk;
  v_.expect(!late || !told || needed > config_.blocks - part.blocks_active,
            "{}: first tokens have a place and do not come", where(part));
  return late;
}

}  // namespace servecast::test
