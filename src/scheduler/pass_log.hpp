// SPDX-License-Identifier: Apache-2.0
// When the passes of a rank ended, as far back as a live request may have got tokens: what it takes
// to take a request's gaps back when it ends without completing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/time.hpp"

namespace servecast::scheduler {

class PassLog {
 public:
  void push(Time end) { ends_.push_back(end); }
  // A pass in which running requests got no token, since others prefilled.
  void push_prefill(Time end) { ends_.push_back(Time{~end.ns}); }
  bool wants_trim() const { return ends_.size() > limit_; }
  // Forgets passes before number `first`.
  void trim(std::uint64_t first) {
    if (first > first_) {
      ends_.erase(ends_.begin(), ends_.begin() + static_cast<std::ptrdiff_t>(first - first_));
      first_ = first;
    }
    limit_ = std::max<std::size_t>(4096, 2 * ends_.size());
  }
  Time end(std::uint64_t pass) const {
    const Time end = ends_[pass - first_];
    return end.ns < 0 ? Time{~end.ns} : end;
  }
  // When a request got tokens in these stretches of passes [first, last]: with the first pass of
  // each, and with every later one in which running requests got some. Passes from number `passes`
  // on do not count. `still_running` is the last pass of the last stretch, where that goes on.
  std::vector<Time> token_times(std::span<const std::pair<std::uint64_t, std::uint64_t>> stretches,
                                std::optional<std::uint64_t> still_running,
                                std::uint64_t passes) const {
    std::vector<Time> times;
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      const auto [first, stored_last] = stretches[i];
      const bool goes_on = still_running && i + 1 == stretches.size();
      const std::uint64_t last = goes_on ? *still_running : stored_last;
      for (std::uint64_t pass = first; pass <= last && pass < passes; ++pass) {
        if (pass == first || !is_prefill(pass)) times.push_back(end(pass));
      }
    }
    return times;
  }

 private:
  bool is_prefill(std::uint64_t pass) const { return ends_[pass - first_].ns < 0; }

  std::vector<Time> ends_;  // inverted: of a pass in which running requests got no token
  std::uint64_t first_ = 0;
  std::size_t limit_ = 4096;
};

}  // namespace servecast::scheduler
