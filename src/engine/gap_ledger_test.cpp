// SPDX-License-Identifier: Apache-2.0
#include "engine/gap_ledger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace servecast::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// The gaps of a map, and the sums that they have.
struct Model {
  std::map<std::int64_t, std::uint64_t> counts;
  std::uint64_t count = 0;
  UInt128 sum = 0, sum_squares = 0;

  void add(std::int64_t gap, std::int64_t times) {
    counts[gap] += static_cast<std::uint64_t>(times);
    if (counts[gap] == 0) counts.erase(gap);
  }
  void sum_up() {
    for (const auto& [gap, times] : counts) {
      const auto wide = static_cast<UInt128>(gap);
      count += times;
      sum += wide * times;
      sum_squares += wide * wide * times;
    }
  }
};

void expect_equal_sums(const GapLedger& ledger, const Model& model) {
  EXPECT_EQ(ledger.sums().count, model.count);
  EXPECT_TRUE(ledger.sums().ns == model.sum);
  EXPECT_TRUE(ledger.sums().squares_ns == model.sum_squares);
}

TEST(GapLedger, IsEmptyAtFirst) {
  const GapLedger ledger;
  EXPECT_TRUE(ledger.exact());
  EXPECT_EQ(ledger.sums().count, 0U);
  EXPECT_THAT(ledger.table(), IsEmpty());
}

TEST(GapLedger, CountsEachGapWithItsMultiplicityInAscendingOrder) {
  GapLedger ledger;
  ledger.add(30, 2);
  ledger.add(0, 1);
  ledger.add(10, 1);
  ledger.add(30, 5);
  EXPECT_THAT(ledger.table(), ElementsAre(Pair(0, 1), Pair(10, 1), Pair(30, 7)));
  EXPECT_EQ(ledger.sums().count, 9U);
  EXPECT_TRUE(ledger.sums().ns == 220);
  EXPECT_TRUE(ledger.sums().squares_ns == 6400);
}

TEST(GapLedger, AGapThatWasTakenBackWasNeverThere) {
  GapLedger ledger;
  ledger.add(10, 3);
  ledger.add(20, 1);
  ledger.add(10, -2);
  ledger.add(20, -1);
  EXPECT_THAT(ledger.table(), ElementsAre(Pair(10, 1)));
  EXPECT_EQ(ledger.sums().count, 1U);
  EXPECT_TRUE(ledger.sums().ns == 10);
  EXPECT_TRUE(ledger.sums().squares_ns == 100);
}

TEST(GapLedger, AGapMayBeTakenBackBeforeItIsAdded) {
  GapLedger ledger;
  ledger.add(10, -1);
  ledger.add(10, 3);
  EXPECT_THAT(ledger.table(), ElementsAre(Pair(10, 2)));
  EXPECT_TRUE(ledger.sums().ns == 20);
}

TEST(GapLedger, SumsPastSixtyFourBits) {
  GapLedger ledger;
  const std::int64_t year = std::int64_t{31'536'000} * 1'000'000'000;
  ledger.add(year, 1000);
  EXPECT_TRUE(ledger.sums().ns == static_cast<UInt128>(year) * 1000);
  EXPECT_TRUE(ledger.sums().squares_ns ==
              static_cast<UInt128>(year) * static_cast<UInt128>(year) * 1000);
}

TEST(GapLedger, AgreesWithAMapWhileItGrows) {
  Random random(3);
  GapLedger ledger;
  Model model;
  std::vector<std::int64_t> gaps(20000);  // far past the cells it begins with
  for (std::int64_t& gap : gaps)
    gap = static_cast<std::int64_t>(random.below(std::uint64_t{1} << 40));
  for (int i = 0; i < 100000; ++i) {
    const std::int64_t gap = gaps[random.below(gaps.size())];
    const auto times = static_cast<std::int64_t>(1 + random.below(300));
    ledger.add(gap, times);
    model.add(gap, times);
    if (random.below(3) == 0) {
      const auto back =
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(times) + 1));
      ledger.add(gap, -back);
      model.add(gap, -back);
    }
  }
  model.sum_up();
  EXPECT_TRUE(ledger.exact());
  expect_equal_sums(ledger, model);
  const std::vector<std::pair<std::int64_t, std::uint64_t>> expected(model.counts.begin(),
                                                                     model.counts.end());
  EXPECT_EQ(ledger.table(), expected);
}

