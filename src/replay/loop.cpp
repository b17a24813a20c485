// SPDX-License-Identifier: Apache-2.0
#include "replay/loop.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace servecast::replay {
namespace {

using scheduler::Slot;

// Requests named in the error that says that nothing can happen any more.
constexpr int kStuckNamed = 8;
// Endings between two calls of the progress function.
constexpr std::uint64_t kProgressEvery = 1024;

Status status_of(scheduler::Ending ending) {
  switch (ending) {
    case scheduler::Ending::Completed:
      return Status::Completed;
    case scheduler::Ending::Rejected:
      return Status::Rejected;
    case scheduler::Ending::Canceled:
      return Status::Canceled;
    case scheduler::Ending::Failed:
      return Status::Failed;
    case scheduler::Ending::None:
      break;
  }
  SERVECAST_CHECK(false);
  return Status::Failed;
}

Reason reason_of(scheduler::Reason reason) {
  switch (reason) {
    case scheduler::Reason::None:
      return Reason::None;
    case scheduler::Reason::ModelLength:
      return Reason::ModelLength;
    case scheduler::Reason::PoolTooSmall:
      return Reason::PoolTooSmall;
    case scheduler::Reason::PromptExceedsStepBudget:
      return Reason::PromptExceedsStepBudget;
    case scheduler::Reason::KvCapacity:
      return Reason::KvCapacity;
    case scheduler::Reason::OversizedPass:  // ends the run without a record
      break;
  }
  SERVECAST_CHECK(false);
  return Reason::None;
}

// Captured KV events need real hashes in running order, captured passes name every request, and the
// oracle knows real hashes: all are the reference mode's own work, so they use it. Authored output
// tokens may spell what another prompt says, which names by provenance cannot tell.
bool needs_reference_mode(const Deployment& deployment, const workload::Workload& workload,
                          const Options& options) {
  return options.stepping || options.capture_passes || options.capture_kv_events ||
         workload.has_authored_outputs() || deployment.kv_eviction_policy == EvictionPolicy::Belady;
}

// Some request may end without completing: its gaps must not count.
bool may_take_back(const Deployment& deployment, const workload::Workload& workload,
                   const Options& options) {
  const std::uint64_t pool = std::uint64_t{deployment.rank.blocks} * deployment.rank.block_tokens;
  return options.cap.has_value() || workload.may_cancel() || workload.total_tokens_max() > pool;
}

GapTable table_of(const engine::GapLedger& ledger) {
  const engine::GapLedger::Sums sums = ledger.sums();
  return {.gaps_ns = ledger.table(),
          .exact = ledger.exact(),
          .count = sums.count,
          .sum_ns = sums.ns,
          .sum_squares_ns = sums.squares_ns};
}

router::Target target_of(const scheduler::Request& request) {
  return {request.worker, request.rank};
}

std::uint64_t load_of(const scheduler::Request& request) {
  return std::uint64_t{request.prompt_tokens} + request.output_tokens;
}

}  // namespace

Loop::Loop(const Deployment& deployment, const workload::Workload& workload, const Options& options,
           RecordSink& sink)
    : deployment_(deployment),
      workload_(workload),
      options_(options),
      sink_(sink),
      stepping_(needs_reference_mode(deployment, workload, options)),
      wakes_(deployment.workers),
      router_(deployment.router,
              {.workers = deployment.workers, .ranks = deployment.ranks_per_worker}),
      driver_(workload, stepping_),
      is_ready_(deployment.workers),
      events_(std::size_t{deployment.workers} * deployment.ranks_per_worker) {
  engine::Worker::Options worker;
  worker.ranks = deployment.ranks_per_worker;
  worker.scheduler.stepping = stepping_;
  worker.scheduler.take_back = may_take_back(deployment, workload, options);
  worker.scheduler.trace = options.capture_passes;
  worker.scheduler.events = options.capture_kv_events && deployment.rank.prefix_caching;
  worker.scheduler.history = options.capture_requests;
  if (deployment.kv_eviction_policy == EvictionPolicy::Belady) {
    oracle_.emplace(workload, deployment.rank.block_tokens);
    worker.scheduler.demands = &oracle_->demands();
  }
  worker.run_passes_max =
      options.run_passes_max > 0 ? options.run_passes_max : deployment.timer->run_passes_max();
  if (deployment.rank.speculation) step_gaps_.emplace();
  for (std::uint32_t w = 0; w < deployment.workers; ++w) {
    worker.scheduler.rank = std::uint64_t{w} * deployment.ranks_per_worker;
    workers_.emplace_back(deployment.rank, worker, *deployment.timer, requests_, gaps_,
                          step_gaps_ ? &*step_gaps_ : nullptr);
  }
}

