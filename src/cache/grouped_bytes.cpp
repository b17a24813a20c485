// SPDX-License-Identifier: Apache-2.0
#include "cache/grouped_bytes.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/int128.hpp"

namespace servecast::cache {
namespace {

// One page a request, whatever its length: a state, or a ring, which is scratch.
bool is_one_page(const KvGroup& group) {
  return group.kind == GroupKind::State || group.kind == GroupKind::Ring ||
         (group.kind == GroupKind::Attention && !group.prefix_cacheable.value_or(true));
}

std::uint64_t first_live_token(const KvGroup& group, std::uint32_t before) {
  if (group.sliding_window) return before - std::min(before, *group.sliding_window - 1);
  // The specification names windows only; vLLM gives back the finished chunks of chunked local
  // attention too, as block mode does.
  if (group.attention_chunk) return floor_to(before, *group.attention_chunk);
  return 0;
}

std::uint64_t saturated(UInt128 bytes) {
  return static_cast<std::uint64_t>(std::min<UInt128>(bytes, UINT64_MAX));
}

}  // namespace

BlockRange live_blocks(const KvGroup& group, std::uint32_t before, std::uint32_t after) {
  SERVECAST_CHECK(before <= after);
  if (is_one_page(group)) return {.first = 0, .last = after > 0 ? 1U : 0U};
  const std::uint64_t first = first_live_token(group, before) / group.block_size_tokens;
  return {.first = first, .last = div_ceil(after, group.block_size_tokens)};
}

std::uint64_t peak_request_bytes(std::span<const KvGroup> groups, std::uint32_t context,
                                 std::uint32_t chunk) {
  SERVECAST_CHECK(chunk > 0);
  UInt128 bytes = 0;
  for (const KvGroup& group : groups) {
    const std::uint64_t block = group.block_size_tokens;
    std::uint64_t blocks = is_one_page(group) ? 1 : div_ceil(context, block);
    // A window and a chunk of tokens, which need not begin with a block.
    const std::optional<std::uint32_t> reach =
        group.sliding_window ? group.sliding_window : group.attention_chunk;
    if (reach)
      blocks = std::min(blocks, div_ceil(*reach - 1 + std::uint64_t{chunk} + block - 1, block));
    bytes += UInt128{blocks} * group.page_size_bytes;
  }
  return saturated(bytes);
}

GroupedBytes::GroupedBytes(std::vector<KvGroup> groups, std::uint64_t capacity_bytes)
    : groups_(std::move(groups)), capacity_(capacity_bytes) {
  SERVECAST_CHECK(!groups_.empty());
}

double GroupedBytes::usage() const {
  return capacity_ == 0 ? 0 : static_cast<double>(used_) / static_cast<double>(capacity_);
}

std::uint64_t GroupedBytes::bytes(std::uint32_t before, std::uint32_t after) const {
  UInt128 bytes = 0;
  for (const KvGroup& group : groups_) {
    bytes += UInt128{live_blocks(group, before, after).size()} * group.page_size_bytes;
  }
  return saturated(bytes);
}

ByteVerdict GroupedBytes::judge(const ByteCandidate& candidate) const {
  using Kind = ByteVerdict::Kind;
  SERVECAST_CHECK(candidate.known > 0);
  const std::uint64_t least = bytes(candidate.known - 1, candidate.known);
  if (least > capacity_) return {.kind = Kind::Reject, .bytes_needed = least};
  if (candidate.budget == 0) return {.kind = Kind::Wait, .bytes_needed = least};
  const std::uint64_t first = bytes(0, std::min(candidate.known, candidate.budget));
  if (first > capacity_) return {.kind = Kind::Oversized, .bytes_needed = first};
  return {.kind = first > free_bytes() ? Kind::Wait : Kind::Admit, .bytes_needed = first};
}

bool GroupedBytes::allocate(ByteLease& lease, std::uint32_t before, std::uint32_t after) {
  SERVECAST_CHECK(lease.bytes <= used_);
  const std::uint64_t needed = bytes(before, after);
  if (needed > capacity_ - (used_ - lease.bytes)) return false;
  used_ += needed - lease.bytes;
  lease.bytes = needed;
  lease.ranges.clear();
  for (const KvGroup& group : groups_) lease.ranges.push_back(live_blocks(group, before, after));
  return true;
}

void GroupedBytes::release(ByteLease& lease) {
  SERVECAST_CHECK(lease.bytes <= used_);
  used_ -= lease.bytes;
  lease.bytes = 0;
  lease.ranges.clear();
}

void GroupedBytes::verify(std::span<const ByteLease* const> leases) const {
  UInt128 held = 0;
  for (const ByteLease* lease : leases) {
    SERVECAST_CHECK(lease->ranges.empty() || lease->ranges.size() == groups_.size());
    UInt128 bytes = 0;
    for (std::size_t i = 0; i < lease->ranges.size(); ++i) {
      SERVECAST_CHECK(lease->ranges[i].first <= lease->ranges[i].last);
      bytes += UInt128{lease->ranges[i].size()} * groups_[i].page_size_bytes;
    }
    SERVECAST_CHECK(bytes == lease->bytes);
    held += bytes;
  }
  SERVECAST_CHECK(held == used_ && used_ <= capacity_);
}

}  // namespace servecast::cache
