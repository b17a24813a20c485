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
    if (2 * ids_.size() >= slots_.size()) grow();
    std::size_t at = mix(id) & (slots_.size() - 1);
    while (slots_[at] != kEmpty) {
      const std::uint64_t known = slots_[at];
      if (ids_[known] == id) return static_cast<std::uint32_t>(known);
      at = (at + 1) & (slots_.size() - 1);
    }
    if (ids_.size() == count_max_) return std::nullopt;
    slots_[at] = ids_.size();
    ids_.push_back(id);
    return static_cast<std::uint32_t>(ids_.size() - 1);
  }
  std::uint64_t size() const { return ids_.size(); }

 private:
  static constexpr std::uint64_t kEmpty = UINT64_MAX;
  void grow() {
    std::vector<std::uint64_t> slots(slots_.empty() ? 1024 : 2 * slots_.size(), kEmpty);
    for (std::uint64_t known = 0; known < ids_.size(); ++known) {
      std::size_t at = mix(ids_[known]) & (slots.size() - 1);
      while (slots[at] != kEmpty) at = (at + 1) & (slots.size() - 1);
      slots[at] = known;
    }
    slots_.swap(slots);
  }
  std::uint64_t count_max_;
  std::vector<std::uint64_t> ids_;    // by dense number
  std::vector<std::uint64_t> slots_;  // dense number or kEmpty; a power of two of them
};

}  // namespace servecast::workload
