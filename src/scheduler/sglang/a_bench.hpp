// SPDX-License-Identifier: Apache-2.0
// An SGLang rank for tests, without the engine around it.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "scheduler/sglang/scheduler.hpp"

namespace servecast::scheduler {

// Requests whose prompts say what they share: a number a token.
class SglangRequests {
 public:
  Slot add(std::uint32_t prompt, std::uint32_t output, std::vector<std::uint32_t> ids = {}) {
    const Slot slot = slab.add();
    Request& request = slab[slot];
    request.ordinal = next_ordinal_++;
    request.prompt_tokens = prompt;
    request.output_tokens = output;
    Content& content = request.content;
    content.owner = request.ordinal;
    content.prompt_first = request.ordinal * 1000003;
    content.plan_offset = request.ordinal * 100000;
    if (ids.empty()) return slot;
    SERVECAST_CHECK(ids.size() == prompt);
    content.ids = kept_.emplace_back(std::move(ids));
    content.trace_block = 1;
    content.shared_tokens = content.shareable_tokens = prompt;
    return slot;
  }

  RequestSlab slab;

 private:
  std::deque<std::vector<std::uint32_t>> kept_;
  std::uint64_t next_ordinal_ = 0;
};

// The tokens first, first + 1, ...
inline std::vector<std::uint32_t> text(std::uint32_t tokens, std::uint32_t first = 1) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < tokens; ++i) ids.push_back(first + i);
  return ids;
}

inline RankConfig an_sglang_rank(std::uint32_t blocks, std::uint32_t block_tokens,
                                 const SglangSettings& settings = {}) {
  RankConfig config;
  config.blocks = blocks;
  config.block_tokens = block_tokens;
  config.sglang = settings;
  return config;
}

// Passes of 10 ns, verified after each.
class SglangBench {
 public:
  SglangBench(const RankConfig& config, bool stepping)
      : scheduler(config,
                  {.stepping = stepping,
                   .take_back = true,
                   .trace = stepping,
                   .events = stepping,
                   .history = true},
                  requests.slab) {}

  Slot submit(std::uint32_t prompt, std::uint32_t output, std::vector<std::uint32_t> ids = {}) {
    const Slot slot = requests.add(prompt, output, std::move(ids));
    scheduler.submit(slot, now);
    return slot;
  }
  void pass() {
    shape = scheduler.schedule(now, Admit::Yes);
    now = now + Duration{10};
    scheduler.complete(now, outcome);
    scheduler.end_pass(outcome);
    scheduler.verify();
    events.insert(events.end(), outcome.events.begin(), outcome.events.end());
  }
  void passes(int count) {
    for (; count > 0; --count) pass();
  }
  Request& operator[](Slot slot) { return requests.slab[slot]; }
  KvCounts kv() const { return scheduler.kv(); }

  SglangRequests requests;
  SglangScheduler scheduler;
  Time now;
  perf::StepShape shape;
  Outcome outcome;
  std::vector<KvEvent> events;
};

}  // namespace servecast::scheduler
