// SPDX-License-Identifier: Apache-2.0
#include "cache/grouped_split.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/some_groups.hpp"

namespace servecast::cache {
namespace {

using testing::ElementsAre;

GroupedRules rules_of(const std::vector<KvGroup>& groups, std::uint32_t unit,
                      std::uint32_t budget) {
  GroupedSettings s = a_setting(groups, unit, 5000);
  s.max_num_batched_tokens = budget;
  return grouped_rules(s);
}

struct Case {
  std::uint32_t start, tokens, prompt, known, expected;
  std::optional<std::uint32_t> junction = {};
};

void expect_tokens(const GroupedRules& rules, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const GroupedStep step{.start = c.start,
                           .end = c.start + c.tokens,
                           .prompt = c.prompt,
                           .known = c.known,
                           .junction = c.junction};
    EXPECT_EQ(grouped_split(rules, step) - c.start, c.expected)
        << c.start << " " << c.tokens << " " << c.prompt << " " << c.known;
  }
}

TEST(GroupedSplit, LeavesPrefillsWithoutRecurrentStateAlone) {
  expect_tokens(rules_of({full(16), window(16, 40)}, 16, 64), {{0, 50, 100, 100, 50}});
}

TEST(GroupedSplit, EndsChunksAtBlocksOfTheState) {
  const GroupedRules rules = rules_of({full(512), state(512)}, 64, 8192);
  expect_tokens(rules, {
                           {0, 8192, 10'000, 10'000, 8192},
                           {8192, 1808, 10'000, 10'000, 1536},  // the last full block
                           {9728, 272, 10'000, 10'000, 256},    // the last unit of the prompt
                           {9984, 16, 10'000, 10'000, 16},
                           {9984, 2016, 12'000, 12'000, 256},  // resumed inside a block
                           {10'240, 1000, 12'000, 12'000, 512},
                           {0, 500, 10'000, 10'000, 0},  // the next boundary is out of reach
                       });
}

TEST(GroupedSplit, LeavesDecodesAlone) {
  const GroupedRules rules = rules_of({full(6), state(6)}, 2, 8);
  expect_tokens(rules, {{24, 1, 24, 25, 1}, {25, 1, 25, 26, 1}, {29, 1, 25, 30, 1}});
}

// The known tokens count, so a prompt that ends with a block is computed to its end.
TEST(GroupedSplit, RunsOverTheLastBoundaryOfAPromptThatEndsWithABlock) {
  const GroupedRules rules = rules_of({full(4), state(4)}, 4, 64);
  expect_tokens(rules, {{0, 16, 16, 16, 16}, {0, 17, 17, 17, 16}});
}

TEST(GroupedSplit, OfAPreemptedRequestGoesOnBehindThePrompt) {
  const GroupedRules rules = rules_of({full(4), state(4)}, 4, 64);
  // 10 tokens of prompt and 9 generated: up to the last but one it prefills.
  expect_tokens(rules, {{0, 19, 10, 19, 16}, {0, 15, 10, 19, 12}, {16, 3, 10, 19, 3}});
}

TEST(GroupedSplit, AdvancesInsideABlockThatIsWiderThanAPass) {
  const GroupedRules rules = rules_of({full(12), state(12)}, 4, 8);
  expect_tokens(rules, {{0, 8, 30, 30, 8}, {8, 8, 30, 30, 4}, {12, 8, 30, 30, 8}});
}

TEST(GroupedSplit, StopsWhereASharedPrefixEnds) {
  const GroupedRules rules = rules_of({full(32), state(32)}, 16, 1000);
  expect_tokens(rules, {
                           {0, 100, 200, 200, 64, 64},
                           {0, 100, 200, 200, 64, 80},  // floored to a block
                           {0, 40, 200, 200, 32, 64},   // before it
                           {64, 128, 200, 200, 128, 64},
                           {0, 200, 200, 200, 192, 16},  // less than a block
                       });
}

TEST(GroupedSplit, OfGlmAsTraced) {
  const GroupedRules plain = rules_of(glm_groups(0), 2176, 8192);
  expect_tokens(plain, {{0, 8192, 9000, 9000, 6528},
                        {6528, 2472, 9000, 9000, 2176},
                        {8704, 296, 9000, 9000, 296},
                        {8704, 4296, 13'000, 13'000, 2176}});
  const GroupedRules checkpoints = rules_of(glm_groups(1), 2176, 8192);
  expect_tokens(checkpoints, {{0, 8192, 9000, 9000, 6528},
                              {6528, 2472, 9000, 9000, 2472},
                              {8704, 4296, 13'000, 13'000, 4296}});
}

TEST(PrefillCheckpoint, IsTheLastUnitBeforeTheEndOfAPrefill) {
  const GroupedRules rules = rules_of({full(16), state(16, 1)}, 4, 64);
  const auto at = [&](std::uint32_t start, std::uint32_t end, std::uint32_t prompt) {
    return prefill_checkpoint(rules,
                              {.start = start, .end = end, .prompt = prompt, .known = prompt});
  };
  EXPECT_EQ(at(0, 40, 40), 36U);
  EXPECT_EQ(at(0, 41, 41), 40U);
  EXPECT_EQ(at(0, 32, 40), std::nullopt);  // not the last chunk
  EXPECT_EQ(at(2, 40, 40), std::nullopt);  // starts off the units
  EXPECT_EQ(at(0, 16, 16), std::nullopt);  // no position between
  EXPECT_EQ(at(0, 17, 17), 16U);
  EXPECT_EQ(at(16, 32, 32), std::nullopt);  // the position before is that of the state read
  EXPECT_EQ(at(16, 33, 33), 32U);
  EXPECT_EQ(at(20, 48, 48), std::nullopt);
  EXPECT_EQ(at(20, 49, 49), 48U);
  EXPECT_EQ(prefill_checkpoint(rules, {.start = 40, .end = 41, .prompt = 40, .known = 41}),
            std::nullopt);  // a decode
}

TEST(PrefillCheckpoint, TakesTheStopsAtBlocksAndAtTheTailAway) {
  const GroupedRules rules = rules_of({full(16), state(16, 1)}, 4, 64);
  expect_tokens(rules, {{0, 46, 46, 46, 46},
                        {20, 29, 49, 49, 29},
                        {0, 46, 46, 46, 32, 32},     // but not at a shared prefix
                        {32, 14, 46, 46, 12, 32}});  // then there is no position for one
}

}  // namespace
}  // namespace servecast::cache
