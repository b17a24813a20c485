// SPDX-License-Identifier: Apache-2.0
#include "support/audit_sglang.hpp"

#include <algorithm>

namespace servecast::test {

using replay::PassRecord;
using replay::Status;

namespace {

bool contains(const std::vector<SglangLife*>& lives, const SglangLife* life) {
  return std::ranges::find(lives, life) != lives.end();
}

}  // namespace

SglangAudit::SglangAudit(const replay::Deployment& deployment, const Recording& recording,
                         Violations& v)
    : deployment_(deployment),
      recording_(recording),
      v_(v),
      config_(deployment.rank),
      settings_(*deployment.rank.sglang),
      page_(config_.block_tokens),
      chunk_(settings_.chunked_prefill_size / deployment.ranks_per_worker),
      burst_(config_.speculation ? config_.speculation->width() : 1),
      ahead_(settings_.fidelity == scheduler::Fidelity::Compat ? 1 : 0) {
  double conservativeness = settings_.schedule_conservativeness;
  if (deployment.ranks_per_worker > 1) conservativeness *= 0.3;
  init_ratio_ = std::min(1.0, 0.7 * conservativeness);
  min_ratio_ = std::min(1.0, init_ratio_ * 0.14);
  ratio_decay_ = (init_ratio_ - min_ratio_) / 600;
  for (const RecordedRequest& request : recording.requests) {
    const replay::RequestRecord& r = request.record;
    SglangLife& life = lives_[r.ordinal];
    life.record = &r;
    life.id = r.ordinal;
    life.input = r.input_tokens;
    life.limit = r.requested_output_tokens;
    if (const auto limit = config_.max_model_len) {
      life.unfit = life.input >= *limit;
      life.limit = std::min(life.limit, *limit - std::min(*limit, life.input));
    }
    // decisions.md 23
    const std::uint64_t needed =
        in_pages(life.input) + std::min(life.limit, settings_.clip_max_new_tokens);
    const bool rejected = r.status == Status::Rejected && r.reason == replay::Reason::PoolTooSmall;
    v_.expect(!rejected || r.kv_needed == needed / page_ + 1,
              "request {}: {} pages would have been enough, of {}", life.id, needed / page_ + 1,
              r.kv_needed);
    life.unfit |= needed >= std::uint64_t{config_.blocks} * page_;
    v_.expect(r.status != Status::Rejected || life.unfit, "request {}: rejected although it fits",
              life.id);
    v_.expect(!life.unfit || r.admissions == 0, "request {}: runs although it can never fit",
              life.id);
  }
}

void SglangAudit::run(bool capped) {
  const std::span<const PassRecord> all = recording_.passes;
  const std::size_t ranks = deployment_.ranks_per_worker;
  for (std::size_t i = 0; i + ranks <= all.size(); i += ranks) {
    const Parts parts = all.subspan(i, ranks);
    const std::uint32_t worker = parts.front().worker;
    const bool first = i == 0 || all[i - 1].worker != worker;
    if (first) start_worker(worker);
    v_.expect(parts.front().pass == (first ? 0 : all[i - 1].pass + 1),
              "{}: passes are not consecutive", where(parts.front()));
    v_.expect(first || all[i - 1].end <= parts.front().start,
              "{}: starts before the pass before ended", where(parts.front()));
    Parts next = all.subspan(i + ranks, std::min(ranks, all.size() - i - ranks));
    if (!next.empty() && next.front().worker != worker) next = {};
    follow(parts, next);
    for (std::uint32_t r = 0; r < ranks && next.empty(); ++r) drop_canceled(worker, r, kNever);
  }
  if (!capped) whole_run();
  if (!recording_.has_events) return;
  compare_index(capped);
  if (!capped) compare_reuse();  // events of what entered the tree last come with an idle rank
}

void SglangAudit::whole_run() {
  std::vector<std::pair<std::uint64_t, const Account*>> accounts;
  bool canceled = false;
  for (const auto& [id, life] : lives_) {
    accounts.emplace_back(id, &life);
    canceled |= life.record->status == Status::Canceled;
  }
  compare_accounts(deployment_, recording_, accounts, v_);
  compare_gaps(recording_, accounts, false, v_);
  if (canceled) return;  // what a pass gave somebody who left counts, and does not show
  const replay::RunTotals& totals = recording_.totals;
  v_.expect(totals.decode_forwards == decode_rows_, "{} decode steps in passes, {} in totals",
            decode_rows_, totals.decode_forwards);
  v_.expect(burst_ > 1 ? totals.accepted_tokens >= decode_tokens_
                       : totals.accepted_tokens == decode_tokens_,
            "{} tokens of decode steps in passes, {} in totals", decode_tokens_,
            totals.accepted_tokens);
}

void SglangAudit::start_worker(std::uint32_t worker) {
  ranks_.assign(deployment_.ranks_per_worker, {});
  countdown_ = 0;
  for (SglangRank& rank : ranks_) rank.ratio = init_ratio_;
  for (auto& [id, life] : lives_) {
    if (life.record->worker == worker) ranks_[life.record->rank].arrivals.push_back(&life);
  }
  for (SglangRank& rank : ranks_) {
    std::ranges::stable_sort(rank.arrivals, {}, [](const SglangLife* life) {
      return std::pair(life->record->arrival, life->record->session);
    });
    rank.queue_is_told = order_is_told(rank);
  }
}

// Requests of one instant come by session, unless some of them come because something ended then.
bool SglangAudit::order_is_told(const SglangRank& rank) const {
  for (std::size_t i = 1; i < rank.arrivals.size(); ++i) {
    const Time at = rank.arrivals[i]->record->arrival;
    if (rank.arrivals[i - 1]->record->arrival != at) continue;
    const auto ends_then = [&](const auto& life) { return life.second.record->terminal == at; };
    if (std::ranges::any_of(lives_, ends_then)) return false;
  }
  return true;
}

void SglangAudit::follow(Parts parts, Parts next) {
  for (std::size_t r = 0; r < parts.size(); ++r) {
    v_.expect(parts[r].rank == r && parts[r].pass == parts.front().pass &&
                  parts[r].start == parts.front().start && parts[r].end == parts.front().end,
              "{}: is not the part of rank {}", where(parts[r]), r);
    drop_canceled(parts[r].worker, static_cast<std::uint32_t>(r), parts[r].start);
    take_arrivals(ranks_[r], parts[r]);
  }
  note_idle_group();
  time_together(parts);
  bool prefilled = false;
  for (std::size_t r = 0; r < parts.size(); ++r) {
    one(ranks_[r], parts[r], next.empty() ? nullptr : &next[r]);
    prefilled |= parts[r].prefill_requests > 0;
  }
  if (prefilled) {
    countdown_ = settings_.prefill_decode_interval;
  } else if (countdown_ > 0) {
    --countdown_;
  }
}

// Lockstep: the end of the longest part (S12.1). With the overlapping host loop a part ends when
// the forward launched before is computed (S8.1).
void SglangAudit::time_together(Parts parts) {
  Time end = parts.front().start;
  for (std::size_t r = 0; r < parts.size(); ++r) {
    const PassRecord& part = parts[r];
    if (!settings_.host_loop) {
      end = std::max(end, part.start + (part.vision + part.prefill + part.decode));
    } else if (!ranks_[r].flight.empty()) {
      end = std::max(end, ranks_[r].device_free);
    }
  }
  v_.expect(parts.front().end == end, "{}: ends at {} ns, recount {} ns", where(parts.front()),
            parts.front().end.ns, end.ns);
}

// Clients that went away before a pass that starts `now`. Whoever is the last to leave a rank
// between two passes leaves it idle.
void SglangAudit::drop_canceled(std::uint32_t worker, std::uint32_t rank_index, Time now) {
  SglangRank& rank = ranks_[rank_index];
  std::vector<SglangLife*> gone;
  for (SglangLife* life : rank.arrivals) {
    const replay::RequestRecord& r = *life->record;
    if (!life->ended && r.status == Status::Canceled && r.terminal <= now) gone.push_back(life);
  }
  std::ranges::stable_sort(gone, {}, [](const SglangLife* life) { return life->record->terminal; });
  for (SglangLife* life : gone) {
    drop(rank, *life);
    const Time at = life->record->terminal;
    if (at < rank.last_end || !is_drained(rank)) continue;
    bool comes = false, may_come = false;
    for (const SglangLife* other : rank.arrivals) {
      if (other->ended || other->arrived) continue;
      comes |= other->record->arrival < at;
      may_come |= other->record->arrival == at;
    }
    if (comes) continue;
    rank.ratio_may_be_new = true;
    flushes_.push_back({worker, rank_index, at, !may_come, true, {}});
  }
}

void SglangAudit::drop(SglangRank& rank, SglangLife& life) {
  const bool holds = contains(rank.running, &life) || rank.chunked == &life;
  // Its pages stay until the forward has been observed (S8.3).
  const bool in_flight = std::ranges::any_of(
      rank.flight, [&](const SglangRow& row) { return row.life == &life && row.is_current(); });
  if (holds && in_flight) {
    rank.leaving += pages(life.computed);
    const bool exact = settings_.fidelity == scheduler::Fidelity::Exact;
    if (exact && rank.chunked != &life) rank.lingering.push_back(&life);  // F-ghost
  }
  if (holds) rank.held.reset();
  if (holds) rank.free.reset();
  for (std::vector<SglangLife*>* list : {&rank.running, &rank.waiting, &rank.unfit})
    std::erase(*list, &life);
  if (rank.chunked == &life) rank.chunked = nullptr;
  life.ended = true;
  life.lease = ++leases_;
}

// What came at the very start of a pass may have come before it or after it, and what came earlier
// may still be in a frontend; how many wait tells, and who is admitted.
void SglangAudit::take_arrivals(SglangRank& rank, const PassRecord& part) {
  const std::size_t wanted = part.waiting + part.admitted.size() - part.preempted.size();
  std::vector<SglangLife*> maybe;
  for (SglangLife* life : rank.arrivals) {
    const Time at = life->record->arrival;
    if (life->ended || life->arrived || at > part.start) continue;
    const bool told = std::ranges::find(part.rejected, life->id) != part.rejected.end();
    const bool is_there = at < part.start && settings_.frontend.empty();
    if (is_there || (life->unfit && told)) {
      (life->unfit ? rank.unfit : rank.waiting).push_back(life);
      life->arrived = true;
    } else if (!life->unfit && (at < part.start || may_have_come(*life))) {
      maybe.push_back(life);
    }
  }
  std::ranges::stable_partition(maybe, [&](const SglangLife* life) {
    return std::ranges::find(part.admitted, life->id, &PassRecord::Admitted::request) !=
           part.admitted.end();
  });
  const std::size_t missing = wanted - std::min(wanted, rank.waiting.size());
  maybe.resize(std::min(maybe.size(), missing));
  for (SglangLife* life : rank.arrivals) {
    if (std::ranges::find(maybe, life) == maybe.end()) continue;
    rank.waiting.push_back(life);
    life->arrived = true;
  }
  v_.expect(rank.waiting.size() == wanted, "{}: {} requests wait at its start, recount {}",
            where(part), wanted, rank.waiting.size());
}

// A turn comes when the one before has ended.
bool SglangAudit::may_have_come(const SglangLife& life) const {
  if (life.record->turn == 0) return true;
  const auto before = lives_.find(life.id - 1);
  return before == lives_.end() || before->second.ended ||
         before->second.record->worker != life.record->worker;
}

// Of two that came at one instant the other one had come already.
void SglangAudit::swap_arrivals(SglangRank& rank, SglangLife& came) {
  const auto other = std::ranges::find_if(rank.waiting, [&](const SglangLife* life) {
    return life->record->arrival == came.record->arrival && life->admissions == 0;
  });
  if (came.arrived || other == rank.waiting.end()) return;
  (*other)->arrived = false;
  *other = &came;
  came.arrived = true;
}

// Rounds without prefills take no time then, and the ratio begins again (S12.3).
void SglangAudit::note_idle_group() {
  const bool runs =
      std::ranges::any_of(ranks_, [](const SglangRank& rank) { return !rank.running.empty(); });
  if (runs || countdown_ == 0) return;
  countdown_ = 0;
  for (SglangRank& rank : ranks_) rank.ratio = init_ratio_;
}

void SglangAudit::one(SglangRank& rank, const PassRecord& part, const PassRecord* next) {
  const bool takes_part = !is_drained(rank);
  v_.expect(part.new_token_ratio.has_value() == takes_part, "{}: takes part or does not",
            where(part));
  v_.expect(takes_part || (part.scheduled.empty() && part.outputs.empty()),
            "{}: has nothing to do and does something", where(part));
  if (!takes_part || !part.new_token_ratio) return;
  choose_ratio(rank, part);
  rank.failed = nullptr;
  for (const SglangRow& row : rank.flight) {
    if (!row.chunk || !row.is_current() || rank.chunked != row.life) continue;
    // Enters the tree when the next pass is chosen, perhaps as a copy of what is there (S8.2).
    if (config_.prefix_caching) rank.held.reset();
    if (config_.prefix_caching) row.life->tree_pages = row.to / page_;
  }
  sort_queue(rank);
  const std::uint64_t chunked = rank.chunked != nullptr ? rank.chunked->id : UINT64_MAX;
  const bool prefills = !part.admitted.empty() ||
                        (!part.scheduled.empty() && part.scheduled.front().request == chunked);
  v_.expect(!prefills || countdown_ == 0, "{}: prefills, {} rounds too early", where(part),
            countdown_);
  const bool mixes = settings_.mixed_chunk && !rank.running.empty() && countdown_ == 0;
  if (!prefills && !mixes && countdown_ == 0) nobody_passed_over(rank, part, budget(rank), 0);
  std::vector<SglangRow> rows;
  const bool in_flight = !rank.flight.empty();
  if (prefills && !mixes) {
    rows = prefill(rank, part, next);
    expect_ratio(rank, part, rank.ratio);
  } else if (!rank.running.empty() || !rank.lingering.empty()) {
    rows = decode(rank, part, mixes ? next : nullptr);
  } else {
    const bool has_work =
        !rank.waiting.empty() || rank.chunked != nullptr || in_flight || rank.leaving > 0;
    v_.expect(part.preempted.empty(), "{}: preempts for nobody", where(part));
    expect_ratio(rank, part, countdown_ == 0 && has_work ? decayed(rank.ratio) : rank.ratio);
  }
  compare_rows(part, rows);
  compare_shape(part, rows);
  std::vector<SglangRow> launched;
  if (settings_.host_loop) {
    launched = std::move(rows);
    rows = std::move(rank.flight);
    if (!launched.empty())
      rank.device_free =
          std::max(rank.device_free, part.start) + (part.vision + part.prefill + part.decode);
  }
  observe(rank, part, rows);
  rank.flight = std::move(launched);
  rank.leaving = 0;
  rank.lingering.clear();
  compare_pool(rank, part);
  note_flush(rank, part, rows);
}

double SglangAudit::decayed(double ratio) const {
  return std::max(min_ratio_, ratio - ratio_decay_);
}

// Whether a rank was idle between two passes is not always told; what it says then is what counts.
void SglangAudit::choose_ratio(SglangRank& rank, const PassRecord& part) {
  const bool exact = settings_.fidelity == scheduler::Fidelity::Exact;
  const double told = *part.new_token_ratio;
  if (exact && rank.ratio_may_be_new && told != rank.ratio && told != decayed(rank.ratio))
    rank.ratio = init_ratio_;
  rank.ratio_may_be_new = false;
}

void SglangAudit::expect_ratio(SglangRank& rank, const PassRecord& part, double expected) {
  v_.expect(*part.new_token_ratio == expected, "{}: new token ratio {}, recount {} after {}",
            where(part), *part.new_token_ratio, expected, rank.ratio);
  rank.ratio = *part.new_token_ratio;
}

void SglangAudit::compare_shape(const PassRecord& part, std::span<const SglangRow> rows) {
  perf::StepShape shape;
  shape.capacity_tokens = std::uint64_t{config_.blocks} * page_;
  shape.mixed_chunk = !rows.empty() && rows.front().prefill && !rows.back().prefill;
  for (const SglangRow& row : rows) {
    if (!row.prefill) {
      shape.decode_requests += 1;
      shape.decode_context += row.to;
      shape.decode_tokens_each = burst_;
    } else if (row.to > row.from) {
      shape.prefill_requests += 1;
      shape.prefill_isl += row.to;
      shape.prefill_prefix += row.from;
      shape.prefill_attention += std::uint64_t{row.to - row.from} * (row.to + row.from);
    }
  }
  v_.expect(part.prefill_requests == shape.prefill_requests &&
                part.total_isl == shape.prefill_isl && part.total_prefix == shape.prefill_prefix,
            "{}: {} prefills of {} tokens behind {}, recount {}, {}, {}", where(part),
            part.prefill_requests, part.total_isl, part.total_prefix, shape.prefill_requests,
            shape.prefill_isl, shape.prefill_prefix);
  v_.expect(
      part.decode_requests == shape.decode_requests && part.total_length == shape.decode_context,
      "{}: {} decodes of {} tokens, recount {}, {}", where(part), part.decode_requests,
      part.total_length, shape.decode_requests, shape.decode_context);
  const perf::StepTime time = deployment_.timer->time(shape);
  v_.expect(part.prefill == time.prefill && part.decode == time.decode,
            "{}: lasts {} + {} ns, the timer says {} + {} ns", where(part), part.prefill.ns,
            part.decode.ns, time.prefill.ns, time.decode.ns);
}

std::uint32_t SglangAudit::held_pages(const SglangRank& rank) const {
  std::uint32_t held = rank.leaving;
  for (const SglangLife* life : rank.running) held += pages(life->computed);
  if (rank.chunked != nullptr) held += pages(rank.chunked->computed);
  return held;
}

void SglangAudit::compare_pool(SglangRank& rank, const PassRecord& part) {
  v_.expect(part.blocks_active + part.blocks_inactive + part.blocks_free == config_.blocks,
            "{}: the pages of the pool do not add up", where(part));
  rank.held = part.blocks_active;
  rank.free = part.blocks_free;
  rank.last_end = part.end;
  // Whether a burst that does not show was the last of its request is not told.
  if (config_.speculation && loses_somebody(rank, part)) return;
  v_.expect(part.running == rank.running.size() && part.running <= config_.max_sequences,
            "{}: {} requests run, recount {}", where(part), part.running, rank.running.size());
  v_.expect(part.waiting == rank.waiting.size(), "{}: {} requests wait, recount {}", where(part),
            part.waiting, rank.waiting.size());
  const std::uint32_t held = held_pages(rank);
  v_.expect(config_.prefix_caching ? part.blocks_active <= held : part.blocks_active == held,
            "{}: {} pages are active, recount {}", where(part), part.blocks_active, held);
  v_.expect(config_.prefix_caching || part.blocks_inactive == 0,
            "{}: pages are cached without prefix caching", where(part));
}

// When KV events must show, and how many pages the tree has then: all but free and private ones
// (S6.4). Also whether the rank is idle now (S7.9).
void SglangAudit::note_flush(SglangRank& rank, const PassRecord& part,
                             std::span<const SglangRow> seen) {
  const bool prefilled = std::ranges::any_of(seen, &SglangRow::prefill);
  if (!seen.empty() && !prefilled) ++rank.decodes;
  const bool chose_nothing = settings_.host_loop ? rank.flight.empty() : seen.empty();
  bool due = prefilled || chose_nothing ||
             (!seen.empty() && rank.decodes % settings_.decode_log_interval == 0);
  bool may_be_due = due;

  const bool lost = loses_somebody(rank, part);
  bool comes = false, may_come = false;
  for (const SglangLife* life : rank.arrivals) {
    const replay::RequestRecord& r = *life->record;
    if (life->ended || life->arrived) continue;
    if (r.arrival >= part.end && r.arrival > part.start) continue;
    may_come = true;
    if (!settings_.frontend.empty()) continue;  // it may be in there still
    comes |= part.start < part.end && !(r.status == Status::Canceled && r.terminal < part.end);
  }
  const bool drained = is_drained(rank);
  const bool idle = drained && !may_come;
  const bool may_be_idle = drained ? !comes : lost && !comes;
  due |= idle;
  may_be_due |= may_be_idle;
  if (settings_.fidelity == scheduler::Fidelity::Exact && idle) rank.ratio = init_ratio_;
  rank.ratio_may_be_new = may_be_idle && !idle;

  std::uint64_t private_pages = 0;
  std::vector<SglangLife*> holders = rank.running;
  if (rank.chunked != nullptr) holders.push_back(rank.chunked);
  for (const SglangLife* life : holders) private_pages += pages(life->computed) - life->tree_pages;
  v_.expect(lost || private_pages <= part.blocks_active, "{}: {} pages are active, {} are private",
            where(part), part.blocks_active, private_pages);
  Flush flush{part.worker, part.rank, part.end, due, may_be_due, {}};
  if (!lost && config_.prefix_caching)
    flush.tree_pages = part.blocks_inactive + part.blocks_active - private_pages;
  flushes_.push_back(flush);
}

bool SglangAudit::is_drained(const SglangRank& rank) const {
  return rank.waiting.empty() && rank.running.empty() && rank.unfit.empty() &&
         rank.chunked == nullptr && rank.flight.empty() && rank.leaving == 0;
}

bool SglangAudit::gone_during(const SglangLife& life, const PassRecord& part) const {
  const replay::RequestRecord& r = *life.record;
  return r.status == Status::Canceled && part.start < r.terminal && r.terminal < part.end;
}

bool SglangAudit::loses_somebody(const SglangRank& rank, const PassRecord& part) const {
  return std::ranges::any_of(rank.arrivals,
                             [&](const SglangLife* life) { return gone_during(*life, part); });
}

std::string SglangAudit::where(const PassRecord& part) const {
  return fmt::format("worker {} rank {} pass {}", part.worker, part.rank, part.pass);
}

void audit_sglang(const replay::Deployment& deployment, const Recording& recording, bool capped,
                  Violations& v) {
  // What was cut off has no record, so that neither its prompt nor its place in the queue is known.
  if (recording.totals.incomplete_at_cap > 0) return;
  SglangAudit(deployment, recording, v).run(capped);
}

}  // namespace servecast::test
