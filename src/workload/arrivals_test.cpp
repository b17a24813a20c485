// SPDX-License-Identifier: Apache-2.0
#include "workload/arrivals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace servecast::workload {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> first_ms(const Load& load, int count) {
  Arrivals arrivals(load);
  std::vector<double> times;
  for (int i = 0; i < count; ++i) times.push_back(arrivals.next_ms());
  return times;
}

// Mean and standard deviation of the gaps.
std::pair<double, double> gap_moments(const Load& load, int gaps) {
  Arrivals arrivals(load);
  double before = arrivals.next_ms(), sum = 0, squares = 0;
  for (int i = 0; i < gaps; ++i) {
    const double now = arrivals.next_ms();
    sum += now - before;
    squares += (now - before) * (now - before);
    before = now;
  }
  const double mean = sum / gaps;
  return {mean, std::sqrt(squares / gaps - mean * mean)};
}

TEST(Arrivals, PoissonFollowsThePublishedSchedule) {  // replay.md 32 case 6
  const Load load{.kind = Load::Kind::Poisson, .per_second = 10, .seed = 42};
  EXPECT_THAT(first_ms(load, 5), ElementsAre(0.0, 74.77246176406965, 153.01953951913882,
                                             254.207536844964, 306.2785951560703));
}

TEST(Arrivals, ConstantRateIsEvenlySpaced) {  // replay.md 32 case 6
  EXPECT_THAT(first_ms({.kind = Load::Kind::ConstantRate, .per_second = 10}, 4),
              ElementsAre(0.0, 100.0, 200.0, 300.0));
}

TEST(Arrivals, ABurstComesAtOnce) {  // replay.md 32 case 6
  EXPECT_THAT(first_ms({.kind = Load::Kind::Burst}, 4), ElementsAre(0.0, 0.0, 0.0, 0.0));
}

TEST(Arrivals, AreRoundedToNanosecondsAfterTheyAreAddedUp) {
  Arrivals arrivals({.kind = Load::Kind::Poisson, .per_second = 10, .seed = 42});
  EXPECT_EQ(arrivals.next().ns, 0);
  EXPECT_EQ(arrivals.next().ns, 74'772'462);
  EXPECT_EQ(arrivals.next().ns, 153'019'540);
}

TEST(Arrivals, GammaOfSmoothnessFourHalvesTheSpread) {  // replay.md 32 case 6
  const auto [mean, spread] =
      gap_moments({.kind = Load::Kind::Gamma, .per_second = 20, .smoothness = 4}, 100'000);
  EXPECT_NEAR(mean, 50, 0.5);
  EXPECT_NEAR(spread, 25, 0.5);
}

TEST(Arrivals, GammaOfSmoothnessOneSpreadsLikePoisson) {
  const auto [mean, spread] =
      gap_moments({.kind = Load::Kind::Gamma, .per_second = 20, .smoothness = 1}, 100'000);
  EXPECT_NEAR(mean, 50, 0.75);
  EXPECT_NEAR(spread, 50, 1.0);
}

TEST(Arrivals, GammaBelowOneIsBurstier) {
  const auto [mean, spread] =
      gap_moments({.kind = Load::Kind::Gamma, .per_second = 20, .smoothness = 0.25}, 200'000);
  EXPECT_NEAR(mean, 50, 1.5);
  EXPECT_NEAR(spread, 100, 3.0);  // coefficient of variation 1 / sqrt(0.25)
}

TEST(Arrivals, NoGapPassesTheStatedMaximum) {
  for (const Load& load : {Load{.kind = Load::Kind::Poisson, .per_second = 20},
                           Load{.kind = Load::Kind::Gamma, .per_second = 20, .smoothness = 4},
                           Load{.kind = Load::Kind::Gamma, .per_second = 20, .smoothness = 0.1}}) {
    Arrivals arrivals(load);
    double before = arrivals.next_ms();
    for (int i = 0; i < 100'000; ++i) {
      const double now = arrivals.next_ms();
      ASSERT_LE(now - before, arrivals.gap_ms_max());
      before = now;
    }
  }
}

constexpr std::string_view kRate = "traffic.load.requests_per_second";

TEST(Arrivals, ARateWithAnInfiniteMeanGapIsRefused) {  // replay.md 32 case 6
  const auto problem =
      check_arrivals({.kind = Load::Kind::Poisson, .per_second = 1e-320}, kRate, 2);
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->code, "workload.rate_too_small");
  EXPECT_THAT(problem->message, HasSubstr("traffic.load.requests_per_second is 1e-320: too small"));
}

TEST(Arrivals, TimesPastTheClockAreRefusedByTheirNumber) {
  const Load load{.kind = Load::Kind::ConstantRate, .per_second = 1e-9};  // a gap of 1e12 ms
  EXPECT_FALSE(check_arrivals(load, kRate, 5).has_value());
  const auto problem = check_arrivals(load, kRate, 6);
  ASSERT_TRUE(problem.has_value());
  EXPECT_THAT(problem->message, HasSubstr("arrival 6 of 6"));
}

TEST(Arrivals, DrawsThatStayInRangeAreAcceptedThoughTheWorstCaseWouldNot) {
  // Worst case 100 * 36.7e11 ms, expected 100 * 1e10 ms.
  EXPECT_FALSE(
      check_arrivals({.kind = Load::Kind::Poisson, .per_second = 1e-7}, kRate, 100).has_value());
}

TEST(Arrivals, AGammaWhoseScaleOverflowsIsRefused) {
  const Load load{.kind = Load::Kind::Gamma, .per_second = 1, .smoothness = 1e-320};
  EXPECT_TRUE(check_arrivals(load, kRate, 2).has_value());
}

}  // namespace
}  // namespace servecast::workload
