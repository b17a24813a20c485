// SPDX-License-Identifier: Apache-2.0
#include "support/audit.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/hash.hpp"
#include "cache/grouped_bytes.hpp"
#include "support/audit_laws.hpp"

namespace servecast::test {
namespace {

bool happened(Time time) {
  return time != kNever;
}

// Blocks that a request of so many computed tokens holds beside what it shares.
std::uint32_t blocks_of(const scheduler::RankConfig& rank, std::uint32_t tokens) {
  return (tokens + rank.block_tokens - 1) / rank.block_tokens +
         (rank.state ? rank.state->blocks : 0);
}

std::uint32_t pool_blocks(const scheduler::RankConfig& rank) {
  if (!rank.grouped) return rank.blocks;
  return rank.grouped->rules ? rank.grouped->rules->blocks : 0;
}

// What bytes say of grouped caches must agree with what their blocks say (engine-vllm.md I11).
template <class Counts>
bool bytes_add_up(const scheduler::RankConfig& rank, std::uint32_t active, std::uint32_t inactive,
                  const Counts& bytes) {
  if (!rank.grouped) return bytes.used == 0 && bytes.cached == 0 && bytes.capacity == 0;
  if (bytes.capacity != rank.grouped->capacity_bytes) return false;
  if (!rank.grouped->rules) return bytes.cached == 0 && bytes.used <= bytes.capacity;
  const std::uint64_t page = rank.grouped->rules->page_bytes;
  return bytes.used == active * page && bytes.cached == inactive * page;
}
struct Bytes {
  std::uint64_t used, cached, capacity;
};

void audit_record(const replay::Deployment& deployment, const replay::RequestRecord& r,
                  Violations& v) {
  using replay::Reason;
  using replay::Status;
  const std::uint64_t id = r.ordinal;
  Time before = r.arrival;
  for (const Time moment : {r.first_admit, r.first_token, r.second_token, r.last_token}) {
    if (!happened(moment)) continue;
    // The only token of a one-token answer is also its last; second_token is then absent.
    v.expect(before <= moment, "request {}: moments are out of order", id);
    before = moment;
  }
  v.expect(before <= r.terminal, "request {}: ends before its last moment", id);
  v.expect(happened(r.first_token) == (r.output_tokens > 0), "request {}: first token time", id);
  v.expect(happened(r.last_token) == (r.output_tokens > 0), "request {}: last token time", id);
  v.expect(happened(r.second_token) == (r.output_tokens > 1), "request {}: second token time", id);
  v.expect(r.worker < deployment.workers, "request {}: worker {} does not exist", id, r.worker);
  v.expect(r.rank < deployment.ranks_per_worker, "request {}: rank {} does not exist", id, r.rank);
  v.expect(r.reused_tokens <= r.input_tokens, "request {}: reuse exceeds the input", id);
  v.expect(r.reused_tokens_first <= r.reused_tokens, "request {}: first reuse exceeds all", id);
  v.expect(deployment.rank.prefix_caching || r.reused_tokens == 0,
           "request {}: reuse without prefix caching", id);
  v.expect(happened(r.first_admit) == (r.admissions > 0), "request {}: admission time", id);
  if (r.status == Status::Completed) {
    v.expect(r.admissions == r.preemptions + 1, "request {}: {} admissions, {} preemptions", id,
             r.admissions, r.preemptions);
    std::uint32_t want = r.requested_output_tokens;
    if (const auto limit = deployment.rank.max_model_len) {
      v.expect(r.input_tokens < *limit, "request {}: prompt passes max_model_len", id);
      want = std::min(want, *limit - std::min(*limit, r.input_tokens));
    }
    const scheduler::RankConfig& rank = deployment.rank;
    if (rank.rules.promises_output) {
      want = std::min(want, rank.blocks * rank.block_tokens - r.input_tokens);
      v.expect(r.preemptions == 0, "request {}: preempted in spite of the promise", id);
    }
    v.expect(r.output_tokens == want, "request {}: {} output tokens instead of {}", id,
             r.output_tokens, want);
    v.expect(r.reason == Reason::None, "request {}: completed with a reason", id);
  }
  if (r.status == Status::Rejected) {
    v.expect(r.output_tokens == 0 && r.admissions == 0 && r.reused_tokens == 0,
             "request {}: rejected after it was admitted", id);
    v.expect(r.reason != Reason::None, "request {}: rejected without a reason", id);
    if (r.reason == Reason::PoolTooSmall && !deployment.rank.sglang) {
      const scheduler::RankConfig& rank = deployment.rank;
      v.expect(rank.grouped || r.kv_needed == blocks_of(rank, r.input_tokens),
               "request {}: needs {} blocks", id, r.kv_needed);
      v.expect(r.kv_in_bytes == rank.counts_bytes(), "request {}: the wrong unit", id);
      v.expect(r.kv_available == (r.kv_in_bytes ? rank.grouped->capacity_bytes : pool_blocks(rank)),
               "request {}: {} blocks or bytes available", id, r.kv_available);
      v.expect(r.kv_needed > r.kv_available || (deployment.rank.rules.promises_output &&
                                                r.input_tokens == rank.blocks * rank.block_tokens),
               "request {}: the pool is large enough", id);
    }
    if (r.reason == Reason::ModelLength) {
      v.expect(deployment.rank.max_model_len && r.input_tokens >= *deployment.rank.max_model_len,
               "request {}: fits max_model_len", id);
    }
  }
  if (r.status == Status::Failed) {
    v.expect(r.reason == Reason::KvCapacity, "request {}: failed without kv_capacity", id);
    v.expect(r.kv_needed > r.kv_available, "request {}: failed although it fits", id);
  }
}

void audit_totals(const replay::Deployment& deployment, const Recording& recording, bool capped,
                  Violations& v) {
  const replay::RunTotals& t = recording.totals;
  v.expect(t.requests == recording.requests.size() + t.incomplete_at_cap,
           "{} requests arrived, {} ended, {} are incomplete", t.requests,
           recording.requests.size(), t.incomplete_at_cap);
  v.expect(capped || t.incomplete_at_cap == 0, "requests are incomplete without a cap");
  v.expect(t.workers == deployment.workers && t.ranks_per_worker == deployment.ranks_per_worker &&
               t.pools.size() == std::size_t{t.workers} * t.ranks_per_worker,
           "totals name {} workers, {} ranks of each and {} pools", t.workers, t.ranks_per_worker,
           t.pools.size());
  // The forward of somebody who left may be in flight at the cap; its pages stay until its end.
  const bool in_flight = capped && deployment.rank.sglang && deployment.rank.sglang->host_loop;
  for (std::size_t p = 0; p < t.pools.size(); ++p) {
    const replay::PoolState& pool = t.pools[p];
    v.expect(pool.active + pool.inactive + pool.free == pool_blocks(deployment.rank),
             "pool {}: the blocks of the pool do not add up", p);
    v.expect(bytes_add_up(deployment.rank, pool.active, pool.inactive,
                          Bytes{pool.used_bytes, pool.cached_bytes, pool.capacity_bytes}),
             "pool {}: its bytes do not add up", p);
    v.expect((pool.active == 0 && pool.used_bytes == 0) || t.incomplete_at_cap > 0 || in_flight,
             "pool {}: {} blocks or {} bytes leaked", p, pool.active, pool.used_bytes);
    v.expect(deployment.rank.prefix_caching || pool.inactive == 0,
             "pool {}: cached blocks without prefix caching", p);
  }
  v.expect(t.prefix_hit_tokens <= t.prefix_queried_tokens, "more prefix hits than queries");
  std::uint64_t gaps = 0;
  std::int64_t previous = -1;
  for (const auto& [gap, count] : t.gaps.gaps_ns) {
    v.expect(gap > previous && count > 0, "the gap table is not ascending or holds an empty row");
    previous = gap;
    gaps += count;
  }
  v.expect(gaps == t.gaps.count, "the gap table holds {} gaps, its count says {}", gaps,
           t.gaps.count);
  for (std::size_t i = 1; i < recording.requests.size(); ++i) {
    v.expect(recording.requests[i - 1].record.ordinal < recording.requests[i].record.ordinal,
             "request {} ended twice", recording.requests[i].record.ordinal);
  }
}

const std::vector<cache::KvGroup> kNoGroups = {};

struct Life : Account {
  std::uint32_t computed = 0;
  std::uint32_t computed_before = 0;  // its last step
  std::uint32_t ahead = 0;  // slots held for tokens that are not computed: the last of a burst
  std::uint32_t worker = 0, rank = 0;
  bool running = false, ended = false;
  const replay::PassRecord* prefilled_in = nullptr;  // the last pass that computed prompt tokens
};

class PassAudit {
 public:
  PassAudit(const replay::Deployment& deployment, const Recording& recording, Violations& v)
      : deployment_(deployment), recording_(recording), v_(v) {
    for (const RecordedRequest& request : recording.requests) {
      lives_[request.record.ordinal].record = &request.record;
      if (request.record.status == replay::Status::Canceled) canceled_.push_back(&request.record);
    }
  }