Result<RunTotals> Loop::run() {
  drain(Time{});
  if (auto problem = trouble()) return fail(*std::move(problem));
  for (;;) {
    Time next = std::min(wakes_.time(), driver_.next_ready());
    if (!cancellations_.empty()) next = std::min(next, next_cancellation());
    if (next == kNever) break;
    if (options_.cap && next > *options_.cap) {
      stop_at_cap();
      return totals();
    }
    SERVECAST_CHECK(next > now_);
    now_ = next;
    drain(now_);
    if (auto problem = trouble()) return fail(*std::move(problem));
  }
  if (!driver_.drained()) return fail(nothing_can_happen());
  for (const engine::Worker& worker : workers_) {
    for (const engine::Rank& rank : worker.ranks()) {
      const scheduler::KvCounts kv = rank.scheduler().kv();
      SERVECAST_CHECK(kv.active == 0 && kv.used_bytes == 0);
    }
  }
  return totals();
}

// Everything of one instant, until a round changes nothing. Passes that start in the first round do
// not see what later rounds release.
void Loop::drain(Time now) {
  for (bool driven = false, changed = true; changed; driven = true) {
    changed = end_passes(now);
    if (!cancellations_.empty()) changed |= cancel_due(now, driven);
    changed |= release_arrivals(now, driven);
    changed |= drive_workers(now);
  }
}

bool Loop::end_passes(Time now) {
  bool changed = false;
  while (wakes_.time() == now) {
    const std::uint32_t worker = wakes_.pop();
    retire(worker, now);
    make_ready(worker);
    changed = true;
  }
  return changed;
}

// A slot may have another request by now, or none.
bool Loop::is_live(const Cancellation& due) const {
  return requests_[due.slot].ordinal == due.ordinal;
}

Time Loop::next_cancellation() {
  while (!cancellations_.empty() && !is_live(cancellations_.front())) {
    std::pop_heap(cancellations_.begin(), cancellations_.end(), std::greater<>());
    cancellations_.pop_back();
  }
  return cancellations_.empty() ? kNever : cancellations_.front().at;
}

// After what ends at this instant, so that a client that has its answer is not canceled, and before
// what arrives at it. Equal times by creation.
bool Loop::cancel_due(Time now, bool driven) {
  bool changed = false;
  while (next_cancellation() <= now) {
    const Slot slot = cancellations_.front().slot;
    const std::uint32_t worker = requests_[slot].worker;
    workers_[worker].cancel(slot, {now, driven});
    record_passes(worker);
    record_ended(worker, now);
    look_again(worker);
    changed = true;
  }
  return changed;
}

// What a worker had planned has changed.
void Loop::look_again(std::uint32_t worker) {
  wakes_.set(worker, workers_[worker].wake());
  if (workers_[worker].idle()) make_ready(worker);
}

bool Loop::release_arrivals(Time now, bool driven) {
  bool changed = false;
  while (driver_.next_ready() <= now) {
    const Slot slot = requests_.add();
    scheduler::Request& request = requests_[slot];
    const bool released = driver_.release(now, request);
    SERVECAST_CHECK(released);
    const auto [worker, rank] = router_.place(load_of(request));
    request.worker = worker;
    request.rank = rank;
    ++counts_.requests;
    if (counts_.first_arrival == kNever) counts_.first_arrival = request.arrival;
    engine::Worker& engine = workers_[worker];
    const Time wake_before = engine.wake();
    engine.submit(slot, {now, driven});
    if (engine.idle()) {
      wakes_.set(worker, kNever);
      make_ready(worker);
    } else if (engine.wake() != wake_before) {
      wakes_.set(worker, engine.wake());
    }
    if (driver_.cancel_at() != kNever) {
      cancellations_.push_back({driver_.cancel_at(), request.ordinal, slot});
      std::push_heap(cancellations_.begin(), cancellations_.end(), std::greater<>());
    }
    changed = true;
  }
  return changed;
}

