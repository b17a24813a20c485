// SPDX-License-Identifier: Apache-2.0
// Draws token lengths (replay.md 10.3).
#pragma once

#include <cstdint>

#include "base/random.hpp"
#include "workload/spec.hpp"

namespace servecast::workload {

// A Length with its derived numbers. requires: the Length passed check_length.
class LengthDraw {
 public:
  explicit LengthDraw(const Length& length);
  // Every draw gives the same number and takes nothing from the stream: a fixed length, or a spread
  // of zero.
  bool is_constant() const { return constant_; }
  std::uint32_t draw(Random& random) const { return constant_ ? value_ : draw_spread(random); }

 private:
  std::uint32_t draw_spread(Random& random) const;
  Length length_;
  double mu_ = 0, sigma_ = 0;  // of the logarithm, Lognormal only
  bool constant_ = false;
  std::uint32_t value_ = 0;  // of a constant
};

}  // namespace servecast::workload