  void run(bool capped) {
    const std::size_t ranks = deployment_.ranks_per_worker;
    const std::span<const replay::PassRecord> all = recording_.passes;
    const replay::PassRecord* previous = nullptr;
    for (std::size_t i = 0; i < all.size(); i += ranks) {
      const Parts parts = all.subspan(i, std::min(ranks, all.size() - i));
      const bool first = previous == nullptr || previous->worker != parts.front().worker;
      follows(first ? nullptr : previous, parts.front());
      run_together(parts);
      drop_canceled(parts.front());
      // Who left the queue in the middle of a pass is not told, so what followed is not known.
      const bool follows_queues = !capped && canceled_.empty();
      if (follows_queues) throttle(first, parts);
      for (const replay::PassRecord& pass : parts) one(pass);
      if (follows_queues) note_queues(parts);
      previous = &parts.front();
    }
    std::vector<std::pair<std::uint64_t, const Account*>> accounts;
    for (const auto& [id, life] : lives_) accounts.emplace_back(id, &life);
    if (!capped) compare_accounts(deployment_, recording_, accounts, v_);
    compare_gaps(recording_, accounts, capped, v_);
  }

 private:
  using Parts = std::span<const replay::PassRecord>;  // of one pass: one for each rank

  // Lockstep: one start, and the end of the longest part (engine-vllm.md 16.1).
  void run_together(Parts parts) {
    const replay::PassRecord& first = parts.front();
    const std::string where = fmt::format("worker {} pass {}", first.worker, first.pass);
    v_.expect(parts.size() == deployment_.ranks_per_worker, "{}: has {} parts", where,
              parts.size());
    Duration longest;
    for (std::size_t r = 0; r < parts.size(); ++r) {
      const replay::PassRecord& part = parts[r];
      v_.expect(part.worker == first.worker && part.pass == first.pass && part.rank == r,
                "{}: its part {} is that of worker {} rank {} pass {}", where, r, part.worker,
                part.rank, part.pass);
      v_.expect(part.start == first.start && part.end == first.end,
                "{}: rank {} has other times than rank 0", where, r);
      longest = std::max(longest, part.vision + part.prefill + part.decode);
    }
    v_.expect(first.start + longest == first.end, "{}: its parts do not add up to its duration",
              where);
  }

