// SPDX-License-Identifier: Apache-2.0
// What the tokens of a request are, without the tokens: who else can have the same prefix.
#pragma once

#include <cstdint>
#include <span>

#include "base/hash.hpp"
#include "cache/page_text.hpp"

namespace servecast::scheduler {

// What its tokens are compared by (`owner` is unique to a request or, where prompts accumulate, to
// a session; bugs.md A11 for the extra key), and who asks for them.
struct Content : cache::PageText {
  // Blocks that lie wholly in the first `shareable_tokens` may be asked for by another request; a
  // later turn may ask for the generated ones too (`outlives`). Everything else is asked for by the
  // request alone.
  std::uint32_t shareable_tokens = 0;
  bool outlives = false;

  // Real tokens, used by the reference mode and where hashes leave the run.
  std::uint64_t prompt_first = 0;  // private prompt: token k = low 32 bits of prompt_first + k
  const std::uint32_t* history = nullptr;   // accumulated prompt, if not null
  const std::uint32_t* authored = nullptr;  // exact output tokens, if not null
  std::uint64_t plan_offset = 0;            // else: position in the output-plan stream
};

// A name of the prefix that ends with block `block`, from where its content comes from
// (architecture.md 4.5): equal prefixes have equal names, others differ unless 64 bits collide.
// `parent` is the name of the prefix before. Never leaves the run.
inline std::uint64_t provenance_name(const Content& content, std::uint32_t block,
                                     std::uint32_t block_tokens, std::uint64_t parent) {
  constexpr std::uint64_t kOwner = 0x2545F4914F6CDD1DULL, kGroup = 0x9FB21C651E98DF25ULL;
  const std::uint64_t first = std::uint64_t{block} * block_tokens, end = first + block_tokens;
  const std::uint64_t key = content.extra_key;
  if (end > content.shared_tokens) return mix(mix(content.owner ^ kOwner ^ key) + block);
  if (content.ids.empty()) return mix(mix(content.group ^ kGroup ^ key) + block);
  std::uint64_t name = mix(parent + 1) ^ (block == 0 ? key : 0);
  std::uint64_t at = first;
  while (at < end) {  // equal neighbours are one run, so that the name depends on the tokens alone
    const std::uint32_t id = content.ids[at / content.trace_block];
    std::uint64_t next = (at / content.trace_block + 1) * content.trace_block;
    while (next < end && content.ids[next / content.trace_block] == id) next += content.trace_block;
    if (next > end) next = end;
    name = mix(name ^ ((std::uint64_t{id} << 32) | (next - at)));
    at = next;
  }
  return name;
}

}  // namespace servecast::scheduler
