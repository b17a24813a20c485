// SPDX-License-Identifier: Apache-2.0
// Which child of a tree's node has which first page: node numbers found by a hash of both, with
// open addressing and linear probing. What a node is, and whether it is the one looked for, is the
// tree's affair; 0, its root, is nobody's child and stands for none.
//
//   ChildTable children;
//   children.add(hash, node);
//   children.find(hash, [&](std::uint32_t node) { return is_it(node); });
//
// Invariants: at most half of the places are taken; between a node and the place of its hash none
// is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace servecast::cache {

class ChildTable {
 public:
  // A node with this hash of which `is_it(node)` says yes, or 0. Only nodes whose hashes agree in
  // 32 bits are asked.
  template <class IsIt>
  std::uint32_t find(std::uint64_t hash, IsIt is_it) const {
    const std::uint32_t tag = tag_of(hash);
    for (std::size_t at = tag & mask(); places_[at].node != 0; at = (at + 1) & mask()) {
      if (places_[at].tag == tag && is_it(places_[at].node)) return places_[at].node;
    }
    return 0;
  }
  // requires: the node is not 0, nor in the table.
  void add(std::uint64_t hash, std::uint32_t node) {
    SERVECAST_DCHECK(node != 0);
    if (2 * (std::size_t{size_} + 1) > places_.size()) grow();
    put({tag_of(hash), node});
    ++size_;
  }
  // requires, as of remove: `node` was added with this hash.
  void replace(std::uint64_t hash, std::uint32_t node, std::uint32_t by) {
    places_[place_of(hash, node)].node = by;
  }
  void remove(std::uint64_t hash, std::uint32_t node) {
    std::size_t hole = place_of(hash, node);
    for (std::size_t at = (hole + 1) & mask(); places_[at].node != 0; at = (at + 1) & mask()) {
      const std::size_t wanted = places_[at].tag & mask();
      if (((at - wanted) & mask()) < ((at - hole) & mask())) continue;  // it would go too far back
      places_[hole] = places_[at];
      hole = at;
    }
    places_[hole] = {};
    --size_;
  }
  std::uint32_t size() const { return size_; }

 private:
  struct Place {
    std::uint32_t tag = 0, node = 0;
  };
  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash); }
  std::size_t mask() const { return places_.size() - 1; }

  std::size_t place_of(std::uint64_t hash, std::uint32_t node) const {
    std::size_t at = tag_of(hash) & mask();
    while (places_[at].node != node) {
      SERVECAST_CHECK(places_[at].node != 0);
      at = (at + 1) & mask();
    }
    return at;
  }
  void put(Place place) {
    std::size_t at = place.tag & mask();
    while (places_[at].node != 0) at = (at + 1) & mask();
    places_[at] = place;
  }
  void grow() {
    std::vector<Place> before(2 * places_.size());
    std::swap(before, places_);
    for (const Place& place : before) {
      if (place.node != 0) put(place);
    }
  }

  std::vector<Place> places_ = std::vector<Place>(16);  // a power of two
  std::uint32_t size_ = 0;
};

}  // namespace servecast::cache
