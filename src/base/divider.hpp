// SPDX-License-Identifier: Apache-2.0
// Division by a number that stays the same for a whole run, such as the block size, as one
// multiplication. Exact for all 32-bit numbers (Lemire, Kaser, Kurz 2019: "Faster remainder by
// direct computation").
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "base/int128.hpp"

namespace servecast {

class Divider {
 public:
  // requires: divisor > 0.
  explicit Divider(std::uint32_t divisor)
      : divisor_(divisor), reciprocal_(UINT64_MAX / divisor + 1) {
    SERVECAST_DCHECK(divisor > 0);
  }

  std::uint32_t divisor() const { return divisor_; }
  std::uint32_t quotient(std::uint32_t n) const {
    if (reciprocal_ == 0) return n;  // the reciprocal of 1 is 2^64
    return static_cast<std::uint32_t>((UInt128{reciprocal_} * n) >> 64);
  }
  std::uint32_t remainder(std::uint32_t n) const { return n - quotient(n) * divisor_; }
  // Rounded up.
  std::uint32_t ceiling(std::uint32_t n) const { return n == 0 ? 0 : quotient(n - 1) + 1; }

 private:
  std::uint32_t divisor_;
  std::uint64_t reciprocal_;  // 2^64 / divisor, rounded up
};

}  // namespace servecast