  // Which ranks held prompts back, and whether they did (engine-vllm.md 5.1.4).
  void throttle(bool first_of_worker, Parts parts) {
    if (first_of_worker) {
      wave_step_ = 0;
      bound_.assign(parts.size(), false);
    }
    deferred_.assign(parts.size(), false);
    const std::uint32_t interval = deployment_.rank.prefill_schedule_interval;
    if (parts.size() == 1 || wave_step_ % interval == 0) return;
    for (const auto& [id, life] : lives_) {
      const bool here = life.running && life.worker == parts.front().worker;
      if (!here || life.record == nullptr || life.computed < life.record->input_tokens) continue;
      deferred_[life.rank] = !bound_[life.rank];
    }
    for (const replay::PassRecord& part : parts) {
      if (!deferred_[part.rank]) continue;
      for (const auto& item : part.scheduled) {
        const Life& life = lives_[item.request];
        if (life.record == nullptr) continue;
        const std::size_t known = life.record->input_tokens + life.tokens.size();
        const bool held_back = life.running ? life.computed < life.record->input_tokens
                                            : known > item.from + 1;  // admitted in this pass
        v_.expect(!held_back, "worker {} rank {} pass {}: request {} is not held back in step {}",
                  part.worker, part.rank, part.pass, item.request, wave_step_);
      }
    }
  }

