// SPDX-License-Identifier: Apache-2.0
// Gives each 64-bit block id of a trace a dense number, counting from 0 in first-seen order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/hash.hpp"

namespace servecast::workload {

class IdTable {
 public:
  static constexpr std::uint64_t kCountMax = std::uint64_t{1}
                                             << 32;  // dense numbers are 32-bit tokens

  explicit IdTable(std::uint64_t count_max = kCountMax) : count_max_(count_max) {}

  // Nothing when `id` is new and count_max ids are known.
  std::optional<std::uint32_t> intern(std::uint64_t id) {
    // Linear probing; at most half of the slots are taken.
    if (2 * count_ >= slots_.size()) grow();
    Slot& slot = find(slots_, id);
    if (slot.dense == kEmpty) {
      if (count_ == count_max_) return std::nullopt;
      slot = {id, count_++};
    }
    return static_cast<std::uint32_t>(slot.dense);
  }
  std::uint64_t size() const { return count_; }

 private:
  static constexpr std::uint64_t kEmpty = UINT64_MAX;
  struct Slot {
    std::uint64_t id = 0;
    std::uint64_t dense = kEmpty;
  };
  // The slot of `id`, or the empty one where it belongs.
  static Slot& find(std::vector<Slot>& slots, std::uint64_t id) {
    std::size_t at = mix(id) & (slots.size() - 1);
    while (slots[at].dense != kEmpty && slots[at].id != id) at = (at + 1) & (slots.size() - 1);
    return slots[at];
  }
  void grow() {
    std::vector<Slot> slots(slots_.empty() ? 1024 : 2 * slots_.size());
    for (const Slot& slot : slots_) {
      if (slot.dense != kEmpty) find(slots, slot.id) = slot;
    }
    slots_.swap(slots);
  }
  std::uint64_t count_max_;
  std::uint64_t count_ = 0;
  std::vector<Slot> slots_;  // a power of two of them
};

}  // namespace servecast::workload
