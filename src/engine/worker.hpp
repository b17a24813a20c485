// SPDX-License-Identifier: Apache-2.0
// One worker: its ranks with a clock. A pass is decided at its start and shows its effects at its
// end. Several ranks (attention data parallelism) run in lockstep: those that have work start at
// one time, the pass ends with the slowest, and what each did shows then, in rank order
// (engine-vllm.md 16.1). While nothing outside speaks to the worker it plans a run of passes and
// commits them later; a plan is a list of end times, changes no state, and is dropped without trace
// (architecture.md 4.1, seam-notes 5).
//
//   worker.submit(slot, {now, driven});
//   Time wake = worker.drive(now);       // when idle
//   worker.retire(wake);                 // at that time
//   for (Slot s : worker.ended()) ...  // then clear it
//
// Invariants: (1) at most one of (pass in flight, run) exists; when neither does, the worker is
// idle; (2) the ranks that take part in the pass in flight or in the run are chosen when it starts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.hpp"
#include "engine/gap_ledger.hpp"
#include "engine/rank.hpp"
#include "perf/step_timer.hpp"
#include "scheduler/rank_scheduler.hpp"

namespace servecast::engine {

// A moment of the loop: whether the passes that start at `time` have started already. The only way
// to ask whether a pass whose start is now is in flight.
struct Instant {
  Time time;
  bool driven = false;
};

class Worker {
 public:
  struct Options {
    scheduler::RankOptions scheduler;  // of the first rank; the ordinal counts on
    std::uint32_t ranks = 1;
    std::uint32_t run_passes_max = 64;
  };
  // `config` is that of each rank. `gaps` gets the gaps between adjacent tokens of completed
  // requests; `step_gaps`, wanted only with speculation, those between the steps that gave a
  // request tokens. requires: options.ranks > 0.
  Worker(const scheduler::RankConfig& config, const Options& options, const perf::StepTimer& timer,
         scheduler::RequestSlab& requests, GapLedger& gaps, GapLedger* step_gaps = nullptr);

  // Puts a request into the waiting queue of its rank (Request::rank). What was planned past the
  // pass in flight is dropped if the request could take part in it. Look at idle() and wake()
  // afterwards.
  void submit(scheduler::Slot slot, Instant now);

  bool idle() const { return !in_flight_ && next_ == ends_.size(); }
  bool has_work() const;
  // When to retire next; kNever when idle.
  Time wake() const {
    return in_flight_ ? pass_end_ : next_ < ends_.size() ? ends_.back() : kNever;
  }

  // When something happens in an idle worker without a pass: drive it then. Nothing when nothing
  // will; nothing during a pass, whose end it waits for (engine-sglang.md S14.3-5).
  std::optional<Time> next_internal_deadline() const;

  // Starts the next pass or plans a run. requires: idle(). False when there is nothing to do or the
  // pass would change nothing and take no time; otherwise wake() may be `now` itself.
  bool drive(Time now);
  // Commits every pass that ended by `now`.
  void retire(Time now);
  // The client has gone: the request leaves the queue or the batch at once, its blocks are free,
  // and what the pass in flight computed for it is never shown (engine-vllm.md 3.1). It appears in
  // ended() with what it got until now. requires: it has not ended visibly; in the fast mode the
  // scheduler keeps the pass log (Options::take_back).
  void cancel(scheduler::Slot slot, Instant now);
  // At a time cap: retires, then begins the pass in flight, so that blocks are what they were at
  // that time.
  void settle(Time cap);
  // Takes back the gaps of everything that has not ended (fast mode).
  void take_back_live();

  // Requests that ended since the list was last cleared, in output order, of equal times by rank.
  std::vector<scheduler::Slot>& ended() { return ended_; }
  // Every rank's part of each pass, also of those that had nothing to do.
  std::vector<FinishedPass>& finished() { return finished_; }
  // KV events that showed between passes: a cancellation left a rank without work.
  struct IdleEvents {
    std::uint32_t rank = 0;
    Time at;
    std::vector<scheduler::KvEvent> events;
  };
  std::vector<IdleEvents>& idle_events() { return idle_events_; }

  const std::vector<Rank>& ranks() const { return ranks_; }
  // Of the worker, whether one rank took part or all.
  std::uint64_t passes() const { return passes_; }

 private:
  Rank& rank_of(scheduler::Slot slot);
  void process_internal(Time now);
  bool choose_ranks();
  void begin(Time start, scheduler::Admit admit);
  bool made_progress() const;
  void retire_pass();
  void commit(std::size_t passes);
  void begin_spanning(Instant now);
  bool plan(Time now);
  void time_run();
  void enter_wave(std::uint64_t passes);
  void leave_rounds(bool prefilled, std::uint64_t passes);
  void note_idle_group();
  void end_wave_if_drained();
  Time next_start() const { return next_ == 0 ? run_start_ : ends_[next_ - 1]; }

  std::vector<Rank> ranks_;
  const perf::StepTimer& timer_;
  scheduler::RequestSlab& requests_;
  GapLedger& gaps_;
  GapLedger* step_gaps_;
  bool capture_;
  bool throttles_;  // with a prefill interval: the ranks are told of the worker's passes
  bool prepares_;   // requests go through a frontend first
  std::uint32_t run_passes_max_;

  Time last_end_;  // of the last pass retired
  bool in_flight_ = false;
  Time pass_start_, pass_end_;  // in flight: begun, not ended
  std::vector<FinishedPass> captured_;

  // The run: passes next_, next_ + 1, ... of ends_ are not committed. The last one may end
  // requests.
  Time run_start_;
  std::vector<Time> ends_;
  std::size_t next_ = 0;
  bool last_completes_ = false;
  std::vector<Duration> durations_, others_;  // scratch

  std::vector<scheduler::Slot> ended_;
  std::vector<FinishedPass> finished_;
  std::vector<IdleEvents> idle_events_;
  std::uint64_t passes_ = 0;
  std::uint64_t wave_step_ = 0;  // passes begun since all ranks were drained; if throttles_
};

}  // namespace servecast::engine
