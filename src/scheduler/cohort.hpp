// SPDX-License-Identifier: Apache-2.0
// The requests in steady decode, as one: each grows by one token a pass, and nothing per request is
// touched until it joins or leaves (architecture.md 4.2).
//
// Invariants: (1) context() is the sum of the members' known tokens at the next pass; (2) a member
// needs a block in the pass in which its known tokens, less the one to be computed, fill its
// blocks; where the token that a pass gives has its place at once, that is one pass earlier; (3)
// the due heap holds every member once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.hpp"
#include "base/divider.hpp"
#include "scheduler/request.hpp"

namespace servecast::scheduler {

class Cohort {
 public:
  // `ahead`: tokens that have their place before they are computed, 0 or 1.
  explicit Cohort(std::uint32_t block_tokens, std::uint32_t ahead = 0)
      : block_(block_tokens), ahead_(ahead), crossings_(block_tokens) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(due_.size()); }
  std::uint64_t context() const { return context_; }
  std::uint64_t step() const { return step_; }  // of the next pass

  // Members that need a block in the next pass; `ahead` passes after it.
  std::uint32_t crossings(std::uint64_t ahead) const {
    return crossings_[wrapped(step_phase_ + ahead % block_.divisor())];
  }
  std::uint32_t crossings() const { return crossings_[step_phase_]; }
  // Blocks that the next `passes` passes need together.
  std::uint64_t crossings_total(std::uint64_t passes) const {
    const std::uint64_t cycle = crossings_.size();
    std::uint64_t total = passes / cycle * size();
    for (std::uint64_t i = passes - passes % cycle; i < passes; ++i) total += crossings(i);
    return total;
  }

  // Joins with the next pass, in which `known` tokens are known and after which `remaining` - 1 are
  // to come. `order` is the running order. requires: remaining > 0.
  void join(Slot slot, std::uint32_t known, std::uint32_t remaining, std::uint64_t order) {
    SERVECAST_DCHECK(remaining > 0);
    context_ += known;
    ++crossings_[phase(known)];
    due_.push_back({step_ + remaining - 1, order, slot});
    std::push_heap(due_.begin(), due_.end(), Later{});
  }
  // Passes before the one in which a member gets its last token. requires: size() > 0.
  std::uint64_t passes_to_due() const { return due_.front().step - step_; }

  // The next member, in running order, that gets its last token in the pass just run; kNoSlot when
  // none. `known` of it is what it was for that pass. Call before advance.
  Slot next_due() const {
    return !due_.empty() && due_.front().step == step_ ? due_.front().slot : kNoSlot;
  }
  void leave_due(std::uint32_t known) {
    std::pop_heap(due_.begin(), due_.end(), Later{});
    due_.pop_back();
    context_ -= known;
    SERVECAST_DCHECK(crossings_[phase(known)] > 0);
    --crossings_[phase(known)];
  }

  void advance(std::uint64_t passes) {
    step_ += passes;
    step_phase_ = wrapped(step_phase_ + (passes == 1 ? 1 : passes % block_.divisor()));
    context_ += passes * size();
  }

  void clear() {
    due_.clear();
    std::fill(crossings_.begin(), crossings_.end(), 0U);
    context_ = 0;
  }

  // Members whose second token comes in the next pass.
  std::vector<Slot> newcomers;

 private:
  struct Due {
    std::uint64_t step, order;
    Slot slot;
  };
  struct Later {
    bool operator()(const Due& a, const Due& b) const {
      return a.step != b.step ? a.step > b.step : a.order > b.order;
    }
  };
  // Place in `crossings_` of a member with `known` tokens at the next pass.
  std::uint32_t phase(std::uint32_t known) const {
    return wrapped(step_phase_ + block_.divisor() - block_.remainder(known - 1 + ahead_));
  }
  // requires: place < 2 block sizes
  std::uint32_t wrapped(std::uint64_t place) const {
    const std::uint32_t size = block_.divisor();
    return static_cast<std::uint32_t>(place < size ? place : place - size);
  }

  Divider block_;
  std::uint32_t ahead_;
  // Members by the step, modulo the block size, that needs a block.
  std::vector<std::uint32_t> crossings_;
  std::vector<Due> due_;
  std::uint64_t context_ = 0;
  std::uint64_t step_ = 0;
  std::uint32_t step_phase_ = 0;  // step_ modulo the block size
};

}  // namespace servecast::scheduler
