// SPDX-License-Identifier: Apache-2.0
#include "cache/kv_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/some_groups.hpp"

namespace servecast::cache {
namespace {

using testing::ElementsAre;

std::vector<GroupRule> rules_of(const std::vector<KvGroup>& groups, std::uint32_t max_model_len,
                                std::uint32_t max_tokens_in_flight) {
  std::vector<GroupRule> rules;
  for (const KvGroup& group : groups) {
    rules.push_back(group_rule(group, max_model_len, max_tokens_in_flight));
  }
  return rules;
}

TEST(GroupRule, FollowsFromWhatTheGroupSays) {
  const auto kind = [](const KvGroup& group) { return group_rule(group, 100, 10).kind; };
  EXPECT_EQ(kind(full(4)), RuleKind::Full);
  EXPECT_EQ(kind(window(4, 8)), RuleKind::Window);
  EXPECT_EQ(kind(chunked(4, 8)), RuleKind::ChunkedLocal);
  EXPECT_EQ(kind(state(4)), RuleKind::State);
  EXPECT_EQ(kind(ring(4)), RuleKind::Ring);
  KvGroup scratch = window(4, 8);  // attention that is not cached is scratch too
  scratch.prefix_cacheable = false;
  EXPECT_EQ(kind(scratch), RuleKind::Ring);
}

TEST(GroupRule, SaysWhatOneRequestNeedsAtStartup) {
  const GroupRule attention = group_rule(full(16), 100, 10);
  EXPECT_EQ(attention.startup_blocks, 7U);
  EXPECT_EQ(attention.cap, std::nullopt);
  const GroupRule sliding = group_rule(window(4, 8), 100, 10);
  EXPECT_EQ(sliding.startup_blocks, 6U);  // 7 + 10 tokens are 5 blocks, and one more
  EXPECT_EQ(sliding.cap, 6U);
  EXPECT_EQ(group_rule(window(4, 8), 12, 10).startup_blocks, 4U);  // of 12 tokens at most
  const GroupRule local = group_rule(chunked(4, 8), 100, 10);
  EXPECT_EQ(local.startup_blocks, 5U);
  EXPECT_EQ(local.cap, 5U);
  EXPECT_EQ(group_rule(chunked(4, 8), 12, 10).startup_blocks, 3U);
  EXPECT_EQ(group_rule(state(4), 100, 10).startup_blocks, 2U);
  EXPECT_EQ(group_rule(state(4, 3), 100, 10).startup_blocks, 5U);
  EXPECT_EQ(group_rule(state(4), 100, 10).cap, std::nullopt);
  EXPECT_EQ(group_rule(ring(4), 100, 10).startup_blocks, 1U);
  EXPECT_EQ(group_rule(ring(4), 100, 10).cap, 1U);
}

TEST(GroupRule, SumsUpToTheNeedOfGlm) {
  EXPECT_EQ(startup_blocks(rules_of(glm_groups(0), 131'072, 8192)), 70U);  // 61 + 4 * 2 + 1
  EXPECT_EQ(startup_blocks(rules_of(glm_groups(1), 131'072, 8192)), 74U);
  EXPECT_EQ(startup_blocks(rules_of(glm_groups(0), 1'048'576, 8192)), 491U);  // 482 + 9
}

// Two groups of gpt-oss-120b, full and a window of 128, blocks of 16 tokens: the blocks per request
// from which vLLM computes the published capacities (realdata.md 2.5).
TEST(GroupRule, SumsUpToTheNeedOfGptOss) {
  EXPECT_EQ(startup_blocks(rules_of({full(16), window(16, 128)}, 9472, 8192)), 592U + 521U);
}

TEST(GroupRule, SkipsWhatNoLaterTokenReads) {
  const auto skipped = [](const KvGroup& group, std::uint64_t computed) {
    return group_rule(group, 100, 10).skipped_tokens(computed);
  };
  EXPECT_EQ(skipped(full(4), 50), 0U);
  EXPECT_EQ(skipped(window(4, 4), 7), 4U);
  EXPECT_EQ(skipped(window(4, 4), 3), 0U);
  EXPECT_EQ(skipped(chunked(4, 8), 7), 0U);
  EXPECT_EQ(skipped(chunked(4, 8), 8), 8U);
  EXPECT_EQ(skipped(chunked(4, 8), 13), 8U);
  EXPECT_EQ(skipped(state(4), 9), 8U);
  EXPECT_EQ(skipped(state(4), 0), 0U);
}

TEST(GroupRule, SaysWhenMoreIsSkipped) {
  for (const KvGroup& group : {window(4, 4), window(4, 1), window(3, 7), chunked(4, 8), state(4)}) {
    const GroupRule rule = group_rule(group, 100, 10);
    for (std::uint64_t tokens = 1; tokens < 40; ++tokens) {
      const std::uint64_t computed = rule.computed_until_skipped(tokens);
      EXPECT_GE(rule.skipped_tokens(computed), tokens) << group.name;
      EXPECT_LT(rule.skipped_tokens(computed - 1), tokens) << group.name;
    }
  }
  EXPECT_GE(group_rule(full(4), 100, 10).computed_until_skipped(1), UINT32_MAX);
}

TEST(HitAlignment, IsTheUnitOnlyIfAllGroupsCanEndInsideABlock) {
  const auto of = [](const std::vector<KvGroup>& groups) {
    const HitAlignment found = hit_alignment(rules_of(groups, 100, 10), 4);
    return std::pair(found.tokens, found.fine_grained);
  };
  EXPECT_EQ(of({full(16), state(16)}), std::pair(4UL, true));
  EXPECT_EQ(of({full(16), state(16), window(4, 8)}), std::pair(4UL, true));
  EXPECT_EQ(of({full(16), state(16), window(8, 8)}), std::pair(16UL, false));
  EXPECT_EQ(of({full(12), state(8), window(8, 8)}), std::pair(24UL, false));
  EXPECT_EQ(of({full(16), state(4)}), std::pair(16UL, false));  // no state wider than the unit
  EXPECT_EQ(of({full(16)}), std::pair(16UL, false));
  EXPECT_EQ(of({full(8), ring(12)}), std::pair(8UL, false));  // a ring has no say
}

TEST(HitAlignment, OfBlocksWithoutACommonMultipleInReachIsOutOfReach) {
  std::vector<KvGroup> groups;
  for (const std::uint32_t block : {4'294'967'291U, 4'294'967'279U, 4'294'967'231U}) {
    groups.push_back(full(block));
  }
  EXPECT_GT(hit_alignment(rules_of(groups, 100, 10), 1).tokens, std::uint64_t{UINT32_MAX});
}

TEST(GroupedVersion, IsARowOfData) {
  EXPECT_FALSE(find_grouped_version("0.31.0")->prefill_checkpoints);
  EXPECT_TRUE(find_grouped_version("0.32.0")->prefill_checkpoints);
  EXPECT_EQ(find_grouped_version("0.32"), nullptr);
}

TEST(GroupedVersion, NamesTheNearestOne) {
  EXPECT_EQ(nearest_grouped_version("0.30.2").name, "0.31.0");
  EXPECT_EQ(nearest_grouped_version("0.31.1").name, "0.31.0");
  EXPECT_EQ(nearest_grouped_version("0.33.0").name, "0.32.0");
  EXPECT_EQ(nearest_grouped_version("1.0").name, "0.32.0");
  EXPECT_EQ(nearest_grouped_version("nightly").name, "0.31.0");
}

TEST(GroupedRules, LookUpGroupsOfOneShapeTogetherAndFullAttentionFirst) {
  const std::vector<KvGroup> groups{window(4, 8),         state(8, 0, "a"), full(8, "b"), ring(4),
                                    state(8, 1, "again"), full(4, "c"),     full(8, "d")};
  const GroupedRules rules = grouped_rules(a_setting(groups, 4, 5000));
  EXPECT_THAT(rules.lookups,
              ElementsAre(ElementsAre(2, 6), ElementsAre(5), ElementsAre(0), ElementsAre(1, 4)));
  EXPECT_EQ(rules.state_block, 8U);
}

TEST(GroupedRules, UseCheckpointsIfEveryStateGroupHasABlockForThem) {
  const auto checkpoints = [](const std::vector<KvGroup>& groups) {
    return grouped_rules(a_setting(groups, 4, 5000)).prefill_checkpoints;
  };
  EXPECT_TRUE(checkpoints({full(8), state(8, 1), state(8, 2, "b")}));
  EXPECT_FALSE(checkpoints({full(8), state(8, 1), state(8, 0, "b")}));
  EXPECT_FALSE(checkpoints({full(8)}));
}

TEST(GroupedRules, DivideTheCapacityIntoBlocks) {
  std::vector<KvGroup> groups = glm_groups();
  for (KvGroup& group : groups) group.page_size_bytes = 13'045'120;
  GroupedSettings s = a_setting(groups, 2176, 0);
  s.capacity_bytes = 180'218'332'800;
  s.max_model_len = 1'048'576;
  EXPECT_EQ(grouped_rules(s).blocks, 13'815U);
  s.capacity_bytes -= 1;
  EXPECT_EQ(grouped_rules(s).blocks, 13'814U);
}

}  // namespace
}  // namespace servecast::cache
