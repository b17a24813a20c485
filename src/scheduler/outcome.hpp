// SPDX-License-Identifier: Apache-2.0
// What a pass of a rank shows when it ends.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.hpp"
#include "scheduler/kv_event.hpp"
#include "scheduler/request.hpp"

namespace servecast::scheduler {

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
  // After the pass: what share of their remaining output running requests are expected to use
  // (engine-sglang.md S7.9); SGLang only.
  std::optional<double> new_token_ratio = {};
};

struct Outcome {
  // Of decode steps: tokens that verifications gave, also past the end of an output, and how many
  // steps there were (engine-vllm.md 3.5). First tokens do not count.
  std::uint64_t accepted_tokens = 0, decode_forwards = 0;
  std::uint32_t cohort_tokens =
      0;  // tokens that came one pass after the one before, all with that gap
  // Tokens of requests that had their last one at `held_since`, some passes ago (fast mode).
  std::uint32_t held_tokens = 0;
  Time held_since;
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

}  // namespace servecast::scheduler
