// SPDX-License-Identifier: Apache-2.0
// Who runs in the next pass of a rank, and what happens to its KV: the contract of every engine
// (engine-sglang.md S14.2). Decides and applies; never times: the engine room says when a pass
// ends. vLLM and TensorRT-LLM are vllm/scheduler.hpp, SGLang is sglang/scheduler.hpp.
//
//   const StepShape& shape = scheduler.schedule(now, Admit::Yes);
//   scheduler.complete(now + duration, outcome);
//   scheduler.end_pass(outcome);           // at that time
//
// Two modes give the same results. The reference mode (stepping) computes every request by itself,
// names blocks by real hashes as soon as they are full and keeps every token time. The fast mode
// keeps steady decode as a cohort (cohort.hpp), counts blocks that nobody else can ask for, and
// names blocks by provenance.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/time.hpp"
#include "cache/demands.hpp"
#include "perf/step_timer.hpp"
#include "scheduler/kv_counts.hpp"
#include "scheduler/outcome.hpp"
#include "scheduler/pass_log.hpp"
#include "scheduler/rank_config.hpp"
#include "scheduler/request.hpp"

namespace servecast::scheduler {

enum class Admit : bool { No, Yes };

// What is asked of a scheduler, whatever its engine.
struct RankOptions {
  bool stepping = false;
  bool take_back = false;  // some request may end without completing
  bool trace = false;      // stepping only
  bool events = false;     // stepping only
  bool history = false;    // keep Request::history
  std::uint64_t rank = 0;  // ordinal among the ranks of the role; seeds what is drawn
  // Stepping and the linear pool with prefix caching only: evict what is asked for latest
  // (engine-vllm.md 15); names are real hashes. Null: what was released first.
  const cache::Demands* demands = nullptr;
};

// What a scheduler knows of passes to come while nobody speaks to it.
struct Quiet {
  std::uint32_t passes = 0;     // pure decode, fixed membership, no preemption
  bool then_completes = false;  // the pass after them is such a pass too but ends requests
};

class RankScheduler {
 public:
  using Options = RankOptions;

  virtual ~RankScheduler() = default;

  // Appends to the waiting queue. True when the next pass may treat it, false when it only queues
  // behind a head that is blocked or when no seat is free.
  virtual bool submit(Slot slot, Time now) = 0;
  virtual bool has_work() const = 0;
  // When something happens in it without a pass (engine-sglang.md S14.2), such as the end of a
  // request's preparation; nothing when nothing will. Requests in preparation are no work yet.
  virtual std::optional<Time> next_internal_deadline() const { return std::nullopt; }
  // What is due by `now` happens. Between passes only: in one that is in flight nobody would see
  // it.
  virtual void process_internal(Time /*now*/) {}
  // True when the last schedule() computed tokens, admitted or ended a request.
  virtual bool made_progress() const = 0;

  // Composes the pass that starts now and moves its blocks.
  virtual const perf::StepShape& schedule(Time now, Admit admit) = 0;
  // Gives out the tokens of the pass just scheduled and releases what completes with it. A
  // scheduler that chooses a pass before the last one's result is known (overlaps()) gives out what
  // the pass before gave.
  virtual void complete(Time end, Outcome& outcome) = 0;
  // The pass has ended: what shows only then joins its outcome.
  virtual void end_pass(Outcome&) {}
  virtual bool overlaps() const { return false; }
  // The pass just scheduled has a part that is computed.
  virtual bool launched() const { return made_progress(); }

  virtual Quiet quiet(std::uint32_t passes_max) const = 0;
  virtual std::uint32_t cohort_size() const = 0;
  virtual std::uint64_t cohort_context() const = 0;  // tokens known before the next pass, summed
  // Runs `ends.size()` quiet passes at once. requires: quiet() allowed them.
  virtual void advance(std::span<const Time> ends) = 0;

  // With rules that hold prompts back in some passes of the worker (attention data parallelism).
  // Before a pass: which one of its group it is, from 0 since all ranks were drained.
  virtual void set_wave_step(std::uint64_t) {}
  // After every rank has composed its part, on every rank: `passes` rounds are over, in each of
  // which some rank, or none, computed prompt tokens.
  virtual void end_rounds(bool /*prefilled*/, std::uint64_t /*passes*/) {}
  // No rank of the worker has anybody running.
  virtual void group_is_idle() {}

  // Takes a request out, wherever it is, and frees its blocks at once.
  virtual void cancel(Slot slot, Time now) = 0;

  // When a request got its tokens, as far as passes before number `passes` go. The fast mode needs
  // Options::take_back for it.
  virtual std::vector<Time> token_times(Slot slot, std::uint64_t passes) const = 0;
  // Requests in a list, the running ones first.
  virtual std::vector<Slot> live() const = 0;
  // Requests keep the time of every token, instead of gaps that are handed out with each pass.
  virtual bool keeps_token_times() const = 0;
  // Appends the gaps that a live request has got in passes before number `passes` (fast mode).
  void gaps_of(Slot slot, std::uint64_t passes, std::vector<std::int64_t>& out) const;

  virtual KvCounts kv() const = 0;
  virtual std::uint64_t capacity_tokens() const = 0;  // of the KV cache; 0 in a pool of bytes
  // What a request needs for `target` tokens, and what there is for all: blocks, or bytes where
  // grouped caches run without prefix caching.
  virtual std::uint64_t kv_need(Slot slot, std::uint32_t target) const = 0;
  virtual std::uint64_t kv_limit() const = 0;

  virtual std::uint64_t passes() const = 0;
  virtual std::uint32_t running() const = 0;
  virtual std::uint32_t waiting() const = 0;
  virtual std::uint64_t preemptions() const = 0;
  virtual std::uint64_t prefix_queried_tokens() const = 0;
  virtual std::uint64_t prefix_hit_tokens() const = 0;
  // Checks the invariants.
  virtual void verify() const = 0;

 protected:
  // Forgets, now and then, passes from before any request in a list got a token.
  void trim(PassLog& log, const RequestSlab& requests) const;
};

// The scheduler that the configuration asks for. `requests` outlives it.
std::unique_ptr<RankScheduler> make_rank_scheduler(const RankConfig& config,
                                                   const RankOptions& options,
                                                   RequestSlab& requests);

}  // namespace servecast::scheduler
