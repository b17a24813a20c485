// SPDX-License-Identifier: Apache-2.0
#include "scheduler/speculation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace servecast::scheduler {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

std::uint32_t draw_once(std::vector<double> rates) {
  AcceptanceSampler sampler({.rates = std::move(rates)}, 0);
  return sampler.draw();
}

double mean_of(std::vector<double> rates, std::uint64_t rank = 0) {
  AcceptanceSampler sampler({.rates = std::move(rates)}, rank);
  double sum = 0.0;
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) sum += sampler.draw();
  return sum / kDraws;
}

TEST(AcceptanceRates, AreCutAndFilled) {  // engine-vllm.md C3
  EXPECT_THAT(acceptance_rates({1.0, 0.5}, 3).value(), ElementsAre(1.0, 0.5, 0.0));
  EXPECT_THAT(acceptance_rates({1.0, 0.5, 0.25}, 2).value(), ElementsAre(1.0, 0.5));
  EXPECT_THAT(acceptance_rates({}, 5).value(), ElementsAre(0.85, 0.3, 0.0, 0.0, 0.0));
}

TEST(AcceptanceRates, AreRefusedOutsideOfZeroToOneAlsoWhereTheyWouldBeCut) {  // C3
  for (const double bad : {-0.1, 1.1, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    const auto rates = acceptance_rates({1.0, bad}, 1);
    ASSERT_FALSE(rates);
    EXPECT_THAT(rates.error().front().message, HasSubstr("acceptance rate 1 is"));
  }
}

TEST(AcceptanceRates, OfAMeanAreOnesAndARest) {  // C3
  const Speculation speculation{.rates = rates_of_accepted(2.2, 3)};
  EXPECT_THAT(speculation.rates, ElementsAre(1.0, 1.0, DoubleNear(0.2, 1e-12)));
  EXPECT_NEAR(speculation.expected_tokens(), 3.2, 1e-12);
  EXPECT_THAT(rates_of_accepted(3.0, 3), ElementsAre(1.0, 1.0, 1.0));
  EXPECT_THAT(rates_of_accepted(0.0, 2), ElementsAre(0.0, 0.0));
}

TEST(AcceptanceSampler, StopsAtTheFirstDraftThatIsRefused) {  // C22
  EXPECT_EQ(draw_once({0.0, 1.0}), 1U);
  EXPECT_EQ(draw_once({1.0, 1.0}), 3U);
  EXPECT_EQ(draw_once({1.0, 0.0, 1.0}), 2U);
  EXPECT_EQ(draw_once({}), 1U);
}

TEST(AcceptanceSampler, HasTheMeanOfTheProductsOfItsRates) {  // C22
  EXPECT_NEAR((Speculation{.rates = {0.8, 0.6, 0.4}}.expected_tokens()), 2.472, 1e-12);
  EXPECT_NEAR(mean_of({0.7, 0.5, 0.2}), 2.12, 0.01);
  EXPECT_NEAR(mean_of({0.8, 0.6, 0.4}), 2.472, 0.01);
}

TEST(AcceptanceSampler, RepeatsItsStreamAndRanksHaveTheirOwn) {
  const Speculation speculation{.rates = {0.5, 0.5}};
  AcceptanceSampler one(speculation, 3), same(speculation, 3), other(speculation, 4);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t drawn = one.draw();
    EXPECT_EQ(drawn, same.draw());
    differs = differs || drawn != other.draw();
  }
  EXPECT_TRUE(differs);
}

TEST(AcceptanceSampler, TakesNothingFromTheStreamForACertainDraft) {
  AcceptanceSampler certain({.rates = {1.0, 0.5}}, 0), plain({.rates = {0.5}}, 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(certain.draw(), plain.draw() + 1);
}

}  // namespace
}  // namespace servecast::scheduler
