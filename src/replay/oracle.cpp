// SPDX-License-Identifier: Apache-2.0
#include "replay/oracle.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "replay/driver.hpp"

namespace servecast::replay {

Oracle::Oracle(const workload::Workload& workload, std::uint32_t block_tokens)
    : prefixes_(block_tokens, true),
      demand_of_(workload.request_count()),
      session_of_(workload.request_count()) {
  Driver driver(workload, true);
  std::vector<scheduler::Request> served;
  for (Time now = driver.next_ready(); now < kNever; now = driver.next_ready()) {
    for (scheduler::Request request; driver.release(now, request); request = {}) {
      add(request);
      served.push_back(std::move(request));
    }
    for (scheduler::Request& request : served) {
      request.ending = scheduler::Ending::Completed;
      request.generated = request.output_tokens;
      driver.ended(request, now);
    }
    served.clear();
  }
}

void Oracle::add(const scheduler::Request& request) {
  names_.clear();
  prefixes_.extend(names_, request);
  demand_of_[request.ordinal] = demands_.add(names_);
  session_of_[request.ordinal] = request.session;
}

void Oracle::ended(const scheduler::Request& request) {
  std::uint64_t ordinal = request.ordinal;
  admitted(ordinal);
  const bool goes_on = request.ending == scheduler::Ending::Completed ||
                       request.ending == scheduler::Ending::Rejected;
  if (goes_on) return;
  while (++ordinal < session_of_.size() && session_of_[ordinal] == request.session) {
    admitted(ordinal);
  }
}

Problems check_foresight(const scheduler::RankConfig& rank, const workload::Workload& workload) {
  Problems problems;
  if (!workload.accumulating() || workload.single_turn()) return problems;
  const auto limit = [&](std::string_view what, std::uint64_t tokens, std::string_view field,
                         std::uint64_t most) {
    if (tokens <= most) return;
    problems.push_back(
        {"replay.foresight",
         "kv_eviction_policy: belady goes not together with sessions whose turns may not get their "
         "whole answer: the longest " +
             std::string(what) + " of traffic.source has " + std::to_string(tokens) +
             " tokens, more than " + std::string(field) + " (" + std::to_string(most) + ")",
         {},
         "raise it, or shorten the sessions, or use lru"});
  };
  const std::string in_worker = "engine.workers.aggregated.";
  limit("request", workload.total_tokens_max(), "engine.context_length",
        rank.max_model_len.value_or(UINT32_MAX));
  limit("request", workload.total_tokens_max(), in_worker + "kv_cache.capacity",
        std::uint64_t{rank.blocks} * rank.block_tokens);
  if (!rank.chunked_prefill)
    limit("prompt", workload.input_tokens_max(),
          in_worker + "scheduler.max_batched_tokens without engine.enable_chunked_prefill",
          rank.max_batched_tokens);
  return problems;
}

}  // namespace servecast::replay
