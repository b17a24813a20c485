// SPDX-License-Identifier: Apache-2.0
// What a reader of KV events knows to be resident, by rank, medium and cache group
// (realdata.md 4.2, bugs.md A21-A27).
//
//   KvResidency index;
//   index.apply(batch);
//   std::size_t blocks = index.prefix({.rank = 0}, groups, hashes);   // leading blocks of a prompt
//
// Invariants
// 1. Removing what is not there changes nothing and is counted.
// 2. A block whose parent was never told stays aside: it is part of a prefix once its parent is.
// 3. Storing a block again changes nothing: engines tell the first copy and the last one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/kv_wire.hpp"

namespace servecast::cache {

struct KvPlace {
  std::uint32_t rank = 0;  // data_parallel_rank; 0 when a batch names none
  std::string medium = std::string(kGpuMedium);
  std::uint32_t group = 0;
  auto operator<=>(const KvPlace&) const = default;
};

class KvResidency {
 public:
  struct Counts {
    std::uint64_t stored_events = 0, removed_events = 0, cleared_events = 0;
    std::uint64_t stored_blocks = 0, removed_blocks = 0;  // that changed something
    std::uint64_t stored_again = 0;                       // blocks that were there
    std::uint64_t unknown_removals = 0;                   // blocks that were not there
    std::uint64_t orphan_stores = 0;  // events whose parent was nowhere on their rank
  };
  struct Resident {
    KvHash hash;
    std::optional<KvHash> parent;  // none: the root
  };

  void apply(const KvBatch& batch);

  bool holds(const KvPlace& place, const KvHash& hash) const;
  // How many leading blocks of a prompt every one of `groups` holds at `where`, whose own group is
  // not asked. `hashes` are those of the prompt's blocks in order; each must follow the one before.
  std::size_t prefix(const KvPlace& where, std::span<const std::uint32_t> groups,
                     std::span<const KvHash> hashes) const;

  const Counts& counts() const { return counts_; }
  std::vector<KvPlace> places() const;  // that hold something, ascending
  std::size_t size(const KvPlace& place) const;
  // In the order in which they became resident.
  std::vector<Resident> resident(const KvPlace& place) const;
  // Resident blocks from which no chain of parents on their rank leads to the root.
  std::size_t orphans() const;

 private:
  struct Block {
    std::optional<KvHash> parent;
    std::uint64_t since;  // ordinal of the store
  };
  using Blocks = std::unordered_map<KvHash, Block>;

  void apply(std::uint32_t rank, const BlockStored& event);
  void apply(std::uint32_t rank, const BlockRemoved& event);
  void apply(std::uint32_t rank, const AllBlocksCleared& event);
  bool holds_anywhere(std::uint32_t rank, const KvHash& hash) const;

  std::map<KvPlace, Blocks> blocks_;  // an entry without blocks may stay
  std::uint64_t stores_ = 0;
  Counts counts_;
};

}  // namespace servecast::cache
