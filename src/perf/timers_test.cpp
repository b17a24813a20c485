// SPDX-License-Identifier: Apache-2.0
#include "perf/timers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.hpp"
#include "perf/rounding.hpp"

namespace servecast::perf {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

StepShape prefill_of(std::uint32_t requests, std::uint64_t isl, std::uint64_t prefix) {
  return {.prefill_requests = requests, .prefill_isl = isl, .prefill_prefix = prefix};
}
StepShape decode_of(std::uint32_t requests, std::uint64_t context, std::uint64_t capacity) {
  return {.decode_requests = requests, .decode_context = context, .capacity_tokens = capacity};
}

// Expects that a run equals single passes, for a few run lengths.
void expect_run_equals_passes(const StepTimer& timer, std::uint32_t requests, std::uint64_t context,
                              std::uint64_t capacity) {
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{255}}) {
    std::vector<Duration> out(length, Duration{-1});
    timer.decode_run({.requests = requests, .context = context, .capacity_tokens = capacity}, out);
    for (std::size_t k = 0; k < length; ++k) {
      const StepTime t = timer.time(decode_of(requests, context + k * requests, capacity));
      ASSERT_EQ(out[k].ns, t.decode.ns)
          << requests << " requests, context " << context << " of " << capacity << ", pass " << k;
      ASSERT_EQ(t.prefill.ns, 0);
    }
  }
}

void expect_runs_equal_passes(const StepTimer& timer) {
  Random random(7);
  for (int round = 0; round < 3000; ++round) {
    const auto requests =
        static_cast<std::uint32_t>(random.next() % 5 == 0 ? 0 : random.next() % 4096);
    const std::uint64_t context = random.next() >> (24 + random.next() % 40);
    const std::uint64_t capacity =
        random.next() % 7 == 0 ? 0 : random.next() >> (24 + random.next() % 40);
    expect_run_equals_passes(timer, requests, context, capacity);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Rounding, EqualsStdRoundBesideEveryHalfAndInteger) {
  for (int exponent = 0; exponent < 61; ++exponent) {
    for (const double half : {0.0, 0.5, 1.0, 1.5}) {
      const double middle = std::ldexp(1.0, exponent) + half;
      for (const double x : {std::nextafter(middle, 0.0), middle, std::nextafter(middle, kInf)}) {
        if (x > kPartMaxNs) continue;
        ASSERT_EQ(round_nonnegative(x), std::llround(x)) << x;
      }
    }
  }
  for (const double x : {0.0, 0.49999999999999994, 0.5, std::nextafter(0.5, 1.0), kPartMaxNs}) {
    EXPECT_EQ(round_nonnegative(x), std::llround(x)) << x;
  }
}

TEST(Rounding, EqualsStdRoundAtRandom) {
  Random random(1);
  for (int i = 0; i < 2'000'000; ++i) {
    const double x = std::ldexp(random.unit(), static_cast<int>(random.next() % 61));
    ASSERT_EQ(round_nonnegative(x), std::llround(x)) << x;
  }
}

TEST(Rounding, StaysWithinSimulatedTime) {
  EXPECT_EQ(quantised(1e300, 1.0).ns, std::int64_t{1} << 61);
  EXPECT_EQ(quantised(1.0, 1e-300).ns, std::int64_t{1} << 61);
}

TEST(FixedTimer, TakesThePartsThatThePassHas) {
  const auto timer = fixed_timer({.prefill_ms = 10.0, .decode_ms = 2.0}).value();
  const StepTime empty = timer->time({});
  EXPECT_EQ(empty.prefill.ns, 0);
  EXPECT_EQ(empty.decode.ns, 0);
  EXPECT_EQ(timer->time(prefill_of(1, 8, 0)).prefill.ns, 10'000'000);
  EXPECT_EQ(timer->time(prefill_of(1, 8, 0)).decode.ns, 0);
  EXPECT_EQ(timer->time(decode_of(3, 30, 64)).prefill.ns, 0);
  EXPECT_EQ(timer->time(decode_of(3, 30, 64)).decode.ns, 2'000'000);
  EXPECT_EQ(timer->provenance(), Provenance::Fixed);
  EXPECT_EQ(timer->run_passes_max(), 256u);
}

TEST(FixedTimer, TakesItsTimeForEveryImage) {  // engine-sglang.md S10
  const auto images = [](std::uint32_t count) {
    StepShape shape = prefill_of(1, 8, 0);
    shape.images = count;
    return shape;
  };
  const auto timer = fixed_timer({.prefill_ms = 10.0, .decode_ms = 2.0, .vision_ms = 5.0}).value();
  EXPECT_TRUE(timer->prices_images());
  EXPECT_EQ(timer->time(images(0)).vision.ns, 0);
  EXPECT_EQ(timer->time(images(3)).vision.ns, 15'000'000);
  EXPECT_EQ(timer->time(images(3)).sum().ns, 25'000'000);
  // 3 images of 1.4 ns -> 3 x 1 ns -> 3 / 0.4 = 7.5 -> 8; each by itself would be 3 x 3.
  const auto slow = fixed_timer({.vision_ms = 1.4e-6}, {.step = 0.4, .decode = 9.0}).value();
  EXPECT_EQ(slow->time(images(3)).vision.ns, 8);
  const auto endless = fixed_timer({.prefill_ms = 2.0, .vision_ms = 1e12}).value();
  EXPECT_EQ(endless->time(images(UINT32_MAX)).sum().ns, std::int64_t{1} << 61);
}

TEST(StepTimers, PriceImagesOnlyWhenTheyKnowHow) {
  EXPECT_FALSE(fixed_timer({.prefill_ms = 10.0}).value()->prices_images());
  EXPECT_TRUE(fixed_timer({.vision_ms = 0.0}).value()->prices_images());
  EXPECT_FALSE(polynomial_timer().value()->prices_images());
  const auto bad = fixed_timer({.vision_ms = -1.0});
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error()[0].message.find("invalid duration: vision_ms"), std::string::npos);
}

