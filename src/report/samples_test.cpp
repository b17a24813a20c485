// SPDX-License-Identifier: Apache-2.0
#include "report/samples.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.hpp"
#include "report/distribution.hpp"

namespace servecast::report {
namespace {

constexpr std::uint64_t kInMemory = 1 << 20;

std::vector<std::uint64_t> values_at(const SampleStore& store,
                                     const std::vector<std::uint64_t>& ranks) {
  auto values = store.at_ranks(ranks);
  EXPECT_TRUE(values.has_value());
  return values.value_or(std::vector<std::uint64_t>{});
}

TEST(RankOf, RoundsHalfAwayFromZero) {
  struct Row {
    std::uint64_t n;
    std::array<std::uint64_t, 5> ranks;
  };
  const std::vector<Row> rows{
      {1, {0, 0, 0, 0, 0}},    {2, {1, 1, 1, 1, 1}},        {3, {1, 2, 2, 2, 2}},
      {4, {2, 2, 3, 3, 3}},    {5, {2, 3, 4, 4, 4}},        {10, {5, 7, 8, 9, 9}},
      {11, {5, 8, 9, 10, 10}}, {100, {50, 74, 89, 94, 98}}, {101, {50, 75, 90, 95, 99}}};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kPercents.size(); ++i) {
      EXPECT_EQ(rank_of(kPercents[i], row.n), row.ranks[i])
          << "n " << row.n << " p " << kPercents[i];
    }
  }
}

TEST(RankOf, NeverPassesTheLastSample) {
  for (std::uint64_t n = 1; n < 500; ++n) {
    for (std::uint32_t p = 0; p <= 100; ++p) ASSERT_LT(rank_of(p, n), n);
  }
  EXPECT_EQ(rank_of(100, UINT64_MAX), UINT64_MAX - 1);
}

TEST(SampleStore, KnownTwelveValues) {
  SampleStore store(kInMemory, "");
  for (const double v : {0.0, 1.0, 1.0, 2.5, 4.0, 4.0, 7.25, 9.5, 15.0, 22.0, 22.0, 100.0}) {
    store.add(static_cast<std::uint64_t>(v * 1e6));
  }
  const auto d = distribution_of(store, 1e6);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->mean, 15.6875);
  EXPECT_EQ(d->min, 0);
  EXPECT_EQ(d->max, 100);
  EXPECT_EQ(d->percentiles, (std::array<double, 5>{7.25, 15, 22, 22, 100}));
  EXPECT_NEAR(d->std, 26.49353793066025, 1e-12);
}

// Values k/7 stored as k, so that nothing is rounded before the comparison.
void add_spill_case(SampleStore& store) {
  for (std::uint64_t i = 0; i <= 20002; ++i) store.add(i * 1237 % 2003);
}

TEST(SampleStore, TheFileGivesTheSameNumbersAsMemory) {
  SampleStore memory(kInMemory, "");
  SampleStore file(4096, "");
  add_spill_case(memory);
  add_spill_case(file);
  EXPECT_FALSE(memory.is_spilled());
  EXPECT_TRUE(file.is_spilled());
  const auto a = distribution_of(memory, 7);
  const auto b = distribution_of(file, 7);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(b->percentiles, (std::array<double, 5>{143.0, 214.57142857142858, 257.42857142857144,
                                                   271.7142857142857, 283.14285714285717}));
  EXPECT_NEAR(b->mean, 142.99908585140798, 1e-12);
  EXPECT_EQ(a->percentiles, b->percentiles);
  EXPECT_EQ(a->mean, b->mean);
  EXPECT_EQ(a->std, b->std);
  EXPECT_EQ(a->min, b->min);
  EXPECT_EQ(a->max, b->max);
}

TEST(SampleStore, EveryRankEqualsASortForManyShapesAndLimits) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t n = 1 + random.below(round % 10 == 0 ? 3000 : 60);
    const std::uint64_t limits[] = {1, 2, 7, 64, kInMemory};
    SampleStore store(limits[random.below(5)], "");
    // From all equal to the full range of 63 bits, around some origin.
    const std::uint64_t spread = std::uint64_t{1} << random.below(63);
    const std::uint64_t origin = random.below((std::uint64_t{1} << 62));
    std::vector<std::uint64_t> sorted;
    for (std::uint64_t i = 0; i < n; ++i) {
      sorted.push_back(std::min<std::uint64_t>(origin + random.below(spread), INT64_MAX));
      store.add(sorted.back());
    }
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::uint64_t> ranks(std::min<std::uint64_t>(n, 100));
    std::iota(ranks.begin(), ranks.end(), n - ranks.size());
    const auto got = values_at(store, ranks);
    ASSERT_TRUE(std::equal(got.begin(), got.end(), sorted.end() - static_cast<long>(ranks.size())))
        << "round " << round;
    EXPECT_EQ(store.min(), sorted.front());
    EXPECT_EQ(store.max(), sorted.back());
  }
}

TEST(SampleStore, OrderOfTheSamplesChangesNothing) {
  std::vector<std::uint64_t> values(5000);
  Random random(3);
  for (auto& v : values) v = random.below(1'000'000'000'000);
  SampleStore up(kInMemory, ""), down(100, "");
  for (auto v = values.begin(); v != values.end(); ++v) up.add(*v);
  for (auto v = values.rbegin(); v != values.rend(); ++v) down.add(*v);
  EXPECT_EQ(up.sums().mean(), down.sums().mean());
  EXPECT_EQ(up.sums().standard_deviation(), down.sums().standard_deviation());
  EXPECT_EQ(values_at(up, {0, 2500, 4999}), values_at(down, {0, 2500, 4999}));
}

