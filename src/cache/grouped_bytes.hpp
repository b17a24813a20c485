// SPDX-License-Identifier: Apache-2.0
// Grouped KV caches without prefix caching (engine-vllm.md 10.3): a pool of bytes. A request holds
// a range of blocks in each group; a forward pass moves the ranges, gives back what fell out of a
// window and takes what it computes, all in one transition. Knows no request and no clock; the
// caller owns a ByteLease for each request.
//
//   GroupedBytes pool(groups, 42);
//   ByteLease lease;
//   if (pool.judge({.known = 4, .budget = 8}).kind == ByteVerdict::Kind::Admit) {
//     pool.allocate(lease, 0, 4);       // the pass computes tokens 0 to 4
//   }
//   pool.release(lease);
//
// Invariants: (1) used = sum of the leases <= capacity; (2) a failed call changes nothing; (3) an
// empty lease holds nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/kv_groups.hpp"

namespace servecast::cache {

// Blocks [first, last) of one group that a request holds.
struct BlockRange {
  std::uint64_t first = 0, last = 0;

  std::uint64_t size() const { return last - first; }
  friend bool operator==(const BlockRange&, const BlockRange&) = default;
};

// Belongs to the caller, who reads it and leaves changes to the pool.
struct ByteLease {
  std::vector<BlockRange> ranges = {};  // one a group, or none
  std::uint64_t bytes = 0;
};

// Blocks of a group that live in a forward pass from `before` to `after` computed tokens. Every new
// token stays until the next pass, whatever the window. requires: before <= after; the group passed
// the checks of grouped_gate().
BlockRange live_blocks(const KvGroup& group, std::uint32_t before, std::uint32_t after);

// The most bytes that one request of `context` tokens holds when it is computed in chunks of
// `chunk` tokens; UINT64_MAX when they are more. requires: chunk > 0.
std::uint64_t peak_request_bytes(std::span<const KvGroup> groups, std::uint32_t context,
                                 std::uint32_t chunk);

struct ByteVerdict {
  enum class Kind : std::uint8_t {
    Admit,
    Wait,
    Reject,    // not even one step at its length fits into the empty pool
    Oversized  // the first pass does not fit into the empty pool: lower the step budget
  };
  Kind kind;
  std::uint64_t bytes_needed = 0;  // of the forward pass that decided
  bool operator==(const ByteVerdict&) const = default;
};

// A waiting request.
struct ByteCandidate {
  std::uint32_t known = 0;   // tokens; at least 1
  std::uint32_t budget = 0;  // tokens that this pass still has
};

class GroupedBytes {
 public:
  GroupedBytes(std::vector<KvGroup> groups, std::uint64_t capacity_bytes);

  std::uint64_t capacity_bytes() const { return capacity_; }
  std::uint64_t used_bytes() const { return used_; }
  std::uint64_t free_bytes() const { return capacity_ - used_; }
  double usage() const;  // of the capacity, 0 to 1; active and physical usage are the same

  // Bytes that a request holds in a forward pass; UINT64_MAX when they are more.
  std::uint64_t bytes(std::uint32_t before, std::uint32_t after) const;
  ByteVerdict judge(const ByteCandidate& candidate) const;
  // Moves the lease to the forward pass from `before` to `after`; false when that does not fit.
  bool allocate(ByteLease& lease, std::uint32_t before, std::uint32_t after);
  void release(ByteLease& lease);

  void verify(std::span<const ByteLease* const> leases) const;  // all that hold something

 private:
  std::vector<KvGroup> groups_;
  std::uint64_t capacity_;
  std::uint64_t used_ = 0;
};

}  // namespace servecast::cache
