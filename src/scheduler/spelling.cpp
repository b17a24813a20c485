// SPDX-License-Identifier: Apache-2.0
#include "scheduler/spelling.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "workload/workload.hpp"

namespace servecast::scheduler {

Spelling::Spelling(std::uint32_t block_tokens)
    : block_tokens_(block_tokens), plan_(workload::kOutputPlanSeed), tokens_(block_tokens) {}

// Tokens [first, end) of the prompt, into `out`.
void Spelling::spell_prompt(const Content& content, std::uint64_t first, std::uint64_t end,
                            std::uint32_t* out) {
  if (content.history != nullptr) {
    std::copy(content.history + first, content.history + end, out);
  } else if (content.ids.empty()) {
    const auto token = static_cast<std::uint32_t>(content.prompt_first + first);
    const auto count = static_cast<std::uint32_t>(end - first);
    for (std::uint32_t i = 0; i < count; ++i) out[i] = token + i;
  } else {
    for (std::uint64_t at = first; at < end;) {
      const std::uint64_t id = at / content.trace_block;
      const std::uint64_t next = std::min(end, (id + 1) * content.trace_block);
      out = std::fill_n(out, next - at, content.ids[id]);
      at = next;
    }
  }
}

// Output tokens [first, end), into `out`.
void Spelling::spell_output(const Content& content, std::uint64_t first, std::uint64_t end,
                            std::uint32_t* out) {
  if (content.authored != nullptr) {
    std::copy(content.authored + first, content.authored + end, out);
    return;
  }
  if (first < end) plan_.seek(content.plan_offset + first);
  for (std::uint64_t at = first; at < end; ++at) *out++ = plan_.word();
}

Spelling::Hashes Spelling::hash(const Content& content, std::uint32_t prompt_tokens,
                                std::uint32_t block, std::uint64_t parent) {
  const std::uint64_t first = std::uint64_t{block} * block_tokens_, end = first + block_tokens_;
  const std::uint64_t border = std::clamp(std::uint64_t{prompt_tokens}, first, end);
  spell_prompt(content, first, border, tokens_.data());
  spell_output(content, border - std::min<std::uint64_t>(border, prompt_tokens),
               end - std::min<std::uint64_t>(end, prompt_tokens),
               tokens_.data() + (border - first));
  std::uint64_t local = local_block_hash(tokens_);
  // A prompt of which only the length is known has no content that could equal another's, whatever
  // numbers stand for its tokens (replay.md 2.4, 32 case 34).
  const bool length_only = content.history == nullptr && content.ids.empty();
  if (block == 0 && length_only) local = chained_block_hash(mix(content.owner + 1), local);
  if (block == 0 && content.extra_key != 0) local = chained_block_hash(content.extra_key, local);
  return {local, block == 0 ? local : chained_block_hash(parent, local)};
}

}  // namespace servecast::scheduler
