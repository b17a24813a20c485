// SPDX-License-Identifier: Apache-2.0
#include "scheduler/spelling.hpp"

#include "base/hash.hpp"
#include "workload/workload.hpp"

namespace servecast::scheduler {

Spelling::Spelling(std::uint32_t block_tokens)
    : block_tokens_(block_tokens), plan_(workload::kOutputPlanSeed), tokens_(block_tokens) {}

Spelling::Hashes Spelling::hash(const Content& content, std::uint32_t prompt_tokens,
                                std::uint32_t block, std::uint64_t parent) {
  const std::uint64_t first = std::uint64_t{block} * block_tokens_;
  bool seeking = true;
  for (std::uint32_t i = 0; i < block_tokens_; ++i) {
    const std::uint64_t at = first + i;
    if (at >= prompt_tokens) {
      const std::uint64_t ordinal = at - prompt_tokens;
      if (content.authored != nullptr) {
        tokens_[i] = content.authored[ordinal];
        continue;
      }
      if (seeking) plan_.seek(content.plan_offset + ordinal);
      seeking = false;
      tokens_[i] = plan_.word();
    } else if (content.history != nullptr) {
      tokens_[i] = content.history[at];
    } else if (!content.ids.empty()) {
      tokens_[i] = content.ids[at / content.trace_block];
    } else {
      tokens_[i] = static_cast<std::uint32_t>(content.prompt_first + at);
    }
  }
  const std::uint64_t local = local_block_hash(tokens_);
  return {local, block == 0 ? local : chained_block_hash(parent, local)};
}

}  // namespace servecast::scheduler