TEST(ExactSums, StandardDeviationDoesNotCancel) {
  // Large equal values and a spread of one: a sum of squares in doubles would lose it.
  ExactSums sums;
  for (std::uint64_t i = 0; i < 1000; ++i) sums.add(1'000'000'000'000'000 + i % 2);
  EXPECT_EQ(sums.standard_deviation(), 0.5);
  ExactSums equal;
  for (int i = 0; i < 3; ++i) equal.add(1'000'000'007);
  EXPECT_EQ(equal.standard_deviation(), 0);
}

TEST(ExactSums, SquaresThatPass128BitsAreNoted) {
  ExactSums sums;
  for (int i = 0; i < 3; ++i) sums.add(std::uint64_t{1} << 62);
  EXPECT_FALSE(sums.overflowed);
  for (int i = 0; i < 20; ++i) sums.add(std::uint64_t{1} << 62);
  EXPECT_TRUE(sums.overflowed);
}

TEST(SampleStore, ATruncatedFileIsAResourceProblem) {
  SampleStore store(64, "");
  for (std::uint64_t i = 0; i < 1000; ++i) store.add(i);
  ASSERT_EQ(::ftruncate(store.file().descriptor(), 800), 0);
  const auto values = store.at_ranks(std::vector<std::uint64_t>{10});
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().front().fault, Fault::Resource);
  EXPECT_NE(values.error().front().message.find("ends after 800 of"), std::string::npos);
}

TEST(SampleStore, ADirectoryThatTakesNoFileIsAResourceProblem) {
  SampleStore store(64, "/nonexistent-directory");
  for (std::uint64_t i = 0; i < 1000; ++i) store.add(i);
  EXPECT_EQ(store.count(), 1000U);
  const auto values = store.at_ranks(std::vector<std::uint64_t>{10});
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().front().fault, Fault::Resource);
  EXPECT_EQ(values.error().front().place.file, "/nonexistent-directory");
}

TEST(Distribution, RatesOfRequestsAreThoseOfTpotFromTheOtherEnd) {
  SampleStore tpot_ps(kInMemory, "");
  ExactSums rate;
  std::vector<double> rates;
  tpot_ps.add(0);  // no rate
  for (const std::uint64_t ms : {4U, 8U, 10U, 20U, 40U, 50U, 100U}) {
    tpot_ps.add(ms * 1'000'000'000);
    rate.add(1'000'000'000 / ms);  // tokens/s times 1e6
    rates.push_back(1000.0 / static_cast<double>(ms));
  }
  const auto pace = pace_of(tpot_ps, rate);
  ASSERT_TRUE(pace);
  std::sort(rates.begin(), rates.end());
  EXPECT_EQ(pace->tpot_ms.count, 8U);
  EXPECT_EQ(pace->output_tps.count, 7U);
  EXPECT_EQ(pace->output_tps.min, 10);
  EXPECT_EQ(pace->output_tps.max, 250);
  for (std::size_t i = 0; i < kPercents.size(); ++i) {
    EXPECT_EQ(pace->output_tps.percentiles[i], rates[rank_of(kPercents[i], 7)]);
  }
  EXPECT_NEAR(pace->output_tps.mean, std::accumulate(rates.begin(), rates.end(), 0.0) / 7, 1e-9);
}

TEST(Distribution, WeightedGapsEqualTheGapsOneByOne) {
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    replay::GapTable table;
    SampleStore gaps(kInMemory, "");
    std::vector<double> rates;
    std::int64_t gap = static_cast<std::int64_t>(random.below(2)) * 100;
    for (std::uint64_t k = 1 + random.below(20); k > 0; --k) {
      const std::uint64_t times = 1 + random.below(30);
      table.gaps_ns.emplace_back(gap, times);
      table.count += times;
      for (std::uint64_t t = 0; t < times; ++t) {
        const auto ns = static_cast<std::uint64_t>(gap);
        gaps.add(ns);
        table.sum_ns += ns;
        table.sum_squares_ns += UInt128{ns} * ns;
        if (gap > 0) rates.push_back(1e9 / static_cast<double>(gap));
      }
      gap += 1 + static_cast<std::int64_t>(random.below(10'000'000));
    }
    const Distribution weighted = distribution_of(table);
    const auto single = distribution_of(gaps, 1e6);
    ASSERT_TRUE(single);
    EXPECT_EQ(weighted.percentiles, single->percentiles);
    EXPECT_EQ(weighted.mean, single->mean);
    EXPECT_EQ(weighted.std, single->std);
    EXPECT_EQ(weighted.min, single->min);
    EXPECT_EQ(weighted.max, single->max);

    const Distribution users = rates_of(table);
    std::sort(rates.begin(), rates.end());
    ASSERT_EQ(users.count, rates.size());
    if (rates.empty()) continue;
    for (std::size_t i = 0; i < kPercents.size(); ++i) {
      EXPECT_EQ(users.percentiles[i], rates[rank_of(kPercents[i], rates.size())]);
    }
    EXPECT_EQ(users.min, rates.front());
    EXPECT_EQ(users.max, rates.back());
    const double mean =
        std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size());
    EXPECT_NEAR(users.mean, mean, 1e-9 * mean);
  }
}

}  // namespace
}  // namespace servecast::report
