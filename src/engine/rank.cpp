// SPDX-License-Identifier: Apache-2.0
#include "engine/rank.hpp"

#include <algorithm>

namespace servecast::engine {

using scheduler::Admit;
using scheduler::Request;
using scheduler::Slot;

Rank::Rank(const scheduler::RankConfig& config, const scheduler::RankOptions& options,
           scheduler::RequestSlab& requests)
    : scheduler_(scheduler::make_rank_scheduler(config, options, requests)), requests_(requests) {}

// What a pass of steady decode does not have: prompt tokens and endings.
void Rank::note_changes() {
  if (shape_.prefill_requests > 0) {
    fingerprint_ = fold(fingerprint_, shape_.prefill_isl);
    fingerprint_ =
        fold(fingerprint_, shape_.prefill_prefix ^ (std::uint64_t{shape_.prefill_requests} << 44));
  }
  for (const Slot slot : outcome_.ended) {
    const Request& request = requests_[slot];
    fingerprint_ = fold(fingerprint_, request.ordinal ^ (std::uint64_t(request.ending) << 60) ^
                                          (std::uint64_t(request.reason) << 56));
    fingerprint_ =
        fold(fingerprint_, (std::uint64_t{request.generated} << 32) | request.reused_max);
  }
}

std::uint64_t Rank::compose(Time start, Admit admit) {
  shape_ = scheduler_->schedule(start, admit);
  return shape_.prefill_isl - shape_.prefill_prefix +
         std::uint64_t{shape_.decode_requests} * shape_.decode_tokens_each;
}

Time Rank::begin(Time start, std::uint64_t group_tokens, const perf::StepTimer& timer) {
  shape_.group_tokens = group_tokens;
  time_ = timer.time(shape_);
  const Duration computing = time_.sum();
  if (!scheduler_->overlaps()) return start + computing;
  const Time end = std::max(start, device_free_);
  if (scheduler_->launched()) device_free_ = end + computing;
  return end;
}

void Rank::note_gaps(const Request& request, GapLedger& gaps, GapLedger* step_gaps) {
  const std::vector<Time>& times = request.token_times;
  for (std::size_t i = 1; i < times.size(); ++i) gaps.add((times[i] - times[i - 1]).ns, 1);
  std::size_t first = 0;  // token of a step
  for (const std::uint32_t size : request.burst_sizes) {
    if (first > 0) step_gaps->add((times[first] - times[first - 1]).ns, 1);
    first += size;
  }
}

std::uint32_t Rank::retire(Time end, GapLedger& gaps, GapLedger* step_gaps,
                           std::vector<Slot>& ended) {
  scheduler_->end_pass(outcome_);
  if (outcome_.held_tokens > 0)
    gaps.add((end - outcome_.held_since).ns, static_cast<std::int64_t>(outcome_.held_tokens));
  for (const std::int64_t gap : outcome_.gaps_ns) gaps.add(gap, 1);
  for (const std::int64_t gap : outcome_.taken_back) gaps.add(gap, -1);
  if (scheduler_->keeps_token_times()) {
    for (const Slot slot : outcome_.ended) {
      if (requests_[slot].ending == scheduler::Ending::Completed)
        note_gaps(requests_[slot], gaps, step_gaps);
    }
  }
  const bool differs = step_gaps != nullptr || scheduler_->overlaps();
  accepted_tokens_ += differs ? outcome_.accepted_tokens : shape_.decode_requests;
  decode_forwards_ += differs ? outcome_.decode_forwards : shape_.decode_requests;
  ended.insert(ended.end(), outcome_.ended.begin(), outcome_.ended.end());
  note_pass(end, shape_.decode_requests, shape_.decode_context);
  note_changes();
  return outcome_.cohort_tokens;
}

FinishedPass Rank::capture(Time start, Time end) const {
  const scheduler::KvCounts kv = scheduler_->kv();
  FinishedPass captured{.start = start,
                        .end = end,
                        .time = {},
                        .shape = {},
                        .trace = {},
                        .events = {},
                        .blocks_active = kv.active,
                        .blocks_inactive = kv.inactive,
                        .blocks_free = kv.free,
                        .running = scheduler_->running(),
                        .waiting = scheduler_->waiting(),
                        .kv_used_bytes = kv.used_bytes,
                        .kv_cached_bytes = kv.cached_bytes,
                        .kv_capacity_bytes = kv.capacity_bytes};
  if (takes_part_) {
    captured.time = time_;
    captured.shape = shape_;
  }
  return captured;
}

}  // namespace servecast::engine
