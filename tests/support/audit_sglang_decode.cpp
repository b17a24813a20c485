// SPDX-License-Identifier: Apache-2.0
// Decode passes of an SGLang rank, who gives way in them, and what passes show (engine-sglang.md
// S7.5, S7.7-S7.9, S8, decisions.md 25-28).
#include <algorithm>

#include "support/audit_sglang.hpp"

namespace servecast::test {

using replay::PassRecord;

std::uint32_t SglangAudit::places_after(const SglangLife& life) const {
  return life.known() + std::min(burst_, life.remaining()) - 1 + ahead_;
}

// Of rows that go on; those that are only to be observed ask for nothing.
std::uint64_t SglangAudit::pages_needed(std::span<SglangLife* const> rows) const {
  std::uint64_t needed = 0;
  for (const SglangLife* life : rows) {
    if (life->remaining() == 0) continue;
    const std::uint32_t wanted = pages(places_after(*life)), held = pages(life->computed);
    needed += wanted - std::min(wanted, held);
  }
  return needed;
}

void SglangAudit::take_back(SglangLife& life, const PassRecord& part, std::uint32_t blocks) {
  v_.expect(blocks == pages(life.computed), "{}: request {} held {} pages, recount {}", where(part),
            life.id, blocks, pages(life.computed));
  life.generated -= life.unseen;
  life.unseen = life.computed = life.tree_pages = 0;
  life.preemptions += 1;
  life.lease = ++leases_;
}

// Who gives way: the fewest tokens first, then the longest prompt, then the last (S7.8). Returns
// how many did.
std::size_t SglangAudit::retract(SglangRank& rank, const PassRecord& part) {
  std::vector<SglangLife*> rows, ghosts, victims;
  for (SglangLife* life : rank.running) (life->remaining() == 0 ? ghosts : rows).push_back(life);
  if (!config_.speculation) {
    std::ranges::stable_sort(rows, [](const SglangLife* a, const SglangLife* b) {
      return a->generated != b->generated ? a->generated > b->generated : a->input < b->input;
    });
  }
  for (const auto& [request, blocks] : part.preempted) {
    SglangLife& victim = lives_[request];
    if (&victim == rank.chunked) break;
    const std::optional<std::uint64_t> left = room(rank);
    v_.expect(rows.size() > 1, "{}: request {} is preempted, the only one", where(part), victim.id);
    v_.expect(!left || pages_needed(rows) > *left, "{}: request {} is preempted for nobody",
              where(part), victim.id);
    v_.expect(!rows.empty() && rows.back() == &victim, "{}: request {} is the wrong victim",
              where(part), victim.id);
    std::erase(rows, &victim);
    std::erase(rank.running, &victim);
    if (rank.free) {
      // What is cached goes until so much is free that everyone who stays has a reserve.
      const std::uint32_t reserve =
          pages(rows.size() * std::uint64_t{settings_.retract_decode_steps});
      *rank.free = std::max(*rank.free + blocks - victim.tree_pages, reserve);
    }
    take_back(victim, part, blocks);
    victims.push_back(&victim);
    rank.held.reset();  // what others share of it stays
  }
  const std::optional<std::uint64_t> left = room(rank);
  v_.expect(!left || rows.size() < 2 || pages_needed(rows) <= *left,
            "{}: nobody gives way, and {} pages are missing", where(part),
            pages_needed(rows) - std::min(left.value_or(0), pages_needed(rows)));
  if (!victims.empty()) {
    rank.running = rows;
    rank.running.insert(rank.running.end(), ghosts.begin(), ghosts.end());
    rank.waiting.insert(rank.waiting.end(), victims.begin(), victims.end());
  }
  return victims.size();
}

// Whether the survivors can run. The last one waits for what the forward in flight gives back, then
// the chunked request gives way, then it fails (decisions.md 25).
bool SglangAudit::makes_room(SglangRank& rank, const PassRecord& part, std::size_t victims) {
  std::vector<SglangLife*> live = rank.running;
  std::erase_if(live, [](const SglangLife* life) { return life->remaining() == 0; });
  const bool others = live.size() < rank.running.size() || rank.leaving > 0;
  const auto fits = [&] {
    const std::optional<std::uint64_t> left = room(rank);
    return left ? pages_needed(live) <= *left : !part.scheduled.empty();
  };
  const bool releases = victims < part.preempted.size();
  if (live.empty() || (fits() && !releases)) return true;
  v_.expect(live.size() == 1, "{}: {} requests run and do not fit", where(part), live.size());
  v_.expect(!releases || (!others && part.preempted.size() == victims + 1),
            "{}: a chunk is released too early", where(part));
  if (others) return false;
  if (releases) {
    v_.expect(!room(rank) || !fits(), "{}: a chunk is released for nobody", where(part));
    const auto& [request, blocks] = part.preempted.back();
    take_back(*rank.chunked, part, blocks);
    rank.waiting.insert(rank.waiting.begin(), rank.chunked);
    rank.chunked = nullptr;
    rank.held.reset();
    if (fits()) return true;
  }
  v_.expect(rank.chunked == nullptr, "{}: the last one fails beside a chunk", where(part));
  rank.failed = live.front();
  const replay::RequestRecord& r = *rank.failed->record;
  v_.expect(
      r.status == replay::Status::Canceled || r.kv_needed == pages(places_after(*rank.failed)),
      "{}: request {} fails for want of {} pages", where(part), r.ordinal, r.kv_needed);
  return false;
}

// With mixed chunks prompts come along, unless somebody had to give way; `next` is then the part
// after this one (S7.6).
std::vector<SglangRow> SglangAudit::decode(SglangRank& rank, const PassRecord& part,
                                           const PassRecord* next) {
  const bool mixes = settings_.mixed_chunk && countdown_ == 0;
  const std::size_t victims = retract(rank, part);
  std::uint64_t generated = 0, wanted = 1;
  for (const SglangLife* life : rank.running) {
    if (life->remaining() == 0) continue;
    generated += life->generated + settings_.retract_decode_steps;
    wanted += life->limit;
  }
  const double estimate =
      std::min(1.0, static_cast<double>(generated) / static_cast<double>(wanted));
  const double ratio = rank.ratio;
  std::vector<SglangRow> prompts, rows;
  if (makes_room(rank, part, victims)) {
    const std::vector<SglangLife*> running = rank.running;
    const std::uint64_t needed = pages_needed(running);
    if (rank.held) *rank.held += static_cast<std::uint32_t>(needed);
    if (!mixes && victims == part.preempted.size()) compare_free(rank, part, needed);
    for (SglangLife* life : running) {
      const bool ghost = life->remaining() == 0;
      rows.push_back({.life = life,
                      .lease = life->lease,
                      .from = life->known() - 1,
                      .to = life->known(),
                      .tokens = ghost ? 0U : 1U});
      if (!ghost) life->computed = std::max(life->computed, places_after(*life));
    }
    for (SglangLife* life : rank.lingering)
      rows.push_back({.life = life, .from = life->known() - 1, .to = life->known()});
    if (mixes && victims == 0) prompts = prefill(rank, part, next);
  }
  if (victims > 0) {
    expect_ratio(rank, part, estimate);
  } else {
    expect_ratio(rank, part, prompts.empty() ? decayed(ratio) : ratio);
  }
  for (SglangRow& row : rows) {
    if (row.tokens == 0 || config_.speculation) continue;  // its output tells how many it gives
    ++row.life->generated;
    ++row.life->unseen;
    row.last = row.life->remaining() == 0;
  }
  prompts.insert(prompts.end(), rows.begin(), rows.end());
  return prompts;
}

// Nothing more is evicted than what decoding and the reserve lack, where that can be told: nobody
// gives pages back in the same pass (S7.7-2, S7.8-2).
void SglangAudit::compare_free(const SglangRank& rank, const PassRecord& part,
                               std::uint64_t needed) const {
  const bool compat = settings_.fidelity == scheduler::Fidelity::Compat;
  const bool gives_back = config_.speculation || settings_.host_loop ||
                          std::ranges::any_of(part.outputs, &PassRecord::Output::completed);
  const bool evicts = part.blocks_inactive > 0 && part.preempted.size() < 2;
  if (!rank.free || !compat || gives_back || !evicts || loses_somebody(rank, part)) return;
  const std::uint64_t expected = *rank.free - std::min<std::uint64_t>(*rank.free, needed);
  v_.expect(part.blocks_free == expected, "{}: {} pages are free, recount {}", where(part),
            part.blocks_free, expected);
}

void SglangAudit::compare_rows(const PassRecord& part, std::span<const SglangRow> rows) {
  const bool same = std::ranges::equal(
      rows, part.scheduled, [](const SglangRow& row, const PassRecord::Scheduled& item) {
        return row.life->id == item.request && row.from == item.from && row.to == item.to;
      });
  v_.expect(same, "{}: {} rows, recount {}, or others, or in another order", where(part),
            part.scheduled.size(), rows.size());
}

// What a forward gave, in the order in which it shows (S7.5, S7.11).
void SglangAudit::observe(SglangRank& rank, const PassRecord& part, std::span<SglangRow> rows) {
  std::vector<SglangRow*> shown;
  for (const auto wanted : {0, 1, 2, 3}) {
    for (SglangRow& row : rows) {
      if (!row.is_current() || row.life->ended) continue;
      const bool ends = row.prefill && row.last;
      const int place = !row.prefill ? 3 : !ends ? 2 : row.tokens > 0 ? 1 : 0;
      const bool silent = row.tokens == 0 && !ends;  // a chunk, a late first token, a ghost
      if (place == wanted && !silent) shown.push_back(&row);
    }
  }
  for (SglangRow& row : rows) {
    if (row.is_current() && row.prefill && !row.last && config_.prefix_caching)
      row.life->tree_pages = std::max(row.life->tree_pages, row.to / page_);
  }
  expect_outputs(rank, part, shown);
}

void SglangAudit::expect_outputs(SglangRank& rank, const PassRecord& part,
                                 std::span<SglangRow* const> rows) {
  std::size_t at = 0;
  const auto expect = [&](SglangLife& life, std::optional<std::uint32_t> tokens) -> std::uint32_t {
    if (gone_during(life, part)) return tokens.value_or(1);
    const PassRecord::Output none{};
    const PassRecord::Output& output = at < part.outputs.size() ? part.outputs[at++] : none;
    v_.expect(output.request == life.id && (!tokens || *tokens == output.tokens),
              "{}: request {} gives {} tokens where request {} was to come", where(part),
              output.request, output.tokens, life.id);
    life.give(part.end, output.tokens);
    const bool served = life.tokens.size() == life.limit;
    v_.expect(output.completed == (served && &life != rank.failed && !life.unfit),
              "{}: request {} is complete, or is not", where(part), life.id);
    return output.tokens;
  };
  for (SglangRow* row : rows) {
    SglangLife& life = *row->life;
    decode_rows_ += row->prefill ? 0 : 1;
    if (config_.speculation && !row->prefill) {
      const std::uint32_t tokens = expect(life, std::nullopt);
      v_.expect(tokens > 0 && tokens <= std::min(burst_, life.remaining()),
                "{}: request {} gives {} of at most {} tokens", where(part), life.id, tokens,
                std::min(burst_, life.remaining()));
      decode_tokens_ += tokens;
      life.generated += std::min(tokens, life.remaining());
      life.computed = life.known() - 1 + ahead_;
      row->last = life.remaining() == 0;
    } else {
      expect(life, row->tokens);
      decode_tokens_ += row->prefill ? 0 : row->tokens;
      life.unseen -= row->tokens;
    }
    if (row->last) end(rank, life, part);
  }
  if (rank.failed != nullptr) {
    expect(*rank.failed, 0);
    end(rank, *rank.failed, part);
  }
  std::vector<std::uint64_t> unfit;
  if (!rank.queue_is_told) {
    std::ranges::stable_sort(rank.unfit, {}, [&](const SglangLife* life) {
      return std::ranges::find(part.rejected, life->id);
    });
  }
  for (SglangLife* life : rank.unfit) unfit.push_back(life->id);
  v_.expect(part.rejected == unfit, "{}: {} requests are rejected, recount {}", where(part),
            part.rejected.size(), unfit.size());
  for (SglangLife* life : std::exchange(rank.unfit, {})) {
    expect(*life, 0);
    end(rank, *life, part);
  }
  v_.expect(at == part.outputs.size(), "{}: {} outputs, recount {}", where(part),
            part.outputs.size(), at);
}

void SglangAudit::end(SglangRank& rank, SglangLife& life, const PassRecord& part) {
  v_.expect(gone_during(life, part) || life.record->terminal == part.end,
            "{}: request {} does not end with it", where(part), life.id);
  std::erase(rank.running, &life);
  life.ended = true;
  life.lease = ++leases_;
}

}  // namespace servecast::test