  void note_queues(Parts parts) {
    bool drained = true;
    for (const replay::PassRecord& part : parts) {
      if (!deferred_[part.rank] && part.preempted.empty()) bound_[part.rank] = part.waiting > 0;
      drained &= part.running + part.waiting == 0;
    }
    ++wave_step_;
    if (!drained) return;
    // Whoever came during the pass does not show in it.
    for (const RecordedRequest& request : recording_.requests) {
      const replay::RequestRecord& r = request.record;
      const bool came = r.worker == parts.front().worker && r.arrival < parts.front().end;
      if (came && !lives_[r.ordinal].ended) return;
    }
    wave_step_ = 0;
  }

  void follows(const replay::PassRecord* previous, const replay::PassRecord& pass) {
    v_.expect(pass.pass == (previous == nullptr ? 0 : previous->pass + 1),
              "worker {} pass {}: passes are not consecutive", pass.worker, pass.pass);
    v_.expect(previous == nullptr || previous->end <= pass.start,
              "worker {} pass {}: starts before the pass above ended", pass.worker, pass.pass);
  }

  void one(const replay::PassRecord& pass) {
    const scheduler::RankConfig& rank = deployment_.rank;
    const std::string where =
        fmt::format("worker {} rank {} pass {}", pass.worker, pass.rank, pass.pass);
    v_.expect(pass.blocks_active + pass.blocks_inactive + pass.blocks_free == pool_blocks(rank),
              "{}: the blocks of the pool do not add up", where);
    v_.expect(bytes_add_up(rank, pass.blocks_active, pass.blocks_inactive,
                           Bytes{pass.kv_used_bytes, pass.kv_cached_bytes, pass.kv_capacity_bytes}),
              "{}: the bytes of the pool do not add up", where);
    v_.expect(pass.running <= rank.max_sequences, "{}: {} requests run", where, pass.running);
    perf::StepShape shape;
    shape.capacity_tokens = std::uint64_t{rank.blocks} * rank.block_tokens;
    follow_admitted(where, pass);
    follow_preempted(where, pass);
    follow_scheduled(where, pass, shape);
    follow_outputs(where, pass, shape);
    if (loses_somebody(pass)) return;
    if (all_recorded(pass)) compare_shape(where, pass, shape);
    if (!rank.prefix_caching) audit_blocks(where, pass);
  }

  // Clients that went away before this pass began.
  void drop_canceled(const replay::PassRecord& pass) {
    for (const replay::RequestRecord* r : canceled_) {
      if (r->worker != pass.worker || r->terminal > pass.start) continue;
      Life& life = lives_[r->ordinal];
      life.running = false;
      life.ended = true;
    }
  }
  // What a pass computed for a client that went away meanwhile does not show.
  bool loses_somebody(const replay::PassRecord& pass) const {
    return std::any_of(canceled_.begin(), canceled_.end(), [&](const replay::RequestRecord* r) {
      return r->worker == pass.worker && pass.start < r->terminal && r->terminal < pass.end;
    });
  }

  void follow_admitted(const std::string& where, const replay::PassRecord& pass) {
    for (const auto& admitted : pass.admitted) {
      Life& life = lives_[admitted.request];
      v_.expect(!life.running, "{}: request {} is admitted while it runs", where, admitted.request);
      audit_reuse(where, life, admitted);
      life.running = true;
      life.worker = pass.worker;
      life.rank = pass.rank;
      v_.expect(life.record == nullptr ||
                    (life.record->worker == pass.worker && life.record->rank == pass.rank),
                "{}: request {} was placed elsewhere", where, admitted.request);
      life.computed = admitted.reused_tokens;
      life.admit(pass.start, admitted.reused_tokens);
    }
  }

