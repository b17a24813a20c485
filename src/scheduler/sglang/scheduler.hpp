// SPDX-License-Identifier: Apache-2.0
// Who runs in the next pass of an SGLang rank, and what happens to its KV (engine-sglang.md S3-S8,
// S11-S13). A pass either prefills or decodes: while prompts fit, running requests wait. A prompt
// enters the radix tree when its prefill has been observed, what a request generates when it ends;
// until then pages are private to the request, and counted.
//
// The fast mode keeps the running requests as a cohort: a prefill leaves its members untouched, a
// decode pass gives each a token. With speculation, mixed chunks or the overlapping host loop
// requests are computed one by one in both modes, which then differ in names alone.
//
// Invariants: (1) a request is in exactly one of the frontend, waiting, chunked and running until
// it ends; (2) only running and chunked requests hold pages: the first prefix_blocks of them in the
// tree, which is locked down to prefix_node, the others private; (3) pages of the tree, private
// pages and free pages are all there are; (4) while a cohort is formed every running request is a
// member.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/divider.hpp"
#include "base/random.hpp"
#include "cache/radix_tree.hpp"
#include "scheduler/cohort.hpp"
#include "scheduler/pass_log.hpp"
#include "scheduler/rank_scheduler.hpp"
#include "scheduler/sglang/frontend_pools.hpp"
#include "scheduler/sglang/radix_kv.hpp"
#include "scheduler/sglang/reserved_output.hpp"
#include "scheduler/sglang/vision_cache.hpp"
#include "scheduler/speculation.hpp"

namespace servecast::scheduler {

// Request::emitted_in of a request that has no token since it was retracted.
inline constexpr std::uint64_t kNoPass = UINT64_MAX;

class SglangScheduler final : public RankScheduler {
 public:
  // `config.sglang` is what holds for this rank alone (rank_settings).
  SglangScheduler(const RankConfig& config, const Options& options, RequestSlab& requests);

  bool submit(Slot slot, Time now) override;
  bool has_work() const override;
  std::optional<Time> next_internal_deadline() const override;
  void process_internal(Time now) override;
  bool made_progress() const override { return progress_; }

  const perf::StepShape& schedule(Time now, Admit admit) override;
  void complete(Time end, Outcome& outcome) override;
  void end_pass(Outcome& outcome) override;
  bool overlaps() const override { return settings_.host_loop; }
  bool launched() const override { return !flight_.empty(); }

  Quiet quiet(std::uint32_t passes_max) const override;
  std::uint32_t cohort_size() const override { return cohort_.size(); }
  std::uint64_t cohort_context() const override { return cohort_.context(); }
  void advance(std::span<const Time> ends) override;

  void end_rounds(bool prefilled, std::uint64_t passes) override;
  void group_is_idle() override;

  void cancel(Slot slot, Time now) override;

  std::vector<Time> token_times(Slot slot, std::uint64_t passes) const override;
  std::vector<Slot> live() const override;
  bool keeps_token_times() const override { return each_by_itself_; }

  KvCounts kv() const override { return kv_.counts(); }
  std::uint64_t capacity_tokens() const override { return shape_.capacity_tokens; }
  std::uint64_t kv_need(Slot slot, std::uint32_t target) const override;
  std::uint64_t kv_limit() const override { return kv_.capacity(); }
  std::uint64_t passes() const override { return pass_; }
  std::uint32_t running() const override { return running_.size(); }  // not the chunked one
  std::uint32_t waiting() const override { return waiting_.size(); }
  std::uint64_t preemptions() const override { return retractions_; }
  std::uint64_t prefix_queried_tokens() const override { return prefix_queried_; }
  std::uint64_t prefix_hit_tokens() const override { return prefix_hits_; }
  double new_token_ratio() const { return ratio_; }
  void verify() const override;

 private:
  // One request's part of a pass. `ordinal` and `order` tell whether the slot still holds the
  // request that was scheduled: the order changes when it is retracted or ends.
  struct Row {
    Slot slot;
    std::uint64_t ordinal, order = 0;
    std::uint32_t from = 0, to = 0;  // tokens computed
    std::uint32_t tokens = 0;        // that it gives
    bool chunk = false;              // prefill: more of the prompt is to come
    bool late = false;  // prefill: its first token had no place and comes with a decode pass
    bool last = false;  // what it gives ends the request
  };
  // What a pass computes.
  struct Flight {
    std::vector<Row> prefill, decode;
    bool empty() const { return prefill.empty() && decode.empty(); }
    void clear() {
      prefill.clear();
      decode.clear();
    }
  };
  // A request that was canceled while its pass was in flight.
  struct Canceled {
    Slot slot;
    std::uint64_t ordinal;
    std::uint32_t known;  // tokens
    bool lingers;         // is in one batch more [F-ghost]
    RadixKv::Leaving kv;
  };
  // What a prefill may still take (S7.3).
  struct Budget {
    double total;                // tokens of KV, less what running requests are expected to need
    std::uint64_t input, chunk;  // tokens computed
    std::uint32_t seats;
    bool nobody_runs;  // the head of the queue needs no room for its output then
  };
  struct Candidate {
    std::uint32_t prefix = 0;  // tokens that need no computing
    std::uint32_t take = 0;    // tokens behind them that the pass computes
    std::uint64_t charge = 0;  // of them, in whole pages
    std::uint64_t output = 0;  // reserved for what it will generate
  };

