// SPDX-License-Identifier: Apache-2.0
#include "cache/page_text.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace servecast::cache {
namespace {

// The same for shared parts of both that reach `end` at least.
std::uint64_t shared_equal_until(const PageText& a, const PageText& b, std::uint64_t from,
                                 std::uint64_t end) {
  if (a.ids.empty() || b.ids.empty()) {
    const bool equal = a.ids.empty() && b.ids.empty() && a.group == b.group;
    return equal ? end : from;
  }
  SERVECAST_DCHECK(a.trace_block == b.trace_block && a.trace_block > 0);
  const std::uint64_t first = from / a.trace_block;
  const std::uint64_t blocks = (end - 1) / a.trace_block + 1 - first;
  const auto mine = a.ids.subspan(first, blocks), theirs = b.ids.subspan(first, blocks);
  if (mine.data() == theirs.data()) return end;
  const auto differs = std::mismatch(mine.begin(), mine.end(), theirs.begin()).first;
  if (differs == mine.end()) return end;
  const auto equal_blocks = static_cast<std::uint64_t>(differs - mine.begin());
  return (first + equal_blocks) * a.trace_block;
}

}  // namespace

std::uint64_t PageText::equal_until(const PageText& other, std::uint64_t from,
                                    std::uint64_t end) const {
  if (extra_key != other.extra_key) return from;
  const std::uint64_t shared = std::min(shared_tokens, other.shared_tokens);
  const std::uint64_t shared_end = std::min(shared, end);
  if (from < shared_end) {
    const std::uint64_t equal = shared_equal_until(*this, other, from, shared_end);
    if (equal < shared_end) return equal;
  }
  const bool owners_equal = shared_tokens == other.shared_tokens && owner == other.owner;
  return owners_equal ? end : shared_end;
}

std::uint64_t PageText::page_name(std::uint64_t page, std::uint32_t page_tokens) const {
  constexpr std::uint64_t kGroup = 1ULL << 32, kOwned = 2ULL << 32, kStep = 0x9E3779B97F4A7C15ULL;
  const std::uint64_t first = page * page_tokens, end = first + page_tokens;
  const std::uint64_t shared_end = std::min<std::uint64_t>(end, shared_tokens);
  std::uint64_t name = mix(extra_key + kStep);
  const auto add = [&name](std::uint64_t word) { name = mix(name ^ word) + kStep; };
  if (first < shared_end && ids.empty()) {
    add(kGroup | group);
  } else if (first < shared_end) {
    for (std::uint64_t i = first / trace_block; i * trace_block < shared_end; ++i) add(ids[i]);
  }
  if (end > shared_tokens) {  // where the owner's tokens begin tells pages apart as well
    add(kOwned | shared_tokens);
    add(owner);
  }
  return name;
}

}  // namespace servecast::cache
