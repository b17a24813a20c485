// SPDX-License-Identifier: Apache-2.0
// The one door to randomness: a 12-round ChaCha generator seeded as replay.md 10.1 says, so that
// schedules compare with those of other tools. Streams are seekable.
//
//   Random arrivals(42);
//   double u = arrivals.unit();   // 0.5265574090027738
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace servecast {

class Random {
 public:
  explicit Random(std::uint64_t seed);
  // A stream of its own for one purpose; adding a purpose never shifts another stream.
  Random(std::uint64_t seed, std::string_view purpose);

  std::uint32_t word() {  // the next 32 bits of the stream
    if (used_ == 16) refill();
    return block_[used_++];
  }
  std::uint64_t next();  // low word first
  double unit();         // [0, 1), 53 bits
  double normal();       // standard normal, Box-Muller cosine branch: draws u1, then u2
  // Uniform in [0, bound), unbiased (multiply-shift with rejection). requires: bound > 0.
  std::uint64_t below(std::uint64_t bound);
  // The next draw is word number `index` of the stream.
  void seek(std::uint64_t index);

 private:
  void refill();
  std::array<std::uint32_t, 8> key_{};
  std::array<std::uint32_t, 16> block_{};
  std::uint64_t block_index_ = 0;  // of the next block to generate
  unsigned used_ = 16;             // words of block_ already given
};

}  // namespace servecast
