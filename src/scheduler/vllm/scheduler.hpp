// SPDX-License-Identifier: Apache-2.0
// Who runs in the next pass of a vLLM rank, and what happens to its blocks (engine-vllm.md 4-7).
// Decides and applies; never times: the engine says when a pass ends.
//
//   const StepShape& shape = scheduler.schedule(now, Admit::Yes);
//   scheduler.complete(now + duration, outcome);
//
// Two modes give the same results. The reference mode (stepping) computes every request by itself,
// names blocks by real hashes as soon as they are full and keeps every token time. The fast mode
// keeps steady decode as a cohort (cohort.hpp), counts blocks that nobody else can ask for, and
// names blocks by provenance. A rank with another cache than the linear pool (rank_kv.hpp) is
// computed request by request in both modes, which then differ in names alone.
//
// Invariants: (1) while a cohort is formed, every running request is a member except at most one,
// the tail, which is the last of the running list and unfinished; (2) running requests <=
// max_sequences; (3) a request is in exactly one of the two lists until it ends; (4) preempted and
// ended requests hold no block.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/divider.hpp"
#include "cache/block_pool.hpp"
#include "perf/step_timer.hpp"
#include "scheduler/kv_event.hpp"
#include "scheduler/pass_log.hpp"
#include "scheduler/rank_config.hpp"
#include "scheduler/rank_kv.hpp"
#include "scheduler/request.hpp"
#include "scheduler/spelling.hpp"
#include "scheduler/vllm/cohort.hpp"

namespace servecast::scheduler {

enum class Admit : bool { No, Yes };

// What a pass did to single requests; filled only when captured.
struct PassTrace {
  struct Scheduled {
    std::uint64_t request;
    std::uint32_t from, to;
  };
  struct Admitted {
    std::uint64_t request;
    std::uint32_t reused_tokens;
  };
  struct Output {
    std::uint64_t request;
    std::uint32_t tokens;
    bool completed;
  };
  std::vector<Scheduled> scheduled;
  std::vector<Admitted> admitted;
  struct Preempted {
    std::uint64_t request;
    std::uint32_t blocks;  // held when it was preempted
  };
  std::vector<Preempted> preempted;
  std::vector<std::uint64_t> rejected;
  std::vector<Output> outputs;
};

// What a pass shows when it ends.
struct Outcome {
  // Of decode steps: tokens that verifications gave, also past the end of an output, and how many
  // steps there were (engine-vllm.md 3.5). First tokens do not count.
  std::uint64_t accepted_tokens = 0, decode_forwards = 0;
  std::uint32_t cohort_tokens =
      0;  // tokens that came one pass after the one before, all with that gap
  std::vector<std::int64_t> gaps_ns;  // gaps of other tokens (fast mode)
  std::vector<std::int64_t>
      taken_back;           // gaps of requests that ended without completing (fast mode)
  std::vector<Slot> ended;  // in output order
  // Ordinals of those that it computed something of and that have no token yet: everyone whom it
  // admitted first and did not preempt is among them. Only with Options::demands.
  std::vector<std::uint64_t> admitted;
  PassTrace trace;
  std::vector<KvEvent> events;

  void clear();
};

class VllmScheduler {
 public:
  struct Options {
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
  VllmScheduler(const RankConfig& config, const Options& options, RequestSlab& requests);

  // Appends to the waiting queue. True when the next pass may treat it, false when it only queues
  // behind a head that is blocked or when no seat is free.
  bool submit(Slot slot);
  bool has_work() const { return !running_.empty() || !waiting_.empty(); }
  // Which pass of its group the next one is, from 0 since all ranks were drained. Asked only with a
  // prefill interval.
  void set_wave_step(std::uint64_t step) { wave_step_ = step; }
  // True when the last schedule() computed tokens, admitted or ended a request.
  bool made_progress() const { return progress_; }

  // Composes the pass that starts now and moves its blocks.
  const perf::StepShape& schedule(Time now, Admit admit);
  // Gives out the tokens of the pass just scheduled and releases what completes with it.
  void complete(Time end, Outcome& outcome);

  // What the scheduler knows of passes to come while nobody speaks to it.
  struct Quiet {
    std::uint32_t passes = 0;     // pure decode, fixed membership, no preemption
    bool then_completes = false;  // the pass after them is such a pass too but ends requests
  };
  Quiet quiet(std::uint32_t passes_max) const;
  std::uint32_t cohort_size() const { return cohort_.size(); }
  std::uint64_t cohort_context() const { return cohort_.context(); }
  // Runs `ends.size()` quiet passes at once. requires: quiet() allowed them.
  void advance(std::span<const Time> ends);

  // Takes a waiting or running request out and frees its blocks at once.
  void cancel(Slot slot);

