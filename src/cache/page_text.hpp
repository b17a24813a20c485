// SPDX-License-Identifier: Apache-2.0
// What a sequence of tokens says, without the tokens, so that two sequences can be compared span by
// span: the first `shared_tokens` come from trace block ids or from a prefix group, every later one
// is the owner's own at its position. A shared token never equals an owner's, nor one of a block id
// one of a group.
#pragma once

#include <cstdint>
#include <span>

namespace servecast::cache {

struct PageText {
  // What else must be equal for any prefix to be: adapter, tenant. Differs: nothing is equal.
  std::uint64_t extra_key = 0;
  std::uint64_t owner = 0;
  // Of trace blocks, the last of them perhaps shared in part only; outlives the text. Empty: a
  // prefix group.
  std::span<const std::uint32_t> ids;
  std::uint32_t trace_block = 0;  // tokens per id
  std::uint32_t group = 0;
  std::uint32_t shared_tokens = 0;

  // The position up to which two texts are equal that are so up to `from`: at most `end`, and
  // `from` if nothing more is. requires: both use the same trace_block.
  std::uint64_t equal_until(const PageText& other, std::uint64_t from, std::uint64_t end) const;
  // A name of page `page`, of `page_tokens` tokens: behind equal prefixes equal pages have equal
  // names, and others differ unless 64 bits collide. Costs per trace block in the page.
  std::uint64_t page_name(std::uint64_t page, std::uint32_t page_tokens) const;
};

}  // namespace servecast::cache
