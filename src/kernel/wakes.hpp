// SPDX-License-Identifier: Apache-2.0
// When each worker wants to be looked at next: an indexed 4-ary heap of (time, worker). Workers
// push their deadline when it changes; nobody polls them. Same order as kernel/order.hpp for events
// of one phase.
//
// Invariants: (1) each worker stands in the heap at most once; (2) a parent is not later than its
// children.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.hpp"
#include "base/time.hpp"

namespace servecast::kernel {

class Wakes {
 public:
  explicit Wakes(std::uint32_t workers) : place_(workers, kAbsent) {}

  bool empty() const { return heap_.empty(); }
  // The earliest wake; kNever when there is none.
  Time time() const { return heap_.empty() ? kNever : heap_.front().time; }

  // Sets or moves the wake of `worker`; kNever removes it.
  void set(std::uint32_t worker, Time time) {
    std::uint32_t at = place_[worker];
    if (time == kNever) {
      if (at != kAbsent) remove(at);
      return;
    }
    if (at == kAbsent) {
      at = static_cast<std::uint32_t>(heap_.size());
      heap_.push_back({time, worker});
      place_[worker] = at;
    } else {
      heap_[at].time = time;
    }
    settle(at);
  }

  // Removes the earliest wake and says whose it was; the lowest worker among equal times.
  std::uint32_t pop() {
    SERVECAST_CHECK(!heap_.empty());
    const std::uint32_t worker = heap_.front().worker;
    remove(0);
    return worker;
  }

 private:
  static constexpr std::uint32_t kAbsent = UINT32_MAX;
  struct Entry {
    Time time;
    std::uint32_t worker;
  };

  static bool before(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time < b.time : a.worker < b.worker;
  }

  void put(std::uint32_t at, const Entry& entry) {
    heap_[at] = entry;
    place_[entry.worker] = at;
  }

  void remove(std::uint32_t at) {
    place_[heap_[at].worker] = kAbsent;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (at == heap_.size()) return;
    put(at, last);
    settle(at);
  }

  // Restores invariant (2) around `at`.
  void settle(std::uint32_t at) {
    const Entry entry = heap_[at];
    while (at > 0) {
      const std::uint32_t parent = (at - 1) / 4;
      if (!before(entry, heap_[parent])) break;
      put(at, heap_[parent]);
      at = parent;
    }
    const auto size = static_cast<std::uint32_t>(heap_.size());
    for (;;) {
      const std::uint32_t first = 4 * at + 1;
      if (first >= size) break;
      std::uint32_t best = first;
      for (std::uint32_t child = first + 1; child < first + 4 && child < size; ++child) {
        if (before(heap_[child], heap_[best])) best = child;
      }
      if (!before(heap_[best], entry)) break;
      put(at, heap_[best]);
      at = best;
    }
    put(at, entry);
  }

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> place_;
};

}  // namespace servecast::kernel