TEST(FixedTimer, PrefillsInNoTimeWhenTheMeansHideTheNewTokens) {
  const auto timer = fixed_timer({.prefill_ms = 10.0, .decode_ms = 2.0}).value();
  EXPECT_EQ(timer->time(prefill_of(2, 9, 8)).prefill.ns, 0);  // 9 // 2 == 8 // 2
  EXPECT_EQ(timer->time(prefill_of(2, 10, 8)).prefill.ns, 10'000'000);
}

TEST(FixedTimer, DividesByTheRatios) {  // engine-vllm.md C5
  const FixedDurations twelve{.prefill_ms = 12.0, .decode_ms = 12.0};
  const auto ms = [&](SpeedRatios ratios) {
    const auto timer = fixed_timer(twelve, ratios).value();
    return std::pair(to_ms(timer->time(prefill_of(1, 8, 0)).prefill),
                     to_ms(timer->time(decode_of(1, 8, 64)).decode));
  };
  EXPECT_EQ(ms({.step = 3.0}), std::pair(4.0, 4.0));
  EXPECT_EQ(ms({.step = 0.0}), std::pair(12.0, 12.0));
  EXPECT_EQ(ms({.step = 3.0, .decode = 2.0}), std::pair(4.0, 2.0));
  EXPECT_EQ(ms({.step = 3.0, .decode = 0.0}), std::pair(4.0, 12.0));
}

TEST(FixedTimer, RoundsBeforeAndAfterTheRatio) {
  // 1.4 ns -> 1 ns -> 1 / 0.4 = 2.5 -> 3; without the first rounding 1.4 / 0.4 = 3.5 -> 4.
  const auto timer = fixed_timer({.prefill_ms = 1.4e-6, .decode_ms = 0.0}, {.step = 0.4}).value();
  EXPECT_EQ(timer->time(prefill_of(1, 8, 0)).prefill.ns, 3);
  EXPECT_EQ(timer->time(decode_of(1, 8, 64)).decode.ns, 0);
}

TEST(FixedTimer, RefusesWhatIsNoDuration) {  // engine-vllm.md C5
  for (const double bad : {kNan, kInf, -kInf, -1.0, 1e300}) {
    const auto timer = fixed_timer({.prefill_ms = bad, .decode_ms = bad});
    ASSERT_FALSE(timer) << bad;
    ASSERT_EQ(timer.error().size(), 2u);
    EXPECT_EQ(timer.error()[0].code, "timing.invalid_duration");
    EXPECT_NE(timer.error()[0].message.find("invalid duration: prefill_ms"), std::string::npos);
    EXPECT_NE(timer.error()[1].message.find("invalid duration: decode_ms"), std::string::npos);
  }
  EXPECT_TRUE(fixed_timer({.prefill_ms = 0.0, .decode_ms = 0.0}));
}