  // What was preempted does not run again in the same pass.
  void follow_preempted(const std::string& where, const replay::PassRecord& pass) {
    for (const auto& [request, blocks] : pass.preempted) {
      Life& life = lives_[request];
      v_.expect(life.running, "{}: request {} is preempted while it waits", where, request);
      v_.expect(blocks <= pool_blocks(deployment_.rank), "{}: request {} held {} blocks", where,
                request, blocks);
      life.running = false;
      life.ahead = 0;
      life.preemptions += 1;
    }
  }

  void follow_scheduled(const std::string& where, const replay::PassRecord& pass,
                        perf::StepShape& shape) {
    std::uint64_t budget_used = 0;
    for (const auto& item : pass.scheduled) {
      Life& life = lives_[item.request];
      v_.expect(life.running, "{}: request {} is scheduled while it waits", where, item.request);
      v_.expect(item.from == life.computed, "{}: request {} computes from {}, had computed {}",
                where, item.request, item.from, life.computed);
      v_.expect(item.to >= item.from, "{}: request {} computes backwards", where, item.request);
      life.computed = item.to;
      life.computed_before = item.from;
      life.ahead = 0;
      budget_used += item.to - item.from;
      life.prefilled_in = nullptr;
      if (life.record == nullptr) continue;
      const std::uint32_t input = life.record->input_tokens;
      v_.expect(item.to <= input + life.tokens.size(), "{}: request {} computes unknown tokens",
                where, item.request);
      const std::uint32_t from = std::min(item.from, input);
      const std::uint32_t to = std::min(item.to, input);
      if (to == from) continue;
      life.prefilled_in = &pass;
      shape.prefill_requests += 1;
      shape.prefill_isl += to;
      shape.prefill_prefix += from;
      shape.prefill_attention += std::uint64_t{to - from} * (2 * std::uint64_t{from} + to - from);
    }
    v_.expect(budget_used <= deployment_.rank.max_batched_tokens, "{}: {} tokens pass the budget",
              where, budget_used);
  }

  void follow_outputs(const std::string& where, const replay::PassRecord& pass,
                      perf::StepShape& shape) {
    for (const auto& output : pass.outputs) {
      Life& life = lives_[output.request];
      const auto& speculation = deployment_.rank.speculation;
      if (output.tokens > 0 && life.record != nullptr) {
        const std::uint64_t known = life.record->input_tokens + life.tokens.size();
        v_.expect(life.computed == known, "{}: request {} emits with {} of {} tokens computed",
                  where, output.request, life.computed, known);
        // Without speculation the prefill gives the first token.
        if (speculation || !life.tokens.empty() || life.prefilled_in != &pass) {
          shape.decode_requests += 1;
          shape.decode_context += known;
        }
      }
      if (speculation && output.tokens > 0) {  // a burst: all but its last token are computed
        v_.expect(output.tokens <= speculation->width(), "{}: request {} emits {} tokens", where,
                  output.request, output.tokens);
        shape.decode_tokens_each = speculation->width();
        life.computed += output.tokens - 1;
        life.ahead = 1;
      }
      life.give(pass.end, output.tokens);
      if (output.completed || output.tokens == 0) {
        life.running = false;
        life.ended = true;
        v_.expect(life.record == nullptr || life.record->terminal == pass.end,
                  "{}: request {} does not end with the pass", where, output.request);
      }
    }
  }

  // A request without a record (cut off by the cap) leaves its prompt length unknown.
  bool all_recorded(const replay::PassRecord& pass) {
    bool all = true;
    for (const auto& item : pass.scheduled) all &= lives_[item.request].record != nullptr;
    for (const auto& output : pass.outputs) all &= lives_[output.request].record != nullptr;
    return all;
  }

