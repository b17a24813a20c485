// SPDX-License-Identifier: Apache-2.0
// One distribution of whole-number samples: exact sums, exact percentiles by rank, bounded memory.
//
//   SampleStore ttft_ns(kSamplesInMemoryMax, "");
//   ttft_ns.add(50'000'000);
//   Result<std::vector<std::uint64_t>> median = ttft_ns.at_ranks({{rank_of(50, ttft_ns.count())}});
//
// Nothing depends on the order of the samples: sums are integers, percentiles are order statistics.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/int128.hpp"
#include "base/problem.hpp"
#include "report/spill_file.hpp"

namespace servecast::report {

// 0-based rank of percentile `percent` in `count` ascending samples: round((count - 1) * percent /
// 100), half away from zero, no interpolation (replay.md 20.3). requires: count > 0, percent <=
// 100.
std::uint64_t rank_of(std::uint32_t percent, std::uint64_t count);

// Count, sum and sum of squares as integers. Squares that pass 128 bits are noted, not wrapped.
struct ExactSums {
  std::uint64_t count = 0;
  UInt128 sum = 0;
  UInt128 squares = 0;
  bool overflowed = false;

  void add(std::uint64_t value) {
    ++count;
    sum += value;
    overflowed |= __builtin_add_overflow(squares, UInt128{value} * value, &squares);
  }
  double mean() const;                // requires: count > 0
  double standard_deviation() const;  // of the population; requires: count > 0, not overflowed
};

class SampleStore {
 public:
  // Keeps about `in_memory_max` samples in memory, then all of them in a file in `directory`.
  SampleStore(std::uint64_t in_memory_max, std::string directory);

  // requires: value < 2^63
  void add(std::uint64_t value) {
    sums_.add(value);
    min_ = value < min_ ? value : min_;
    max_ = value > max_ ? value : max_;
    if (next_ == end_) grow();
    *next_++ = value;
  }

  std::uint64_t count() const { return sums_.count; }
  const ExactSums& sums() const { return sums_; }
  std::uint64_t min() const { return min_; }  // requires: count() > 0, as max()
  std::uint64_t max() const { return max_; }
  bool is_spilled() const { return file_.size() > 0 || file_.problem().has_value(); }
  SpillFile& file() { return file_; }

  // The samples at these 0-based ranks of ascending order. Costs one pass per 12 bits of max() -
  // min(), whatever the number of ranks. requires: ranks ascending and below count(). Problems have
  // fault Resource.
  Result<std::vector<std::uint64_t>> at_ranks(std::span<const std::uint64_t> ranks) const;

 private:
  void grow();
  Result<void> for_each_piece(
      const std::function<void(std::span<const std::uint64_t>)>& take) const;

  std::uint64_t chunk_;                                   // samples a chunk holds
  std::uint64_t chunks_max_;                              // in memory
  std::vector<std::unique_ptr<std::uint64_t[]>> chunks_;  // all full but the last
  std::uint64_t* next_ = nullptr;
  std::uint64_t* end_ = nullptr;
  SpillFile file_;
  ExactSums sums_;
  std::uint64_t min_ = UINT64_MAX, max_ = 0;
};

}  // namespace servecast::report
