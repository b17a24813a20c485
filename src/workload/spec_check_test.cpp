// SPDX-License-Identifier: Apache-2.0
#include "workload/spec_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace servecast::workload {
namespace {

using testing::HasSubstr;

std::string only_message(const Spec& spec) {
  const Problems problems = check_spec(spec);
  return problems.size() == 1 ? problems[0].message : std::to_string(problems.size()) + " problems";
}

std::uint32_t count_of(double per_unit, const Load& load) {
  Spec spec;
  spec.load = load;
  spec.stop = {.per_load_unit = per_unit};
  EXPECT_TRUE(check_spec(spec).empty());
  return resolve_count(spec).value_or(0);
}

Load concurrency(std::uint32_t sessions) {
  return {.concurrency = sessions};
}
Load per_second(double rate) {
  return {.kind = Load::Kind::Poisson, .per_second = rate};
}

TEST(Stop, RelativeCountsRoundHalfToEvenAndAreAtLeastOne) {  // replay.md 32 case 39, product.md C1
  EXPECT_EQ(count_of(2.5, concurrency(3)), 8u);              // 7.5
  EXPECT_EQ(count_of(0.1, concurrency(1)), 1u);              // 0.1
  EXPECT_EQ(count_of(10, per_second(0.25)), 2u);             // 2.5
  EXPECT_EQ(count_of(1, per_second(3.5)), 4u);
  EXPECT_EQ(count_of(1, per_second(0.5)), 1u);  // 0, then at least 1
  EXPECT_EQ(count_of(10, concurrency(16)), 160u);
}

TEST(Stop, ARelativeCountPastTheLimitIsRefused) {
  Spec spec;
  spec.stop = {.per_load_unit = 1e12};
  const auto count = resolve_count(spec);
  ASSERT_FALSE(count);
  EXPECT_THAT(count.error()[0].message, HasSubstr("at most 4294967294"));
}

TEST(Spec, TheDefaultKeepsEveryRule) {
  EXPECT_TRUE(check_spec(Spec{}).empty());
}

TEST(Spec, EveryBrokenRuleNamesFieldValueAndRule) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto with_input = [](const Length& length) {
    return Spec{.source = SyntheticSource{.input = length}};
  };
  const auto with_load = [](const Load& load) { return Spec{.load = load}; };
  using Kind = Length::Kind;
  EXPECT_EQ(only_message(with_input({.fixed = 0})),
            "traffic.source.input_tokens is 0: must be at least 1");
  EXPECT_EQ(only_message(with_input({.kind = Kind::Uniform, .min = 0, .max = 5})),
            "traffic.source.input_tokens.min is 0: must be at least 1");
  EXPECT_EQ(only_message(with_input({.kind = Kind::Uniform, .min = 6, .max = 5})),
            "traffic.source.input_tokens.min is 6: must be at most "
            "traffic.source.input_tokens.max, which is 5");
  EXPECT_EQ(only_message(with_input({.kind = Kind::Normal, .mean = kNan})),
            "traffic.source.input_tokens.mean is nan: must be positive and finite");
  EXPECT_EQ(only_message(with_input({.kind = Kind::Normal, .mean = 5, .stddev = -1})),
            "traffic.source.input_tokens.stddev is -1: must be zero or more, and finite");
  EXPECT_EQ(only_message(with_input({.kind = Kind::Lognormal, .p50 = 5, .p95 = 4})),
            "traffic.source.input_tokens.p95 is 4: must be finite and at least "
            "traffic.source.input_tokens.p50, "
            "which is 5");
  EXPECT_EQ(only_message({.source = SyntheticSource{.output = {.fixed = 0}}}),
            "traffic.source.output_tokens is 0: must be at least 1");
  EXPECT_EQ(only_message(with_load({.concurrency = 0})),
            "traffic.load.concurrency is 0: must be at least 1");
  EXPECT_EQ(only_message(with_load(per_second(0))),
            "traffic.load.requests_per_second is 0: must be positive and finite");
  EXPECT_EQ(only_message(with_load(per_second(kInfinity))),
            "traffic.load.requests_per_second is inf: must be positive and finite");
  EXPECT_EQ(
      only_message(with_load({.kind = Load::Kind::Gamma, .per_second = 1, .smoothness = kNan})),
      "traffic.load.smoothness is nan: must be positive and finite");
  EXPECT_EQ(only_message({.source = SessionSource{}, .load = per_second(-1)}),
            "traffic.load.sessions_per_second is -1: must be positive and finite");
  EXPECT_EQ(only_message({.source = SessionSource{.turns = 0}}),
            "traffic.source.session.turns is 0: must be from 1 to 100000");
  EXPECT_EQ(only_message({.source = SessionSource{.shared_prefix_ratio = 1.5, .prefix_groups = 1}}),
            "traffic.source.session.shared_prefix_ratio is 1.5: must be from 0 to 1");
  EXPECT_EQ(
      only_message({.source = SessionSource{.shared_prefix_ratio = kNan, .prefix_groups = 1}}),
      "traffic.source.session.shared_prefix_ratio is nan: must be from 0 to 1");
  EXPECT_EQ(only_message({.source = SessionSource{.shared_prefix_ratio = 0.5}}),
            "traffic.source.session.prefix_groups is 0: must be at least 1 because "
            "traffic.source.session.shared_prefix_ratio is 0.5");
  EXPECT_EQ(only_message({.source = SessionSource{.inter_turn_delay_ms = kInfinity}}),
            "traffic.source.session.inter_turn_delay_ms is inf: must be zero or more, and within "
            "146 years");
  EXPECT_EQ(only_message({.source = SessionSource{.block_size = 0}}),
            "traffic.source.block_size is 0: must be at least 1");
  EXPECT_EQ(only_message({.stop = {.count = 0}}),
            "traffic.stop.requests is 0: must be from 1 to 4294967294");
  EXPECT_EQ(only_message({.stop = {.per_load_unit = -1.0}}),
            "traffic.stop.requests_per_load_unit is -1: must be positive and finite");
}

TEST(Spec, CombinationsWithoutMeaningAreRefused) {
  const auto trace = [](const Load& load) {
    return Spec{.source = TraceSource{.path = "t"}, .load = load};
  };
  EXPECT_THAT(only_message(trace(per_second(1))), HasSubstr("a trace brings its own"));
  EXPECT_THAT(only_message(trace({.speedup = 2})), HasSubstr("speedup needs"));
  EXPECT_THAT(only_message(trace({.kind = Load::Kind::TraceTimestamps, .speedup = 0})),
              HasSubstr("traffic.load.speedup is 0"));
  EXPECT_THAT(only_message({.load = {.kind = Load::Kind::TraceTimestamps}}),
              HasSubstr("has no timestamps"));
  EXPECT_THAT(only_message({.stop = {.count = std::nullopt}}), HasSubstr("needs either"));
  EXPECT_THAT(only_message({.stop = {.count = 1, .per_load_unit = 1.0}}),
              HasSubstr("needs either"));
  EXPECT_THAT(only_message({.load = {.kind = Load::Kind::Burst}, .stop = {.per_load_unit = 1.0}}),
              HasSubstr("no rate to multiply"));
  EXPECT_THAT(only_message({.source = TraceSource{.path = "t",
                                                  .format = TraceFormat::AzureCsv,
                                                  .start_as_given = true}}),
              HasSubstr("calendar dates"));
}

}  // namespace
}  // namespace servecast::workload