TEST(FixedTimer, RefusesWhatIsNoRatio) {
  for (const double bad : {kNan, kInf, -1.0}) {
    EXPECT_EQ(fixed_timer({}, {.step = bad}).error()[0].code, "timing.invalid_ratio");
    EXPECT_EQ(polynomial_timer({.decode = bad}).error()[0].code, "timing.invalid_ratio");
  }
  EXPECT_EQ(polynomial_timer({.step = 1e-300}).error()[0].code, "timing.invalid_duration");
}

TEST(FixedTimer, RunsLikeSinglePasses) {
  expect_runs_equal_passes(
      *fixed_timer({.prefill_ms = 10.0, .decode_ms = 2.5}, {.step = 1.3}).value());
}

TEST(PolynomialTimer, GivesThePublishedDurations) {  // engine-vllm.md C4
  const auto timer = polynomial_timer().value();
  const auto prefill_ms = [&](std::uint64_t tokens) {
    return to_ms(timer->time(prefill_of(1, tokens, 0)).prefill);
  };
  const auto decode_ms = [&](std::uint64_t context) {
    return to_ms(timer->time(decode_of(1, context, 64)).decode);
  };
  EXPECT_EQ(prefill_ms(4), 16.562160);
  EXPECT_EQ(prefill_ms(8), 16.622914);
  EXPECT_EQ(prefill_ms(8192), 169.136918);
  EXPECT_EQ(decode_ms(9), 12.826138);
  EXPECT_EQ(decode_ms(64), 34.01);
  EXPECT_EQ(decode_ms(65), 34.01);
  EXPECT_EQ(decode_ms(0), 5.74);
  EXPECT_EQ(timer->provenance(), Provenance::Polynomial);
  EXPECT_EQ(timer->run_passes_max(), 256u);
}

TEST(PolynomialTimer, CountsNewTokensFromMeansRoundedDown) {
  const auto timer = polynomial_timer().value();
  // 11 // 2 - 5 // 2 = 3 new tokens each.
  EXPECT_EQ(timer->time(prefill_of(2, 11, 5)).prefill, timer->time(prefill_of(1, 6, 0)).prefill);
  EXPECT_EQ(timer->time(prefill_of(3, 9, 8)).prefill, timer->time(prefill_of(1, 3, 0)).prefill);
  EXPECT_EQ(timer->time(prefill_of(4, 9, 8)).prefill.ns, 0);
  EXPECT_EQ(timer->time(prefill_of(1, 8, 8)).prefill.ns, 0);
}

TEST(PolynomialTimer, TakesNoTimeForAnEmptyBatch) {
  const auto timer = polynomial_timer().value();
  EXPECT_EQ(timer->time(decode_of(0, 9, 64)).decode.ns, 0);
  EXPECT_EQ(timer->time(decode_of(0, 9, 64)).prefill.ns, 0);
}

TEST(PolynomialTimer, TakesAPoolWithoutCapacityAsFull) {
  EXPECT_EQ(polynomial_timer().value()->time(decode_of(1, 0, 0)).decode.ns, 34'010'000);
}

TEST(PolynomialTimer, DividesByTheRatios) {
  const auto timer = polynomial_timer({.step = 2.0, .decode = 5.0}).value();
  EXPECT_EQ(timer->time(prefill_of(1, 8, 0)).prefill.ns, 8'311'457);
  EXPECT_EQ(timer->time(decode_of(1, 64, 64)).decode.ns, 3'401'000);
}

TEST(PolynomialTimer, RunsLikeSinglePasses) {
  expect_runs_equal_passes(*polynomial_timer().value());
  expect_runs_equal_passes(*polynomial_timer({.step = 0.0}).value());
  expect_runs_equal_passes(*polynomial_timer({.step = 1.7, .decode = 0.9}).value());
}

TEST(PolynomialTimer, KeepsHugePassesWithinSimulatedTime) {
  const auto timer = polynomial_timer().value();
  const StepTime t = timer->time(prefill_of(1, std::uint64_t{1} << 62, 0));
  EXPECT_EQ(t.prefill.ns, std::int64_t{1} << 61);
}

}  // namespace
}  // namespace servecast::perf