TEST(GapLedger, StaysExactUpToTheLimitOfDistinctGaps) {
  GapLedger ledger(3);
  for (const std::int64_t gap : {5000, 6000, 7000, 5000, 6000}) ledger.add(gap, 1);
  EXPECT_TRUE(ledger.exact());
  ledger.add(8000, 1);
  EXPECT_FALSE(ledger.exact());
  EXPECT_EQ(ledger.sums().count, 6U);
}

TEST(GapLedger, SmallGapsKeepABucketEach) {
  GapLedger ledger(1);
  for (std::int64_t gap = 0; gap < 2048; ++gap) ledger.add(gap, gap + 1);
  EXPECT_FALSE(ledger.exact());
  const auto table = ledger.table();
  ASSERT_EQ(table.size(), 2048U);
  for (std::int64_t gap = 0; gap < 2048; ++gap) {
    EXPECT_THAT(table[static_cast<std::size_t>(gap)], Pair(gap, gap + 1));
  }
}

// A bucket's value stands for every gap in it.
TEST(GapLedger, ABucketIsWithinATenthOfAPercentOfItsGapsAtEverySize) {
  for (int bits = 0; bits < 62; ++bits) {
    const std::int64_t power = std::int64_t{1} << bits;
    for (const std::int64_t gap : {power, power + 1, power + power / 3, 2 * power - 1}) {
      GapLedger ledger(0);
      ledger.add(gap, 4);
      ASSERT_FALSE(ledger.exact());
      const auto table = ledger.table();
      ASSERT_EQ(table.size(), 1U);
      EXPECT_EQ(table[0].second, 4U);
      const double error = static_cast<double>(table[0].first - gap) / static_cast<double>(gap);
      EXPECT_LE(std::abs(error), 1.0 / 2048) << gap << ": half a bucket";
      EXPECT_TRUE(ledger.sums().ns == static_cast<UInt128>(gap) * 4) << "the sums stay exact";
    }
  }
}

TEST(GapLedger, KeepsCountsOrderAndSumsWhenItTurnsIntoBuckets) {
  Random random(4);
  GapLedger ledger(500);
  Model model;
  std::vector<std::int64_t> flat;
  for (int i = 0; i < 4000; ++i) {
    const auto gap =
        static_cast<std::int64_t>(random.below(std::uint64_t{1} << (1 + random.below(45))));
    ledger.add(gap, 3);
    ledger.add(gap, -1);
    model.add(gap, 2);
    flat.insert(flat.end(), 2, gap);
  }
  model.sum_up();
  EXPECT_FALSE(ledger.exact());
  expect_equal_sums(ledger, model);
  std::sort(flat.begin(), flat.end());
  std::size_t at = 0;
  std::int64_t before = -1;
  for (const auto& [value, times] : ledger.table()) {
    EXPECT_GT(value, before);
    before = value;
    for (std::uint64_t i = 0; i < times; ++i, ++at) {
      ASSERT_LT(at, flat.size());
      EXPECT_NEAR(static_cast<double>(value), static_cast<double>(flat[at]),
                  0.001 * static_cast<double>(flat[at]));
    }
  }
  EXPECT_EQ(at, flat.size());
}

TEST(GapLedger, ABucketCanBeTakenBackToo) {
  GapLedger ledger(1);
  ledger.add(1'000'000, 2);
  ledger.add(5'000'000, 2);
  ledger.add(1'000'000, -2);
  EXPECT_EQ(ledger.table().size(), 1U);
  EXPECT_EQ(ledger.sums().count, 2U);
  EXPECT_TRUE(ledger.sums().ns == 10'000'000);
}

TEST(GapLedger, DoesNotDependOnTheOrderOfAdditions) {
  for (const std::uint64_t limit : {std::uint64_t{10}, GapLedger::kDistinctMax}) {
    GapLedger up(limit), down(limit);
    for (std::int64_t i = 0; i < 1000; ++i) {
      up.add(i * i * 1000, 1 + i % 3);
      const std::int64_t j = 999 - i;
      down.add(j * j * 1000, 1 + j % 3);
    }
    EXPECT_EQ(up.table(), down.table());
    EXPECT_TRUE(up.sums().squares_ns == down.sums().squares_ns);
  }
}

}  // namespace
}  // namespace servecast::engine
