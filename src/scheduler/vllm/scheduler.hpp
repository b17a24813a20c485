// SPDX-License-Identifier: Apache-2.0
// Who runs in the next pass of a vLLM or TensorRT-LLM rank, and what happens to its blocks
// (engine-vllm.md 4-7). A rank with another cache than the linear pool (rank_kv.hpp) is computed
// request by request in both modes, which then differ in names alone.
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
#include "scheduler/cohort.hpp"
#include "scheduler/kv_event.hpp"
#include "scheduler/pass_log.hpp"
#include "scheduler/rank_config.hpp"
#include "scheduler/rank_kv.hpp"
#include "scheduler/rank_scheduler.hpp"
#include "scheduler/request.hpp"
#include "scheduler/spelling.hpp"

namespace servecast::scheduler {

class VllmScheduler final : public RankScheduler {
 public:
  VllmScheduler(const RankConfig& config, const Options& options, RequestSlab& requests);

  bool submit(Slot slot, Time now) override;
  bool has_work() const override { return !running_.empty() || !waiting_.empty(); }
  void set_wave_step(std::uint64_t step) override { wave_step_ = step; }
  bool made_progress() const override { return progress_; }

  const perf::StepShape& schedule(Time now, Admit admit) override;
  void complete(Time end, Outcome& outcome) override;

  Quiet quiet(std::uint32_t passes_max) const override;
  std::uint32_t cohort_size() const override { return cohort_.size(); }
  std::uint64_t cohort_context() const override { return cohort_.context(); }
  void advance(std::span<const Time> ends) override;

  void cancel(Slot slot, Time now) override;

  std::vector<Time> token_times(Slot slot, std::uint64_t passes) const override;
  std::vector<Slot> live() const override;
  bool keeps_token_times() const override { return each_by_itself_; }
  // The linear pool; unused with another cache. kv() is of the cache that is used.
  const cache::BlockPool& pool() const { return pool_; }
  KvCounts kv() const override;
  std::uint64_t capacity_tokens() const override {
    return pool_.capacity() * std::uint64_t{config_.block_tokens};
  }
  std::uint64_t passes() const override { return pass_; }
  std::uint32_t running() const override { return running_.size(); }
  std::uint32_t waiting() const override { return waiting_.size(); }
  std::uint64_t preemptions() const override { return preemptions_; }
  std::uint64_t prefix_queried_tokens() const override { return prefix_queried_; }
  std::uint64_t prefix_hit_tokens() const override { return prefix_hits_; }
  std::uint32_t blocks_for(std::uint32_t tokens) const { return block_.ceiling(tokens); }
  std::uint64_t kv_need(Slot slot, std::uint32_t target) const override {
    return kv_ ? kv_->need_alone(slot, target) : blocks_for(target);
  }
  std::uint64_t kv_limit() const override { return kv_ ? kv_->limit() : pool_.capacity(); }
  void verify() const override;

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
