// SPDX-License-Identifier: Apache-2.0
// Where the prefill of a rank with recurrent state stops, so that its state can be kept there
// (engine-vllm.md 9.4, 9.5). Pure functions: the scheduler cuts its chunks by them and the cache
// publishes by them, so both mean the same boundaries. All numbers are tokens.
//
//   const AlignRule rule{.block_tokens = 4, .match_unit = 4};
//   align_split(rule, {.start = 0, .prompt = 16, .known = 16, .tokens = 16}, 64);   // 12
#pragma once

#include <cstdint>

namespace servecast::cache {

// The last full boundary of a prefill; differs between versions of vLLM.
enum class AlignBoundary : std::uint8_t {
  PromptMinusOne,  // strictly before the end of the prompt: the state there serves an equal prompt
  KnownFloor       // of the known tokens: an exactly aligned prompt leaves no state before its end
};

struct AlignRule {
  std::uint32_t block_tokens = 0;
  std::uint32_t match_unit = 0;  // a divisor of block_tokens; 0: chunks are not cut
  AlignBoundary boundary = AlignBoundary::PromptMinusOne;
};

// One step of a request: `tokens` from `start` on.
struct Chunk {
  std::uint32_t start = 0;   // tokens computed before
  std::uint32_t prompt = 0;  // tokens of the prompt
  std::uint32_t known = 0;   // prompt and generated tokens
  std::uint32_t tokens = 0;

  std::uint32_t end() const { return start + tokens; }
};

// How many tokens of the chunk may be computed in this step. Zero: skip the request, since the
// next boundary is out of reach. `budget` is the whole budget of a pass, not what is left of it.
std::uint32_t align_split(const AlignRule& rule, const Chunk& chunk, std::uint32_t budget);

// Is the state at the end of this chunk kept? Only replay points are, so decode steps and the
// boundaries between say no. requires: match_unit > 0.
bool keeps_state(const AlignRule& rule, const Chunk& chunk);

// Pool blocks that the state of one request takes. requires: all are positive and a block's bytes
// fit into 64 bits.
std::uint64_t state_blocks(std::uint64_t bytes_per_request, std::uint32_t block_tokens,
                           std::uint64_t bytes_per_token);

}  // namespace servecast::cache