  // When a request got its tokens, as far as passes before number `passes` go. The fast mode needs
  // Options::take_back for it.
  std::vector<Time> token_times(Slot slot, std::uint64_t passes) const;
  // Gaps that a live request has got in passes before number `passes` (fast mode).
  void gaps_of(Slot slot, std::uint64_t passes, std::vector<std::int64_t>& out) const;
  // Calls `visit(slot)` for every request in a list.
  template <class Visit>
  void for_each_live(Visit visit) const {
    for (Slot s = running_.first(); s != kNoSlot; s = requests_[s].after) visit(s);
    for (Slot s = waiting_.first(); s != kNoSlot; s = requests_[s].after) visit(s);
  }

  // Requests keep the time of every token, instead of gaps that are handed out with each pass.
  bool keeps_token_times() const { return each_by_itself_; }
  // The linear pool; unused with another cache. kv() is of the cache that is used.
  const cache::BlockPool& pool() const { return pool_; }
  KvCounts kv() const;
  std::uint64_t passes() const { return pass_; }
  std::uint32_t block_tokens() const { return config_.block_tokens; }
  std::uint32_t running() const { return running_.size(); }
  std::uint32_t waiting() const { return waiting_.size(); }
  std::uint64_t preemptions() const { return preemptions_; }
  std::uint64_t prefix_queried_tokens() const { return prefix_queried_; }
  std::uint64_t prefix_hit_tokens() const { return prefix_hits_; }
  std::uint32_t blocks_for(std::uint32_t tokens) const { return block_.ceiling(tokens); }
  // What a request needs for `target` tokens, and what there is for all: blocks, or bytes where
  // grouped caches run without prefix caching.
  std::uint64_t kv_need(Slot slot, std::uint32_t target) const {
    return kv_ ? kv_->need_alone(slot, target) : blocks_for(target);
  }
  std::uint64_t kv_limit() const { return kv_ ? kv_->limit() : pool_.capacity(); }
  void verify() const;

 private:
  // Why the head of the waiting queue was not admitted.
  enum class Blocked : std::uint8_t { Untested, Seats, Pool, Budget, Throttle };
  struct Scheduled {
    Slot slot;  // kNoSlot: preempted in the same pass
    std::uint32_t from, to;
  };
  enum class Step : std::uint8_t { Done, Blocked, Gone };
  struct Verdict {
    enum class Kind : std::uint8_t { Admit, Wait, Reject, Fail };
    Kind kind;
    // Admit: tokens to compute in this pass. Fail: up to which token there is no room.
    std::uint32_t chunk = 0;
    Blocked blocked = Blocked::Untested;  // Wait
    Reason reason = Reason::None;         // Reject, Fail
    static Verdict admit(std::uint32_t chunk) { return {.kind = Kind::Admit, .chunk = chunk}; }
    static Verdict wait(Blocked blocked) { return {.kind = Kind::Wait, .blocked = blocked}; }
    static Verdict reject(Reason reason) { return {.kind = Kind::Reject, .reason = reason}; }
    static Verdict fail(std::uint32_t target, Reason reason) {
      return {.kind = Kind::Fail, .chunk = target, .reason = reason};
    }
  };

  // Composing a pass (scheduler.cpp).
  bool cohort_fits() const;
  void schedule_cohort();
  void schedule_each();
  Step schedule_running(Slot slot);
  Slot next_victim() const;
  bool preempt_for(Slot slot, std::uint32_t target);
  void fail_running(Slot slot, std::uint32_t target, Reason reason);
  void preempt(Slot victim);
  void note_scheduled(Slot slot, std::uint32_t from, std::uint32_t to);
  // A request in steady decode computes the token behind the `from` computed ones: what
  // note_scheduled would come to, in short.
  void note_decode(Slot slot, std::uint32_t from) {
    requests_[slot].computed = from + 1;
    scheduled_.push_back({slot, from, from + 1});
    --budget_;
    ++shape_.decode_requests;
    shape_.decode_context += from + 1;
    progress_ = true;
  }
  void undo_scheduled(Slot slot);
  void reserve_bursts();
  std::uint32_t tail_chunk() const;

  // Admission (admission.cpp).
  std::uint32_t final_tokens(const Request& request) const;
  void enqueue(Slot slot);
  void admit_waiting(Time now);
  Verdict judge(Request& request);
  void admit(Slot slot, std::uint32_t chunk, Time now);
  void start(Slot slot, std::uint32_t cached, std::uint32_t chunk, Time now);
  void spell_prompt(Request& request);
  void look_up(const Request& request);
  std::uint32_t cached_tokens() const {
    return static_cast<std::uint32_t>(hits_.size()) * config_.block_tokens;
  }
  void reject(Slot slot, Reason reason);
  void fail_waiting(Slot slot, std::uint32_t target, Reason reason);
  bool blocked_for_good() const;

