// SPDX-License-Identifier: Apache-2.0
// One worker: a rank's scheduler with a clock. A pass is decided at its start and shows its effects
// at its end. While nothing outside speaks to the worker it plans a run of passes and commits them
// later; a plan is a list of end times, changes no state, and is dropped without trace
// (architecture.md 4.1, seam-notes 5).
//
//   worker.submit(slot, {now, driven});
//   Time wake = worker.drive(now);       // when idle
//   worker.retire(wake);                 // at that time
//   for (Slot s : worker.ended()) ...  // then clear it
//
// Invariant: at most one of (pass in flight, run) exists; when neither does, the worker is idle.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.hpp"
#include "engine/gap_ledger.hpp"
#include "perf/step_timer.hpp"
#include "scheduler/vllm/scheduler.hpp"

namespace servecast::engine {

// A moment of the loop: whether the passes that start at `time` have started already. The only way
// to ask whether a pass whose start is now is in flight.
struct Instant {
  Time time;
  bool driven = false;
};

// A pass that ended, as the loop hands it on when passes or KV events are captured.
struct FinishedPass {
  std::uint64_t pass = 0;
  Time start, end;
  perf::StepTime time;
  perf::StepShape shape;
  scheduler::PassTrace trace;
  std::vector<scheduler::KvEvent> events;
  std::uint32_t blocks_active = 0, blocks_inactive = 0, blocks_free = 0, running = 0, waiting = 0;
};

class Worker {
 public:
  struct Options {
    scheduler::VllmScheduler::Options scheduler;
    std::uint32_t run_passes_max = 64;
  };
  // `gaps` gets the gaps between adjacent tokens of completed requests; `step_gaps`, wanted only
  // with speculation, those between the steps that gave a request tokens.
  Worker(const scheduler::RankConfig& config, const Options& options, const perf::StepTimer& timer,
         scheduler::RequestSlab& requests, GapLedger& gaps, GapLedger* step_gaps = nullptr);

  // Puts a request into the waiting queue. What was planned past the pass in flight is dropped if
  // the request could take part in it. Look at idle() and wake() afterwards.
  void submit(scheduler::Slot slot, Instant now);

  bool idle() const { return !in_flight_ && next_ == ends_.size(); }
  bool has_work() const { return scheduler_.has_work(); }
  // When to retire next; kNever when idle.
  Time wake() const {
    return in_flight_ ? pass_.end : next_ < ends_.size() ? ends_.back() : kNever;
  }

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

  // Requests that ended since the list was last cleared, in output order.
  std::vector<scheduler::Slot>& ended() { return ended_; }
  std::vector<FinishedPass>& finished() { return finished_; }

  const scheduler::VllmScheduler& scheduler() const { return scheduler_; }
  std::uint64_t passes() const { return passes_; }
  // Tokens that decode steps gave, and the steps (engine-vllm.md 3.5); one each without
  // speculation.
  std::uint64_t accepted_tokens() const { return accepted_tokens_; }
  std::uint64_t decode_forwards() const { return decode_forwards_; }
  // Folds every pass (end, batch sums) and every ending (request, status, tokens, reuse), in order.
  std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  struct Pass {
    Time start, end;
    perf::StepTime time;
    perf::StepShape shape;
    scheduler::Outcome outcome;
  };
  void begin(Time start, scheduler::Admit admit);
  void retire_pass();
  void commit(std::size_t passes);
  void begin_spanning(Instant now);
  bool plan(Time now);
  void note_changes();
  void note_gaps(const scheduler::Request& request);
  void note_pass(Time end, std::uint32_t decode_requests, std::uint64_t decode_context);
  Time next_start() const { return next_ == 0 ? run_start_ : ends_[next_ - 1]; }

  scheduler::VllmScheduler scheduler_;
  const perf::StepTimer& timer_;
  scheduler::RequestSlab& requests_;
  GapLedger& gaps_;
  GapLedger* step_gaps_;
  bool capture_;
  std::uint32_t run_passes_max_;

  Time last_end_;  // of the last pass retired
  bool in_flight_ = false;
  Pass pass_;  // in flight: begun, not ended
  FinishedPass captured_;

  // The run: passes next_, next_ + 1, ... of ends_ are not committed. The last one may end
  // requests.
  Time run_start_;
  std::vector<Time> ends_;
  std::size_t next_ = 0;
  bool last_completes_ = false;
  std::vector<Duration> durations_;  // scratch

  std::vector<scheduler::Slot> ended_;
  std::vector<FinishedPass> finished_;
  std::uint64_t passes_ = 0;
  std::uint64_t accepted_tokens_ = 0, decode_forwards_ = 0;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace servecast::engine
