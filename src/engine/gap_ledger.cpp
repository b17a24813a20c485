// SPDX-License-Identifier: Apache-2.0
#include "engine/gap_ledger.hpp"

#include <algorithm>
#include <bit>

namespace servecast::engine {
namespace {
constexpr unsigned kFirstBits = 10;  // 1,024 cells to begin with
}

GapLedger::GapLedger(std::uint64_t distinct_max)
    : distinct_max_(distinct_max),
      cells_(std::size_t{1} << kFirstBits, {kEmpty, 0}),
      mask_(cells_.size() - 1),
      shift_(64 - kFirstBits) {}

void GapLedger::insert(std::uint64_t gap, std::uint64_t times) {
  if (distinct_ == distinct_max_) {
    turn_into_buckets();
    add_bucketed(gap, times);
    return;
  }
  if (2 * (distinct_ + 1) > cells_.size()) grow();
  std::size_t at = slot(gap);
  while (cells_[at].gap != kEmpty) at = (at + 1) & mask_;
  cells_[at] = {gap, times};
  ++distinct_;
}

void GapLedger::grow() {
  std::vector<Cell> old(cells_.size() * 2, {kEmpty, 0});
  old.swap(cells_);
  mask_ = cells_.size() - 1;
  --shift_;
  for (const Cell& cell : old) {
    if (cell.gap == kEmpty) continue;
    std::size_t at = slot(cell.gap);
    while (cells_[at].gap != kEmpty) at = (at + 1) & mask_;
    cells_[at] = cell;
  }
}

GapLedger::Sums GapLedger::sums() const {
  if (!exact_) return bucketed_;
  Sums sums;
  for (const Cell& cell : cells_) {
    if (cell.gap != kEmpty) sums.add(cell.gap, cell.count);
  }
  return sums;
}

void GapLedger::turn_into_buckets() {
  bucketed_ = sums();
  exact_ = false;
  buckets_.assign(std::size_t{64 - kMantissaBits + 1} << kMantissaBits, 0);
  for (const Cell& cell : cells_) {
    if (cell.gap != kEmpty) buckets_[bucket_of(cell.gap)] += cell.count;
  }
  std::vector<Cell>().swap(cells_);
}

// Gaps below 2^10 have a bucket each; above, the bucket is (exponent, top 10 bits after the leading
// one).
std::size_t GapLedger::bucket_of(std::uint64_t gap) {
  if (gap < (std::uint64_t{1} << kMantissaBits)) return static_cast<std::size_t>(gap);
  const auto drop = static_cast<unsigned>(std::bit_width(gap)) - 1 - kMantissaBits;
  return (std::size_t{drop} << kMantissaBits) + static_cast<std::size_t>(gap >> drop);
}

std::int64_t GapLedger::middle_of(std::size_t bucket) {
  const std::size_t whole = std::size_t{1} << kMantissaBits;
  if (bucket < 2 * whole) return static_cast<std::int64_t>(bucket);
  const std::size_t drop = (bucket >> kMantissaBits) - 1;
  const std::uint64_t low = static_cast<std::uint64_t>(bucket - (drop << kMantissaBits)) << drop;
  return static_cast<std::int64_t>(low + (std::uint64_t{1} << drop) / 2);
}

std::vector<std::pair<std::int64_t, std::uint64_t>> GapLedger::table() const {
  std::vector<std::pair<std::int64_t, std::uint64_t>> rows;
  if (exact_) {
    for (const Cell& cell : cells_) {
      if (cell.gap != kEmpty && cell.count > 0)
        rows.emplace_back(static_cast<std::int64_t>(cell.gap), cell.count);
    }
    std::sort(rows.begin(), rows.end());
  } else {
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      if (buckets_[bucket] > 0) rows.emplace_back(middle_of(bucket), buckets_[bucket]);
    }
  }
  return rows;
}

}  // namespace servecast::engine