  // Whole units, and never the last token of a request that still has to sample (bugs.md A06),
  // where the rules say so.
  void audit_reuse(const std::string& where, const Life& life,
                   const replay::PassRecord::Admitted& admitted) {
    v_.expect(admitted.reused_tokens % match_unit(deployment_.rank) == 0,
              "{}: request {} reuses a part of a unit", where, admitted.request);
    if (life.record == nullptr || life.record->requested_output_tokens == 0) return;
    if (!deployment_.rank.rules.recomputes_last) return;
    v_.expect(admitted.reused_tokens < life.record->input_tokens + life.tokens.size(),
              "{}: request {} has nothing left to sample from", where, admitted.request);
  }

  // Without sharing, every running request holds the blocks of what it has computed (bugs.md A15).
  void audit_blocks(const std::string& where, const replay::PassRecord& pass) {
    const scheduler::RankConfig& rank = deployment_.rank;
    std::uint32_t held = 0;
    std::uint64_t bytes = 0;
    std::uint32_t running = 0;
    for (const auto& [id, life] : lives_) {
      if (!life.running || life.worker != pass.worker || life.rank != pass.rank) continue;
      if (!rank.grouped) held += blocks_of(rank, life.computed + life.ahead);
      for (const cache::KvGroup& group : rank.grouped ? rank.grouped->groups : kNoGroups)
        bytes += cache::live_blocks(group, life.computed_before, life.computed).size() *
                 group.page_size_bytes;
      running += 1;
    }
    v_.expect(pass.kv_used_bytes == bytes, "{}: {} bytes are used, recount {}", where,
              pass.kv_used_bytes, bytes);
    v_.expect(pass.running == running, "{}: {} requests run, recount {}", where, pass.running,
              running);
    v_.expect(pass.blocks_active == held, "{}: {} blocks are active, recount {}", where,
              pass.blocks_active, held);
  }

  void compare_shape(const std::string& where, const replay::PassRecord& pass,
                     const perf::StepShape& shape) {
    v_.expect(pass.prefill_requests == shape.prefill_requests,
              "{}: {} prefill requests, recount {}", where, pass.prefill_requests,
              shape.prefill_requests);
    v_.expect(pass.total_isl == shape.prefill_isl, "{}: total_isl {}, recount {}", where,
              pass.total_isl, shape.prefill_isl);
    v_.expect(pass.total_prefix == shape.prefill_prefix, "{}: total_prefix {}, recount {}", where,
              pass.total_prefix, shape.prefill_prefix);
    v_.expect(pass.decode_requests == shape.decode_requests, "{}: {} decode requests, recount {}",
              where, pass.decode_requests, shape.decode_requests);
    v_.expect(pass.total_length == shape.decode_context, "{}: total_length {}, recount {}", where,
              pass.total_length, shape.decode_context);
    const perf::StepTime time = deployment_.timer->time(shape);
    v_.expect(pass.prefill == time.prefill && pass.decode == time.decode,
              "{}: lasts {} + {} ns, the timer says {} + {} ns", where, pass.prefill.ns,
              pass.decode.ns, time.prefill.ns, time.decode.ns);
  }

  const replay::Deployment& deployment_;
  const Recording& recording_;
  Violations& v_;
  std::map<std::uint64_t, Life> lives_;
  std::vector<const replay::RequestRecord*> canceled_;
  std::uint64_t wave_step_ = 0;
  std::vector<bool> bound_, deferred_;  // of each rank of the worker
};

}  // namespace

std::vector<std::string> audit(const replay::Deployment& deployment, const Recording& recording,
                               bool capped) {
  Violations v;
  for (const Problem& problem : recording.problems) {
    v.expect(false, "the run failed: {}", to_text(problem));
  }
  if (!recording.problems.empty()) return v.take();
  for (const RecordedRequest& request : recording.requests) {
    audit_record(deployment, request.record, v);
  }
  audit_totals(deployment, recording, capped, v);
  if (recording.has_passes && deployment.rank.sglang) {
    audit_sglang(deployment, recording, capped, v);
  } else if (recording.has_passes) {
    PassAudit(deployment, recording, v).run(capped);
  }
  if (recording.has_events) audit_events(deployment, recording, capped, v);
  return v.take();
}

}  // namespace servecast::test
