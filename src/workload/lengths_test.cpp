// SPDX-License-Identifier: Apache-2.0
#include "workload/lengths.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace servecast::workload {
namespace {

std::vector<std::uint32_t> draws(const Length& length, int count) {
  const LengthDraw draw(length);
  Random random(42);
  std::vector<std::uint32_t> values;
  for (int i = 0; i < count; ++i) values.push_back(draw.draw(random));
  return values;
}

TEST(Length, WithoutSpreadTakesNothingFromTheStream) {  // replay.md 10.3
  const std::vector<Length> constants = {
      {.kind = Length::Kind::Fixed, .fixed = 7},
      {.kind = Length::Kind::Uniform, .min = 7, .max = 7},
      {.kind = Length::Kind::Normal, .mean = 6.5, .stddev = 0},
      {.kind = Length::Kind::Lognormal, .p50 = 7.2, .p95 = 7.2},
  };
  for (const Length& length : constants) {
    const LengthDraw draw(length);
    Random used(42), fresh(42);
    EXPECT_TRUE(draw.is_constant());
    EXPECT_EQ(draw.draw(used), 7u);
    EXPECT_EQ(used.next(), fresh.next());
  }
}

TEST(Length, OfANormalWithoutSpreadIsAtLeastOne) {
  EXPECT_EQ(draws({.kind = Length::Kind::Normal, .mean = 0.1}, 1)[0], 1u);
}

TEST(Length, UniformReachesBothBoundsAndNoFurther) {
  const auto values = draws({.kind = Length::Kind::Uniform, .min = 3, .max = 5}, 1000);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_EQ(*low, 3u);
  EXPECT_EQ(*high, 5u);
  EXPECT_NEAR(static_cast<double>(std::count(values.begin(), values.end(), 4u)), 333, 60);
}

TEST(Length, UniformTakesTheWholeRangeOfTheType) {
  const auto values = draws({.kind = Length::Kind::Uniform, .min = 1, .max = UINT32_MAX}, 1000);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 0xF0000000u);
}

TEST(Length, NormalRoundsTheFirstPublishedDraws) {
  // Box-Muller, cosine branch, of the first two doubles of replay.md 32 case 5.
  const double z = std::sqrt(-2 * std::log(1 - 0.5265574090027738)) *
                   std::cos(2 * std::numbers::pi * 0.5427252099031439);
  const auto values = draws({.kind = Length::Kind::Normal, .mean = 1000, .stddev = 100}, 1);
  EXPECT_EQ(values[0], static_cast<std::uint32_t>(std::round(1000 + 100 * z)));
}

TEST(Length, NormalIsClampedToItsBounds) {
  const auto values =
      draws({.kind = Length::Kind::Normal, .min = 90, .max = 110, .mean = 100, .stddev = 50}, 2000);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_EQ(*low, 90u);
  EXPECT_EQ(*high, 110u);
}

TEST(Length, LognormalHasItsPercentiles) {
  auto values = draws({.kind = Length::Kind::Lognormal, .p50 = 1000, .p95 = 4000}, 40'001);
  std::sort(values.begin(), values.end());
  EXPECT_NEAR(values[20'000], 1000, 25);
  EXPECT_NEAR(values[38'000], 4000, 120);
}

TEST(Length, AnExtremeDrawIsClampedNotWrapped) {
  for (const std::uint32_t value :
       draws({.kind = Length::Kind::Lognormal, .p50 = 1, .p95 = 1e300}, 200)) {
    EXPECT_GE(value, 1u);
  }
  const auto values = draws({.kind = Length::Kind::Normal, .mean = 1e300, .stddev = 1e300}, 20);
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), UINT32_MAX);
  EXPECT_EQ(*std::min_element(values.begin(), values.end()), 1u);
}

}  // namespace
}  // namespace servecast::workload
