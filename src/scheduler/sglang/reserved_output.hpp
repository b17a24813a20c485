// SPDX-License-Identifier: Apache-2.0
// The output that the members of a cohort may still ask memory for, as admission sees it: of each
// what remains, at most `clip` tokens (engine-sglang.md S7.3, decisions.md 30). Shrinks by one
// token a pass for every member that has no more than `clip` left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace servecast::scheduler {

class ReservedOutput {
 public:
  explicit ReservedOutput(std::uint32_t clip) : clip_(clip) {}

  std::uint64_t tokens() const { return tokens_; }
  // Tokens that the next pass takes off, of `members`.
  std::uint64_t shrinking(std::uint32_t members) const { return members - clipped_.size(); }
  // Passes from cohort step `step` on for which shrinking() stays what it is.
  std::uint64_t steady(std::uint64_t step) const {
    return clipped_.empty() ? UINT64_MAX : clipped_.front() - step;
  }

  void join(std::uint64_t step, std::uint32_t remaining) {
    tokens_ += std::min(remaining, clip_);
    if (remaining <= clip_) return;
    clipped_.push_back(step + (remaining - clip_));
    std::push_heap(clipped_.begin(), clipped_.end(), std::greater<>());
  }
  // Cohort steps `step`, step + 1, ... of `members`, `passes` of them.
  void advance(std::uint64_t step, std::uint64_t passes, std::uint32_t members) {
    const std::uint64_t end = step + passes;
    while (step < end) {
      const std::uint64_t stretch = std::min(end - step, steady(step));
      tokens_ -= stretch * shrinking(members);
      step += stretch;
      while (!clipped_.empty() && clipped_.front() == step) {
        std::pop_heap(clipped_.begin(), clipped_.end(), std::greater<>());
        clipped_.pop_back();
      }
    }
  }
  void clear() {
    tokens_ = 0;
    clipped_.clear();
  }

 private:
  std::uint32_t clip_;
  std::uint64_t tokens_ = 0;
  // A heap: of each member with more than `clip_` left, the step at which it has no more than that.
  std::vector<std::uint64_t> clipped_;
};

}  // namespace servecast::scheduler