  // Composing a pass (scheduler.cpp).
  std::uint64_t pages_to_admit(const Request& request) const;
  bool receive(Slot slot);
  Reason unfit_reason(const Request& request) const;
  void reject_unfit();
  void commit_chunk();
  void decay_ratio();
  std::uint32_t passes_blocked(std::uint32_t passes) const;

  // Prefill (prefill.cpp).
  std::uint64_t reserved() const;
  double total_budget(std::uint64_t room, std::uint64_t reserved, double ratio) const;
  Budget budget() const;
  std::optional<Candidate> fit(Slot slot, const Budget& budget, bool first) const;
  bool passes_gates(const Candidate& candidate, const Budget& budget, bool later) const;
  void build_prefill(Time now);
  bool continue_chunk(Budget& left);
  void charge(const Candidate& candidate, Budget& left) const;
  bool passes_locked(Slot slot, const Candidate& candidate, const Budget& left);
  bool admit(Slot slot, const Candidate& candidate, Budget& left, Time now);
  void note_prefill(Slot slot, std::uint32_t from);
  void encode_images();
  void launch_prefill();
  void reserve_first_slots();

  // Decode and retraction (decode.cpp, retraction.cpp).
  bool is_ghost(const Request& request) const { return request.remaining() == 0; }
  std::uint32_t burst() const { return config_.speculation ? config_.speculation->width() : 1; }
  std::uint32_t places_after(const Request& request) const;
  std::uint64_t pages_needed() const;
  void build_decode();
  void build_decode_each();
  void build_mixed(Time now);
  bool make_room();
  Row& add_decode(const Row& row);
  void note_decode(Slot slot);
  void note_ghost(Slot slot);
  void note_lingering();
  std::uint32_t lingering() const;
  void retract(Slot slot, std::uint64_t survivors);
  void take_back(Slot slot);
  void estimate_ratio();
  void fail_last();

  // Ending a pass (completion.cpp).
  void observe_prefill(Flight& flight, Time end, Outcome& outcome);
  void observe_launched(const Flight& flight, Time end, Outcome& outcome);
  void observe_decode(Flight& flight, Time end, Outcome& outcome);
  void complete_cohort(Time end, Outcome& outcome);
  std::uint32_t emit_burst(Request& request, Time end, Outcome& outcome);
  void emit(Request& request, Time end, Outcome& outcome);
  void show(const Row& row, std::uint32_t tokens, Outcome& outcome) const;
  void finish(Slot slot, Outcome& outcome);
  void take_out(Slot slot);
  void settle(Slot slot);
  void end_unserved(Slot slot, Ending ending, Outcome& outcome);
  void take_trace(Outcome& outcome);
  bool is_current(const Row& row) const {
    const Request& request = requests_[row.slot];
    return request.admission_order == row.order && request.ordinal == row.ordinal;
  }
  void join(Slot slot);
  void dissolve();
  void form_cohort();

  // The order in which waiting requests are looked at (policy.cpp).
  bool has_moving_order() const;
  void order_waiting();
  cache::RadixTree::Match policy_match(Slot slot);
  void order_by_prefix();
  void order_by_subtree();
  void requeue_as(const std::vector<Slot>& order);

  RankConfig config_;
  SglangSettings settings_;
  Divider page_;
  Options options_;
  RequestSlab& requests_;
  RadixKv kv_;
  std::optional<AcceptanceSampler> sampler_;
  std::optional<FrontendPools> frontend_;
  std::optional<VisionCache> vision_;
  bool each_by_itself_;
  std::uint32_t ahead_;  // tokens that have their place before they are computed (F-slot)

  RequestList waiting_, running_;
  Slot chunked_ = kNoSlot;
  std::vector<Slot> unfit_;  // submitted, will never run
  Cohort cohort_;
  ReservedOutput reserved_;  // of the cohort
  bool cohort_formed_;
  double init_ratio_, min_ratio_, ratio_decay_;
  double ratio_;
  std::uint32_t countdown_ = 0;  // rounds that still may not prefill (S12.3)
  Random shuffle_;               // of SglangPolicy::Random

  // The pass being composed, and the one before with the overlapping host loop.
  perf::StepShape shape_;
  Flight flight_, before_;
  bool cohort_decodes_ = false;
  bool retracted_ = false;
  bool progress_ = false;
  std::vector<Slot> failed_, rejected_;
  std::vector<Canceled> canceled_;
  PassTrace trace_;
  std::vector<Slot> rows_;               // scratch
  std::vector<workload::Image> images_;  // scratch

  std::uint64_t pass_ = 0;         // passes completed
  std::uint64_t last_decode_ = 0;  // pass number after the last decode pass
  Time last_decode_end_;
  std::uint64_t decodes_observed_ = 0;
  std::uint64_t next_order_ = 1;
  PassLog log_;
  std::uint64_t retractions_ = 0, prefix_queried_ = 0, prefix_hits_ = 0;
};

}  // namespace servecast::scheduler
