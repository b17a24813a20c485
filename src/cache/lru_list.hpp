// SPDX-License-Identifier: Apache-2.0
// Cached blocks from the least to the most recently released: a list threaded through the entries
// of a pool, each of which has members `older` and `younger`. Who is on it is the pool's affair.
//
//   LruList list;
//   list.append(entries, block);             // youngest of all
//   list.unlink(entries, list.oldest());
#pragma once

#include <cstdint>

#include "base/check.hpp"

namespace servecast::cache {

using BlockIndex = std::uint32_t;
inline constexpr BlockIndex kNoBlock = UINT32_MAX;

class LruList {
 public:
  BlockIndex oldest() const { return oldest_; }  // kNoBlock when empty, as youngest()
  BlockIndex youngest() const { return youngest_; }

  template <class Entries>
  void append(Entries& entries, BlockIndex block) {
    entries[block].older = youngest_;
    entries[block].younger = kNoBlock;
    (youngest_ == kNoBlock ? oldest_ : entries[youngest_].younger) = block;
    youngest_ = block;
  }
  template <class Entries>
  void unlink(Entries& entries, BlockIndex block) {
    const auto& entry = entries[block];
    (entry.older == kNoBlock ? oldest_ : entries[entry.older].younger) = entry.younger;
    (entry.younger == kNoBlock ? youngest_ : entries[entry.younger].older) = entry.older;
  }

  // Checks the links both ways and that there is no cycle; calls `visit(block)`, oldest first.
  template <class Entries, class Visit>
  void verify(const Entries& entries, Visit visit) const {
    BlockIndex before = kNoBlock;
    std::size_t listed = 0;
    for (BlockIndex at = oldest_; at != kNoBlock; at = entries[at].younger) {
      SERVECAST_CHECK(entries[at].older == before && ++listed <= entries.size());
      visit(at);
      before = at;
    }
    SERVECAST_CHECK(before == youngest_);
  }

 private:
  BlockIndex oldest_ = kNoBlock, youngest_ = kNoBlock;
};

}  // namespace servecast::cache