void Loop::make_ready(std::uint32_t worker) {
  if (is_ready_[worker]) return;
  is_ready_[worker] = true;
  ready_.push_back(worker);
  std::push_heap(ready_.begin(), ready_.end(), std::greater<>());
}

// The lowest idle worker first, one pass at a time; a pass of no duration ends at once.
bool Loop::drive_workers(Time now) {
  bool changed = false;
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end(), std::greater<>());
    const std::uint32_t worker = ready_.back();
    ready_.pop_back();
    is_ready_[worker] = false;
    engine::Worker& engine = workers_[worker];
    if (!engine.idle()) continue;
    if (!engine.drive(now)) {
      rest(worker);
      continue;
    }
    changed = true;
    if (engine.wake() > now) {
      past_end_of_time_ |= engine.wake() >= kNever;
      wakes_.set(worker, engine.wake());
      continue;
    }
    retire(worker, now);
    make_ready(worker);
  }
  return changed;
}

// The worker has nothing to run. Something may happen in it by itself, after which it may have.
void Loop::rest(std::uint32_t worker) {
  const std::optional<Time> due = workers_[worker].next_internal_deadline();
  if (!due) return;
  past_end_of_time_ |= *due >= kNever;
  wakes_.set(worker, *due);
}

void Loop::retire(std::uint32_t worker, Time now) {
  workers_[worker].retire(now);
  record_passes(worker);
  if (oracle_) tell_oracle(worker);
  record_ended(worker, now);
}

// A pass of the worker has ended. What an idle rank says again is known.
void Loop::tell_oracle(std::uint32_t worker) {
  for (const engine::Rank& rank : workers_[worker].ranks()) {
    for (const std::uint64_t ordinal : rank.outcome().admitted) oracle_->admitted(ordinal);
  }
}

void Loop::record_ended(std::uint32_t worker, Time now) {
  std::vector<Slot>& ended = workers_[worker].ended();
  for (const Slot slot : ended) {
    const scheduler::Request& request = requests_[slot];
    if (oracle_) oracle_->ended(request);
    if (request.reason == scheduler::Reason::OversizedPass) {
      if (!oversized_) oversized_ = pass_is_oversized(request, now);
    } else {
      sink_.on_request(record_of(request, now));
    }
    router_.ended(target_of(request), load_of(request));
    past_end_of_time_ |= !driver_.ended(request, now);
    requests_.remove(slot);
    if (++ended_ % kProgressEvery == 0 && options_.progress) {
      options_.progress(ended_, workload_.request_count());
    }
  }
  ended.clear();
}

RequestRecord Loop::record_of(const scheduler::Request& request, Time now) {
  RequestRecord record;
  record.ordinal = request.ordinal;
  record.session = request.session;
  record.turn = request.turn;
  record.row = request.row;
  record.status = status_of(request.ending);
  record.reason = reason_of(request.reason);
  record.arrival = request.arrival;
  record.first_admit = request.first_admit;
  record.first_token = request.first_token;
  record.second_token = request.second_token;
  record.last_token = request.last_token;
  record.terminal = now;
  record.input_tokens = request.prompt_tokens;
  record.requested_output_tokens = request.output_tokens;
  record.output_tokens = request.generated;
  record.reused_tokens = request.reused_max;
  record.reused_tokens_first = request.reused_first;
  record.worker = request.worker;
  record.rank = request.rank;
  record.ranks = deployment_.ranks_per_worker;
  record.admissions = request.admissions;
  record.preemptions = request.preemptions;
  record.kv_needed = request.kv_needed;
  if (request.kv_needed > 0) record.kv_available = rank_of(request).scheduler().kv_limit();
  record.kv_in_bytes = deployment_.rank.counts_bytes();
  if (options_.capture_requests) {
    history_.clear();
    for (const scheduler::AdmissionRecord& a : request.history)
      history_.push_back({a.at, a.reused_tokens});
    record.history = history_;
  }
  return record;
}

