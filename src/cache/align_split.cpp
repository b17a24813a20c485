// SPDX-License-Identifier: Apache-2.0
#include "cache/align_split.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace servecast::cache {
namespace {

std::uint32_t floor_to(std::uint32_t tokens, std::uint32_t unit) {
  return tokens / unit * unit;
}

// Up to here a request prefills. A preempted one computes its generated tokens again as prefill,
// all but the last.
std::uint32_t prefill_end(const Chunk& chunk) {
  return std::max(chunk.prompt, chunk.known - std::min(chunk.known, 1U));
}

std::uint32_t full_boundary(const AlignRule& rule, const Chunk& chunk) {
  switch (rule.boundary) {
    case AlignBoundary::PromptMinusOne:
      return floor_to(chunk.prompt - std::min(chunk.prompt, 1U), rule.block_tokens);
    case AlignBoundary::KnownFloor:
      return floor_to(chunk.known, rule.block_tokens);
  }
  return 0;
}

// The last boundary inside the page that the prompt ends in; 0 if it has none of its own.
std::uint32_t tail_boundary(const AlignRule& rule, const Chunk& chunk) {
  const std::uint32_t tail = floor_to(chunk.prompt, rule.match_unit);
  return full_boundary(rule, chunk) < tail && tail < chunk.prompt ? tail : 0;
}

}  // namespace

std::uint32_t align_split(const AlignRule& rule, const Chunk& chunk, std::uint32_t budget) {
  const std::uint32_t last = prefill_end(chunk);
  if (rule.match_unit == 0 || chunk.start >= last) return chunk.tokens;

  std::uint32_t end = chunk.end();
  if (end < last) {
    const std::uint32_t aligned = floor_to(end, rule.block_tokens);
    // A block wider than the budget of a pass is reached in several, with a state nobody sees.
    if (aligned > chunk.start || rule.block_tokens <= budget) end = aligned;
  }
  const auto stop_at = [&](std::uint32_t boundary) {
    if (chunk.start < boundary && boundary < end) end = boundary;
  };
  if (chunk.start % rule.block_tokens != 0) {
    stop_at(floor_to(chunk.start, rule.block_tokens) + rule.block_tokens);
  }
  stop_at(full_boundary(rule, chunk));
  stop_at(tail_boundary(rule, chunk));
  // Behind a tail, `aligned` may lie before the start: then nothing is computed in this step.
  return end - std::min(end, chunk.start);
}

bool keeps_state(const AlignRule& rule, const Chunk& chunk) {
  SERVECAST_CHECK(rule.match_unit > 0);
  if (chunk.tokens == 0 || chunk.start >= prefill_end(chunk)) return false;
  const std::uint32_t end = chunk.end();
  return end == full_boundary(rule, chunk) || end == tail_boundary(rule, chunk);
}

std::uint64_t state_blocks(std::uint64_t bytes_per_request, std::uint32_t block_tokens,
                           std::uint64_t bytes_per_token) {
  SERVECAST_CHECK(bytes_per_request > 0 && block_tokens > 0 && bytes_per_token > 0);
  SERVECAST_CHECK(bytes_per_token <= UINT64_MAX / block_tokens);
  return (bytes_per_request - 1) / (block_tokens * bytes_per_token) + 1;
}

}  // namespace servecast::cache
