// SPDX-License-Identifier: Apache-2.0
#include "fit/named_rules.hpp"

#include <gtest/gtest.h>

#include "fit/a_row.hpp"

namespace servecast::fit {
namespace {

TEST(NamedRules, AStarIsAnyText) {
  EXPECT_TRUE(matches("a*b*", "axxbyb"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("ab", "ab"));
  EXPECT_TRUE(matches("*_c4_*", "x_c4_c4_y"));
  EXPECT_FALSE(matches("a*b", "ab_"));
  EXPECT_FALSE(matches("a", "ab"));
  EXPECT_FALSE(matches("a*c", "ab"));
}

TEST(NamedRules, BoundsAreInclusive) {
  const auto rules = parse_rules(
      R"({"rules": [{"ids": ["2026_*"], "verdict": "special", "reason": "r", "concurrency_min": 4,
                     "concurrency_max": 4, "tensor_max": 1, "input_tokens": 128}]})",
      "f.json");
  ASSERT_TRUE(rules);
  MeasuredRow row = a_row();
  EXPECT_TRUE(applies(rules->at(0), row));
  row.concurrency = 5;
  EXPECT_FALSE(applies(rules->at(0), row));
  row.concurrency = 3;
  EXPECT_FALSE(applies(rules->at(0), row));
  row = a_row();
  row.widths.tensor = 2;
  EXPECT_FALSE(applies(rules->at(0), row));
  row = a_row();
  row.input_tokens = 129;
  EXPECT_FALSE(applies(rules->at(0), row));
}

TEST(NamedRules, ARuleNeedsIdsVerdictAndReason) {
  const auto rules = parse_rules(R"({"rules": [{"ids": ["a"], "verdct": "special"}]})", "f.json");
  ASSERT_FALSE(rules);
  EXPECT_EQ(rules.error().size(), 2U);
  EXPECT_EQ(rules.error()[0].place.column, 27);
}

TEST(NamedRules, EveryShippedRuleSaysItsSource) {
  const std::vector<NamedRule> rules = shipped_rules();
  EXPECT_GE(rules.size(), 15U);
  for (const NamedRule& rule : rules) EXPECT_NE(rule.source, "") << rule.reason;
}

}  // namespace
}  // namespace servecast::fit