void Loop::record_passes(std::uint32_t worker) {
  std::vector<engine::FinishedPass>& finished = workers_[worker].finished();
  for (engine::FinishedPass& pass : finished) {
    if (options_.capture_passes) {
      PassRecord record;
      record.worker = worker;
      record.rank = pass.rank;
      record.ranks = deployment_.ranks_per_worker;
      record.pass = pass.pass;
      record.start = pass.start;
      record.end = pass.end;
      record.vision = pass.time.vision;
      record.images = pass.shape.images;
      record.prefill = pass.time.prefill;
      record.decode = pass.time.decode;
      record.prefill_requests = pass.shape.prefill_requests;
      record.decode_requests = pass.shape.decode_requests;
      record.total_isl = pass.shape.prefill_isl;
      record.total_prefix = pass.shape.prefill_prefix;
      record.total_length = pass.shape.decode_context;
      for (const auto& s : pass.trace.scheduled)
        record.scheduled.push_back({s.request, s.from, s.to});
      for (const auto& a : pass.trace.admitted)
        record.admitted.push_back({a.request, a.reused_tokens});
      for (const auto& o : pass.trace.outputs)
        record.outputs.push_back({o.request, o.tokens, o.completed});
      for (const auto& p : pass.trace.preempted) record.preempted.push_back({p.request, p.blocks});
      record.rejected = std::move(pass.trace.rejected);
      record.blocks_active = pass.blocks_active;
      record.blocks_inactive = pass.blocks_inactive;
      record.blocks_free = pass.blocks_free;
      record.running = pass.running;
      record.new_token_ratio = pass.trace.new_token_ratio;
      record.waiting = pass.waiting;
      record.kv_used_bytes = pass.kv_used_bytes;
      record.kv_cached_bytes = pass.kv_cached_bytes;
      record.kv_capacity_bytes = pass.kv_capacity_bytes;
      sink_.on_pass(record);
    }
    record_events(worker, pass.rank, pass.end, pass.events);
  }
  finished.clear();
  for (engine::Worker::IdleEvents& idle : workers_[worker].idle_events())
    record_events(worker, idle.rank, idle.at, idle.events);
  workers_[worker].idle_events().clear();
}

void Loop::record_events(std::uint32_t worker, std::uint32_t rank, Time at,
                         std::vector<scheduler::KvEvent>& events) {
  for (scheduler::KvEvent& event : events) {
    KvEventRecord record;
    record.at = at;
    record.worker = worker;
    record.rank = rank;
    record.ranks = deployment_.ranks_per_worker;
    record.event = events_[worker * deployment_.ranks_per_worker + rank]++;
    record.stored = event.stored;
    record.group = event.group;
    if (event.session) record.session = static_cast<std::uint32_t>(*event.session);
    record.has_parent = event.has_parent;
    record.parent = event.parent;
    for (const auto& block : event.blocks) record.blocks.push_back({block.hash, block.tokens_hash});
    record.tokens = std::move(event.tokens);
    sink_.on_kv_event(record);
  }
}

// What is in flight now ends without a record; its tokens count nowhere.
void Loop::stop_at_cap() {
  capped_ = true;
  for (std::uint32_t w = 0; w < deployment_.workers; ++w) {
    workers_[w].settle(*options_.cap);
    record_passes(w);
    workers_[w].take_back_live();
  }
  counts_.incomplete_at_cap = driver_.in_flight();
}

// What ends the run before its workload does.
std::optional<Problem> Loop::trouble() const {
  if (past_end_of_time_) return time_ran_out();
  return oversized_;
}

// A setting of the deployment, not something about the request: others would meet it too, so a run
// that went on would show a server that nobody would start (engine-vllm.md 5.4 item 5).
const engine::Rank& Loop::rank_of(const scheduler::Request& request) const {
  return workers_[request.worker].ranks()[request.rank];
}

