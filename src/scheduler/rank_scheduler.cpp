// SPDX-License-Identifier: Apache-2.0
#include "scheduler/rank_scheduler.hpp"

#include <algorithm>

#include "scheduler/sglang/scheduler.hpp"
#include "scheduler/vllm/scheduler.hpp"

namespace servecast::scheduler {

void Outcome::clear() {
  accepted_tokens = decode_forwards = 0;
  cohort_tokens = held_tokens = 0;
  gaps_ns.clear();
  taken_back.clear();
  ended.clear();
  events.clear();
}

void RankScheduler::gaps_of(Slot slot, std::uint64_t passes, std::vector<std::int64_t>& out) const {
  const std::vector<Time> times = token_times(slot, passes);
  for (std::size_t i = 1; i < times.size(); ++i) out.push_back((times[i] - times[i - 1]).ns);
}

void RankScheduler::trim(PassLog& log, const RequestSlab& requests) const {
  if (!log.wants_trim()) return;
  std::uint64_t oldest = passes();
  for (const Slot slot : live()) {
    const Request& request = requests[slot];
    if (!request.token_passes.empty())
      oldest = std::min(oldest, request.token_passes.front().first);
  }
  log.trim(oldest);
}

std::unique_ptr<RankScheduler> make_rank_scheduler(const RankConfig& config,
                                                   const RankOptions& options,
                                                   RequestSlab& requests) {
  if (config.sglang) return std::make_unique<SglangScheduler>(config, options, requests);
  return std::make_unique<VllmScheduler>(config, options, requests);
}

}  // namespace servecast::scheduler