  // With another cache (managed.cpp); the last two with any.
  void begin_managed();
  Step schedule_managed(Slot slot);
  void preempt_managed(Slot victim);
  Verdict judge_managed(Slot slot);
  void admit_managed(Slot slot, std::uint32_t chunk, Time now);
  void verify_managed() const;
  void release_kv(Slot slot, bool asked_again);  // of a request that ends

  // Prefills only now and then (throttle.cpp).
  bool throttles() const { return config_.prefill_schedule_interval > 1; }
  std::uint64_t passes_throttled() const;
  bool somebody_decodes() const;
  bool defers_prefills() const;
  void note_quiet_passes(std::uint64_t passes);
  bool waits_for_step(std::uint32_t new_tokens) const { return defer_prefills_ && new_tokens > 1; }
  bool is_held_back(const Request& request) const {
    return defer_prefills_ && request.computed < request.prompt_tokens;
  }

  // Ending a pass (completion.cpp).
  void take_trace(Outcome& outcome);
  void note_admitted(Outcome& outcome) const;
  void finish_without_tokens(Outcome& outcome);
  void emit(Request& request, Time end, Outcome& outcome);
  std::uint32_t emit_burst(const Scheduled& item, Time end, Outcome& outcome);
  void finish(Slot slot, Outcome& outcome);
  void end_unserved(Slot slot, Ending ending, Outcome& outcome);
  void join(Slot slot);
  void dissolve();
  void form_cohort();
  void trim_log();

  // Blocks of a request (blocks.cpp).
  bool grow(Request& request, std::uint32_t target);
  // Blocks for running requests, out of what they will still need.
  void take_promised(std::uint32_t count) {
    pool_.take(count);
    promised_ -= count;
  }
  // Tokens whose blocks get a name as soon as they are full. In the fast mode nobody else asks for
  // the others.
  std::uint32_t sealable_tokens(const Request& request) const {
    if (!config_.prefix_caching) return 0;
    return options_.stepping ? UINT32_MAX : request.content.shareable_tokens;
  }
  void note_quiet(Request& request) const;
  void seal_computed(Request& request);
  void release_blocks(Request& request, bool asked_again);
  std::uint64_t name_of(const Request& request, std::uint32_t block, std::uint64_t parent);
  struct NamedBlock {
    std::uint32_t block;
    std::uint64_t name, parent;
  };
  void publish_stored(const Request& request, const NamedBlock& sealed, bool continues);
  void publish_removed();

  RankConfig config_;
  Divider block_;  // by the tokens of a block
  Options options_;
  RequestSlab& requests_;
  cache::BlockPool pool_;
  std::unique_ptr<RankKv> kv_;               // null: the linear pool
  std::uint32_t found_cached_ = 0;           // what kv_ found for the candidate judged last
  std::uint32_t fruitless_preemptions_ = 0;  // of kv_, since somebody decoded
  Spelling spelling_;
  RequestList running_, waiting_;
  std::uint64_t promised_ = 0;  // blocks that the running requests need until they are complete
  // Every request is computed by itself and there is no cohort: in the reference mode, where how
  // many tokens a step gives is drawn for each request, and with another cache.
  bool each_by_itself_;
  Cohort cohort_;
  bool cohort_formed_;
  std::optional<AcceptanceSampler> sampler_;
  Slot tail_ = kNoSlot;
  Blocked blocked_ = Blocked::Untested;
  std::uint64_t wave_step_ = 0;
  bool prefill_capacity_bound_ = false;  // a pass free to prefill left somebody waiting

  // The pass being composed.
  perf::StepShape shape_;
  std::uint32_t budget_ = 0;
  bool defer_prefills_ = false;
  bool preempted_ = false;
  Slot after_gone_ = kNoSlot;  // who followed the request that lost its own place
  bool progress_ = false;
  bool nothing_to_generate_ = false;  // some ready request ends without a token
  std::vector<Scheduled> scheduled_;
  std::vector<Slot> failed_, rejected_;
  std::vector<cache::BlockIndex> hits_;
  std::uint32_t hits_active_ = 0;
  std::vector<std::uint64_t> names_;  // scratch
  PassTrace trace_;
  std::vector<KvEvent> events_;

  Time last_end_;
  std::uint64_t pass_ = 0;  // passes completed
  std::uint64_t next_order_ = 0;
  PassLog log_;
  std::uint64_t preemptions_ = 0, prefix_queried_ = 0, prefix_hits_ = 0;
};

}  // namespace servecast::scheduler
