// SPDX-License-Identifier: Apache-2.0
// One attention-data-parallel rank of a worker: a scheduler with a pool of its own, its part of the
// worker's pass in flight, and the account of what it has shown. The worker holds the clock: it
// says when a pass begins and ends.
//
// A pass of the worker, on each rank that takes part:
//   Time end = rank.begin(start, Admit::Yes, timer);  // its part is decided and timed
//   rank.complete(slowest);                           // the pass ends with the slowest part
//   rank.retire(...);                                 // at that time
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/hash.hpp"
#include "base/time.hpp"
#include "engine/gap_ledger.hpp"
#include "perf/step_timer.hpp"
#include "scheduler/rank_scheduler.hpp"

namespace servecast::engine {

// A rank's part of a pass that ended, as the loop hands it on when passes or KV events are
// captured. A rank that had nothing to do has an empty one.
struct FinishedPass {
  std::uint64_t pass = 0;  // of the worker
  std::uint32_t rank = 0;
  Time start, end;
  perf::StepTime time;  // of this rank's part; the pass takes as long as the longest
  perf::StepShape shape;
  scheduler::PassTrace trace;
  std::vector<scheduler::KvEvent> events;
  std::uint32_t blocks_active = 0, blocks_inactive = 0, blocks_free = 0, running = 0, waiting = 0;
  std::uint64_t kv_used_bytes = 0, kv_cached_bytes = 0, kv_capacity_bytes = 0;  // grouped caches
};

class Rank {
 public:
  Rank(const scheduler::RankConfig& config, const scheduler::RankOptions& options,
       scheduler::RequestSlab& requests);

  // Whether it runs in the passes that start from now on: it does when it has work.
  bool join() { return takes_part_ = scheduler_->has_work(); }
  bool takes_part() const { return takes_part_; }

  // Composes its part of the pass that starts at `start`; returns its new tokens.
  std::uint64_t compose(Time start, scheduler::Admit admit);
  // Times it; returns when it would end. `group_tokens` as in StepShape.
  // A scheduler that overlaps launches it then, and the part ends when the one launched before is
  // computed (engine-sglang.md S8.1).
  Time begin(Time start, std::uint64_t group_tokens, const perf::StepTimer& timer);
  bool prefills() const { return shape_.prefill_requests > 0; }
  // Gives out what the part computed. `end` is that of the whole pass.
  void complete(Time end) { scheduler_->complete(end, outcome_); }
  // The pass has ended: counts the gaps that are this rank's own and tells what ended. Returns the
  // tokens that came one pass after the one before; the worker counts their gap. `step_gaps` is
  // there only with speculation.
  std::uint32_t retire(Time end, GapLedger& gaps, GapLedger* step_gaps,
                       std::vector<scheduler::Slot>& ended);
  // Quiet passes, one for each of `ends`. Calls `note(end)` on the way.
  template <class Note>
  void advance(std::span<const Time> ends, Note note) {
    const std::uint32_t size = scheduler_->cohort_size();
    std::uint64_t context = scheduler_->cohort_context();
    for (const Time end : ends) {
      note(end);
      note_pass(end, size, context);
      context += size;
    }
    accepted_tokens_ += size * ends.size();
    decode_forwards_ += size * ends.size();
    scheduler_->advance(ends);
  }

  // Its part of the pass that starts at `start` and ends at `end`, as it has left the pool;
  // requests that come until then do not show.
  FinishedPass capture(Time start, Time end) const;

  scheduler::RankScheduler& scheduler() { return *scheduler_; }
  const scheduler::RankScheduler& scheduler() const { return *scheduler_; }
  // Of the pass in flight, or else of the last one that it took part in.
  scheduler::Outcome& outcome() { return outcome_; }
  const scheduler::Outcome& outcome() const { return outcome_; }
  // Passes that it took part in and that have ended.
  std::uint64_t passes() const { return passes_; }
  // Tokens that decode steps gave, and the steps (engine-vllm.md 3.5); one each without
  // speculation.
  std::uint64_t accepted_tokens() const { return accepted_tokens_; }
  std::uint64_t decode_forwards() const { return decode_forwards_; }
  // Folds every pass (end, batch sums) and every ending (request, status, tokens, reuse), in order.
  std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  void note_pass(Time end, std::uint32_t decode_requests, std::uint64_t decode_context) {
    ++passes_;
    const auto when = static_cast<std::uint64_t>(end.ns);
    fingerprint_ =
        fold(fingerprint_, when ^ (std::uint64_t{decode_requests} << 44) ^ (decode_context << 20));
  }
  void note_changes();
  static void note_gaps(const scheduler::Request& request, GapLedger& gaps, GapLedger* step_gaps);

  std::unique_ptr<scheduler::RankScheduler> scheduler_;
  scheduler::RequestSlab& requests_;

  // Its part of the pass in flight.
  bool takes_part_ = false;
  perf::StepTime time_;
  perf::StepShape shape_;
  scheduler::Outcome outcome_;
  Time device_free_;  // when what has been launched is computed; with a scheduler that overlaps

  std::uint64_t passes_ = 0;
  std::uint64_t accepted_tokens_ = 0, decode_forwards_ = 0;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace servecast::engine
