// SPDX-License-Identifier: Apache-2.0
// Where a prefill of a rank with recurrent state stops (engine-vllm.md 10.7): state is kept only
// where a chunk ends, so chunks end where state is worth keeping. Pure functions: the scheduler
// cuts chunks by them and the cache keeps state by them.
//
//   grouped_split(rules, {.start = 0, .end = 8192, .prompt = 9000, .known = 9000});   // 6528
#pragma once

#include <cstdint>
#include <optional>

#include "cache/kv_groups.hpp"

namespace servecast::cache {

// A step of one request from `start` to `end` computed tokens.
struct GroupedStep {
  std::uint32_t start = 0, end = 0;
  std::uint32_t prompt = 0;                    // tokens of the prompt
  std::uint32_t known = 0;                     // prompt and generated tokens
  std::optional<std::uint32_t> junction = {};  // GroupedHit::junction of the request
};

// Where the step really ends. Equal to its start when the next boundary is out of reach: the
// request is skipped in this pass.
std::uint32_t grouped_split(const GroupedRules& rules, const GroupedStep& step);

// The prefix whose state this step leaves in a block reserved for it, though it does not end there;
// nothing when the step has no such checkpoint.
std::optional<std::uint32_t> prefill_checkpoint(const GroupedRules& rules, const GroupedStep& step);

}  // namespace servecast::cache
