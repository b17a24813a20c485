// SPDX-License-Identifier: Apache-2.0
// The cached blocks of one pool in the order in which somebody who knows all demands gives them up
// (engine-vllm.md 15): blocks of which there is another copy first, then those that are asked for
// latest, among equals the one that was released first.
//
//   Clairvoyant order(demands);
//   order.add(block, {.name = 0x1234});    // released now
//   order.update([&](std::uint64_t name) { order.place(...); });   // what demands have changed
//   order.remove(order.first());           // the next one to evict
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "cache/demands.hpp"
#include "cache/lru_list.hpp"

namespace servecast::cache {

class Clairvoyant {
 public:
  // requires: `demands` outlives it.
  explicit Clairvoyant(const Demands& demands) : demands_(demands) {}

  struct Content {
    std::uint64_t name = 0;
    bool is_redundant = false;  // there is another copy, cached or in use
  };
  // A block becomes evictable. requires: it is not yet.
  void add(BlockIndex block, const Content& content);
  // An evictable block whose copies or demands have changed; it keeps its time of release.
  void place(BlockIndex block, const Content& content);
  void remove(BlockIndex block);

  // Calls `visit(name)` for every name whose next demand was changed since the last call.
  template <class Visit>
  void update(Visit visit) {
    const std::vector<std::uint64_t>& changes = demands_.changes();
    while (seen_ < changes.size()) visit(changes[seen_++]);
  }
  // The next block to evict, once update() was called. requires: size() > 0.
  BlockIndex first() const { return order_.begin()->block; }
  std::size_t size() const { return order_.size(); }

 private:
  struct Key {
    bool is_unique;
    std::uint32_t soonness;  // the more, the sooner it is asked for; 0: never
    std::uint64_t released;  // counts releases, so no two are equal
    BlockIndex block;
    auto operator<=>(const Key&) const = default;
  };
  Key key_of(BlockIndex block, const Content& content, std::uint64_t released) const {
    return {!content.is_redundant, Demands::kNever - demands_.next(content.name), released, block};
  }

  const Demands& demands_;
  std::size_t seen_ = 0;  // of the changes
  std::set<Key> order_;
  std::vector<Key> keys_;  // by block; of evictable ones
  std::uint64_t releases_ = 0;
};

}  // namespace servecast::cache