Problem Loop::pass_is_oversized(const scheduler::Request& request, Time now) const {
  Problem problem;
  problem.code = "replay.pass_exceeds_kv";
  problem.fault = Fault::Execution;
  problem.message = "a pass of request " + std::to_string(request.ordinal + 1) + " (" +
                    std::to_string(request.prompt_tokens) + " prompt tokens) needs " +
                    std::to_string(request.kv_needed) + " bytes of KV at " +
                    std::to_string(to_ms(now)) + " ms; the pool of its rank has " +
                    std::to_string(rank_of(request).scheduler().kv_limit());
  problem.hint = "lower scheduler.max_batched_tokens or add cache memory";
  return problem;
}

Problem Loop::time_ran_out() const {
  Problem problem;
  problem.code = "replay.time_ran_out";
  problem.fault = Fault::Execution;
  problem.message = "simulated time passes its limit of 146 years; at " +
                    std::to_string(to_ms(now_)) + " ms " + std::to_string(driver_.in_flight()) +
                    " requests are in flight";
  problem.hint = "shorten durations and delays, or set traffic.stop.max_virtual_time_seconds";
  return problem;
}

Problem Loop::nothing_can_happen() const {
  Problem problem;
  problem.code = "replay.no_progress";
  problem.fault = Fault::Execution;
  problem.message = "nothing can happen any more at " + std::to_string(to_ms(now_)) + " ms with " +
                    std::to_string(driver_.in_flight()) + " requests in flight:";
  int named = 0;
  for (std::uint32_t w = 0; w < deployment_.workers; ++w) {
    for (const engine::Rank& rank : workers_[w].ranks()) {
      const scheduler::RankScheduler& scheduler = rank.scheduler();
      const scheduler::KvCounts kv = scheduler.kv();
      const bool in_bytes = deployment_.rank.counts_bytes();
      const std::uint64_t room = in_bytes ? kv.capacity_bytes - kv.used_bytes : kv.room();
      const char* unit = in_bytes ? " bytes, " : " blocks, ";
      for (const Slot slot : scheduler.live()) {
        if (++named > kStuckNamed) break;
        const scheduler::Request& request = requests_[slot];
        problem.message += " request " + std::to_string(request.ordinal + 1) + " (" +
                           (request.state == scheduler::State::Running ? "running" : "waiting") +
                           " on worker " + std::to_string(w) + ", needs " +
                           std::to_string(scheduler.kv_need(slot, request.known())) + unit +
                           std::to_string(room) + " available)";
      }
    }
  }
  if (named > kStuckNamed) problem.message += " and others";
  return problem;
}

RunTotals Loop::totals() const {
  RunTotals totals = counts_;
  totals.end = capped_ ? *options_.cap : now_;
  totals.workers = deployment_.workers;
  totals.ranks_per_worker = deployment_.ranks_per_worker;
  totals.gpus_per_worker = deployment_.gpus_per_worker;
  for (const engine::Worker& worker : workers_) {
    totals.passes += worker.passes();
    for (const engine::Rank& rank : worker.ranks()) {
      const scheduler::RankScheduler& scheduler = rank.scheduler();
      const scheduler::KvCounts kv = scheduler.kv();
      totals.accepted_tokens += rank.accepted_tokens();
      totals.decode_forwards += rank.decode_forwards();
      totals.preemptions += scheduler.preemptions();
      totals.evictions += kv.evictions;
      totals.prefix_queried_tokens += scheduler.prefix_queried_tokens();
      totals.prefix_hit_tokens += scheduler.prefix_hit_tokens();
      totals.fingerprint = fold(totals.fingerprint, rank.fingerprint());
      totals.pools.push_back(
          {kv.active, kv.inactive, kv.free, kv.used_bytes, kv.cached_bytes, kv.capacity_bytes});
    }
  }
  totals.gaps = table_of(gaps_);
  if (step_gaps_) totals.step_gaps = table_of(*step_gaps_);
  return totals;
}

}  // namespace servecast::replay
