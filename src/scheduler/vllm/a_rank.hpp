// SPDX-License-Identifier: Apache-2.0
// A rank for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/check.hpp"
#include "scheduler/vllm/scheduler.hpp"

namespace servecast::scheduler {

inline constexpr std::int64_t kPassNs = 10;

enum class Mode : bool { Stepping, Fast };
inline const char* name_of(Mode mode) {
  return mode == Mode::Stepping ? "Stepping" : "Fast";
}

struct Ask {
  std::uint32_t prompt = 1, output = 1;
  // One id for four prompt tokens, or for `trace_block`; none: content of its own.
  std::vector<std::uint32_t> ids = {};
  std::uint32_t trace_block = 4;
  std::vector<std::uint32_t> authored = {};
};

inline RankConfig a_rank(std::uint32_t blocks, std::uint32_t budget,
                         std::uint32_t block_tokens = 4) {
  return {.blocks = blocks,
          .block_tokens = block_tokens,
          .max_batched_tokens = budget,
          .max_model_len = std::nullopt};
}

inline VllmScheduler::Options options_of(Mode mode, const cache::Demands* demands = nullptr) {
  const bool stepping = mode == Mode::Stepping;
  return {.stepping = stepping,
          .take_back = true,
          .trace = stepping,
          .events = stepping,
          .history = true,
          .demands = demands};
}

// A rank whose passes take 10 ns each, verified after each.
class Rank {
 public:
  // `demands`: stepping only.
  Rank(Mode mode, const RankConfig& config, const cache::Demands* demands = nullptr)
      : mode_(mode), config_(config), scheduler(config, options_of(mode, demands), requests) {}

  Slot submit(const Ask& ask) {
    const Slot slot = add(ask);
    testable = scheduler.submit(slot, now);
    return slot;
  }
  void pass(Admit admit = Admit::Yes, std::int64_t ns = kPassNs) {
    shape = scheduler.schedule(now, admit);
    now = now + Duration{ns};
    scheduler.complete(now, outcome);
    scheduler.verify();
    for (const std::int64_t gap : outcome.gaps_ns) gaps.push_back(gap);
    for (std::uint32_t i = 0; i < outcome.cohort_tokens; ++i) gaps.push_back(ns);
    for (const KvEvent& event : outcome.events) events.push_back(event);
    if (!scheduler.keeps_token_times()) return;
    for (const Slot slot : outcome.ended) {
      const std::vector<Time>& times = requests[slot].token_times;
      for (std::size_t i = 1; i < times.size(); ++i) gaps.push_back((times[i] - times[i - 1]).ns);
    }
  }
  void passes(int count) {
    for (; count > 0; --count) pass();
  }
  // Runs until nothing is left; how many passes that took.
  int drain() {
    int count = 0;
    for (; scheduler.has_work(); ++count) {
      pass();
      SERVECAST_CHECK(count < 10000);
    }
    return count;
  }

  // Gaps of the requests that have completed (fast mode: of all).
  std::vector<std::int64_t> sorted_gaps() const {
    std::vector<std::int64_t> sorted = gaps;
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

  const Request& operator[](Slot slot) const { return requests[slot]; }
  std::uint32_t active() const { return scheduler.kv().active; }
  std::uint32_t inactive() const { return scheduler.kv().inactive; }
  std::uint32_t free() const { return scheduler.kv().free; }

  // Leading blocks of a prompt that another request could reuse.
  std::uint32_t cached_blocks(const Ask& ask) {
    const Slot probe = add(ask);
    const Content content = requests[probe].content;
    requests.remove(probe);
    Spelling spelling(config_.block_tokens);
    std::uint64_t parent = 0;
    std::uint32_t block = 0;
    for (; (block + 1) * config_.block_tokens <= ask.prompt; ++block) {
      parent = mode_ == Mode::Stepping
                   ? spelling.hash(content, ask.prompt, block, parent).prefix
                   : provenance_name(content, block, config_.block_tokens, parent);
      if (scheduler.pool().find(parent) == cache::kNoBlock) break;
    }
    return block;
  }

 private:
  Slot add(const Ask& ask) {
    const Slot slot = requests.add();
    Request& request = requests[slot];
    request.ordinal = next_ordinal_++;
    request.prompt_tokens = ask.prompt;
    request.output_tokens = ask.output;
    request.arrival = now;
    Content& content = request.content;
    content.owner = request.ordinal;
    content.prompt_first = request.ordinal * 1000003;
    content.plan_offset = request.ordinal * 100000;
    if (!ask.ids.empty()) {
      content.ids = kept_.emplace_back(ask.ids);
      content.trace_block = ask.trace_block;
      content.shared_tokens = content.shareable_tokens = ask.prompt;
    }
    if (!ask.authored.empty()) content.authored = kept_.emplace_back(ask.authored).data();
    return slot;
  }

  Mode mode_;
  RankConfig config_;
  std::deque<std::vector<std::uint32_t>> kept_;
  std::uint64_t next_ordinal_ = 0;

 public:
  RequestSlab requests;
  VllmScheduler scheduler;
  Time now;
  perf::StepShape shape;
  Outcome outcome;
  bool testable = false;
  std::vector<std::int64_t> gaps;
  std::vector<KvEvent> events;
};

// Prompts that are not computed in chunks.
inline RankConfig whole_prompts(std::uint32_t blocks, std::uint32_t budget) {
  RankConfig config = a_rank(blocks, budget);
  config.chunked_prefill = false;
  return config;
}

}  // namespace servecast::scheduler
