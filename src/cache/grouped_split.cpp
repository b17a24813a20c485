// SPDX-License-Identifier: Apache-2.0
#include "cache/grouped_split.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace servecast::cache {
namespace {

// Up to here a request prefills: a preempted one computes its generated tokens again, all but the
// last.
std::uint64_t prefill_end(const GroupedStep& step) {
  SERVECAST_CHECK(step.prompt <= step.known && step.known > 0);
  return std::max(step.prompt, step.known - 1);
}

}  // namespace

std::optional<std::uint32_t> prefill_checkpoint(const GroupedRules& rules,
                                                const GroupedStep& step) {
  if (!rules.prefill_checkpoints || step.end < prefill_end(step)) return std::nullopt;
  if (step.start % rules.unit != 0) return std::nullopt;
  const std::uint64_t block = rules.state_block;
  // It goes into the last position but one, which must lie behind that of the state read.
  const std::uint64_t position = div_ceil(step.end, block);
  const std::uint64_t read = div_ceil(step.start, block);
  if (position < read + 2) return std::nullopt;
  // A multiple of the unit behind the start, so the step in which the backend can export state,
  // which divides the unit, is kept.
  const std::uint64_t at = floor_to(step.end - 1, rules.unit);
  if (at < std::uint64_t{step.start} + rules.unit) return std::nullopt;
  return static_cast<std::uint32_t>(at);
}

std::uint32_t grouped_split(const GroupedRules& rules, const GroupedStep& step) {
  const std::uint64_t last = prefill_end(step);
  if (rules.state_block == 0 || step.start >= last) return step.end;
  const std::uint64_t block = rules.state_block, start = step.start;
  const bool checkpoint = prefill_checkpoint(rules, step).has_value();

  std::uint64_t end = step.end;
  if (end < last) {
    const std::uint64_t aligned = floor_to(end, block);
    // A block wider than a pass is reached in several, with a state that nobody sees.
    if (aligned > start || block <= rules.max_batched_tokens) end = aligned;
  }
  const auto stop_at = [&](std::uint64_t boundary) {
    if (start < boundary && boundary < end) end = boundary;
  };
  if (step.junction && start < *step.junction && *step.junction < end) {
    stop_at(start + floor_to(*step.junction - start, block));
  }
  if (!checkpoint) {
    if (start % block != 0) stop_at(floor_to(start, block) + block);
    // The last full block of what is known, as vLLM has it: a prompt that ends with a block leaves
    // no state before its end.
    const std::uint64_t full = floor_to(step.known, block);
    stop_at(full);
    const std::uint64_t tail = floor_to(step.prompt, rules.unit);
    if (rules.alignment.fine_grained && full < tail && tail < step.prompt) stop_at(tail);
  }
  // Behind a tail the block may begin before the start: then nothing is computed in this pass.
  return static_cast<std::uint32_t>(std::max(end, start));
}

}  // namespace servecast::cache
