// SPDX-License-Identifier: Apache-2.0
// The longest prefix that every group of a rank can resume from (engine-vllm.md 10.5). Looks, and
// changes nothing.
//
//   const GroupedHit hit = find_hit(rules, pool, {.hashes = hashes, .prompt = 9, .known = 9});
//   hit.tokens;     // 8: computed tokens that need no computing again
//   hit.junction;   // a longer prefix that some groups have and others do not
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/grouped_pool.hpp"
#include "cache/kv_groups.hpp"

namespace servecast::cache {

// What the caller knows of a request. The span is read during a call only.
struct KnownTokens {
  // Entry i: hash of the prefix of (i + 1) * unit tokens. The caller extends it as tokens become
  // known; a call that keys blocks up to some token needs the hashes up to there.
  std::span<const std::uint64_t> hashes = {};
  std::uint32_t prompt = 0;  // tokens
  std::uint32_t known = 0;   // tokens: the prompt and what was generated
};

struct GroupedHit {
  // One group's share. Its table takes so many positions over; the last of them are these blocks,
  // those before are not needed to resume.
  struct Part {
    std::uint32_t positions = 0;
    std::vector<BlockIndex> blocks = {};
  };
  std::uint32_t tokens = 0;
  // End of a longer prefix that some groups have cached and others have not. They keep it too when
  // this request computes it, so that the next one finds it.
  std::optional<std::uint32_t> junction = {};
  std::vector<Part> parts = {};  // one a group; none when tokens is 0
};

// At most known - 1 tokens: the last one is always computed. requires: known > 0.
GroupedHit find_hit(const GroupedRules& rules, const GroupedPool& pool, const KnownTokens& tokens);

}  // namespace servecast::cache
