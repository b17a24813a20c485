// SPDX-License-Identifier: Apache-2.0
// How often each gap between adjacent output tokens happened. A pass of many requests counts its
// gap once, with multiplicity; gaps can be taken back. Exact up to a limit of distinct gaps, then
// in logarithmic buckets of 10 mantissa bits (0.1 %). Counts and sums are whole numbers, so the
// order of additions does not matter.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/int128.hpp"

namespace servecast::engine {

class GapLedger {
 public:
  // Distinct gaps kept exactly; past it the table turns into buckets. 2^20 entries are 32 MiB.
  static constexpr std::uint64_t kDistinctMax = std::uint64_t{1} << 20;
  explicit GapLedger(std::uint64_t distinct_max = kDistinctMax);

  // `count` gaps more, or fewer when negative. requires: gap_ns >= 0; no count falls below zero at
  // the end.
  void add(std::int64_t gap_ns, std::int64_t count) {
    SERVECAST_DCHECK(gap_ns >= 0);
    const auto gap = static_cast<std::uint64_t>(gap_ns);
    const auto times = static_cast<std::uint64_t>(count);  // modulo 2^64, so that -1 takes one back
    if (exact_) {
      add_exact(gap, times);
    } else {
      add_bucketed(gap, times);
    }
  }

  bool exact() const { return exact_; }
  // Always of the gaps themselves, also where the table has buckets.
  struct Sums {
    std::uint64_t count = 0;
    UInt128 ns = 0, squares_ns = 0;  // modulo 2^128 while some are taken back before they are added

    void add(std::uint64_t gap, std::uint64_t times) {
      count += times;
      const UInt128 weighted =
          UInt128{gap} * static_cast<UInt128>(Int128{static_cast<std::int64_t>(times)});
      ns += weighted;
      squares_ns += weighted * gap;
    }
  };
  Sums sums() const;
  // (gap, how often), ascending; a bucket is represented by its middle.
  std::vector<std::pair<std::int64_t, std::uint64_t>> table() const;

 private:
  struct Cell {
    std::uint64_t gap, count;
  };
  static constexpr std::uint64_t kEmpty = UINT64_MAX;
  static constexpr unsigned kMantissaBits = 10;

  void add_exact(std::uint64_t gap, std::uint64_t times) {
    std::size_t at = slot(gap);
    while (cells_[at].gap != gap) {
      if (cells_[at].gap == kEmpty) {
        insert(gap, times);
        return;
      }
      at = (at + 1) & mask_;
    }
    cells_[at].count += times;
  }
  std::size_t slot(std::uint64_t gap) const {
    return static_cast<std::size_t>((gap * 0x9E3779B97F4A7C15ULL) >> shift_);
  }
  void add_bucketed(std::uint64_t gap, std::uint64_t times) {
    buckets_[bucket_of(gap)] += times;
    bucketed_.add(gap, times);
  }
  void insert(std::uint64_t gap, std::uint64_t times);
  void grow();
  void turn_into_buckets();
  static std::size_t bucket_of(std::uint64_t gap);
  static std::int64_t middle_of(std::size_t bucket);

  std::uint64_t distinct_max_;
  bool exact_ = true;
  std::vector<Cell> cells_;
  std::size_t mask_;
  unsigned shift_;
  std::uint64_t distinct_ = 0;
  std::vector<std::uint64_t> buckets_;
  Sums bucketed_;  // kept only where there are buckets; else the cells say it
};

}  // namespace servecast::engine
