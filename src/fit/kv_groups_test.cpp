// SPDX-License-Identifier: Apache-2.0
#include "fit/kv_groups.hpp"

#include <gtest/gtest.h>

#include "fit/a_row.hpp"
#include "fit/row_case.hpp"

namespace servecast::fit {
namespace {

JudgedRow gpt_oss(std::uint32_t tensor = 1) {
  MeasuredRow row = a_row();
  row.model = "openai/gpt-oss-120b";
  row.system = "h200";
  row.precision = "fp4";
  row.widths.tensor = tensor;
  row.widths.moe_tensor = tensor;
  return judged(row);
}

TEST(KvGroups, LayersWithAndWithoutAWindowShareThePool) {
  const auto made = case_of(gpt_oss());
  ASSERT_TRUE(made) << made.error().reason;
  const auto& groups = made->deployed.deployment.rank.grouped->groups;
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].num_layers, 18U);
  EXPECT_EQ(groups[0].sliding_window, std::nullopt);
  EXPECT_EQ(groups[1].sliding_window, 128U);
  // realdata.md 2.5: 18 layers * 16 tokens * 2 * 8 heads * 64 * 2 B.
  EXPECT_EQ(groups[0].page_size_bytes, 589824U);
  EXPECT_EQ(case_of(gpt_oss(4))->deployed.deployment.rank.grouped->groups[0].page_size_bytes,
            589824U / 4);
}

TEST(KvGroups, OnlyVllmWithoutDraftsRunsThem) {
  JudgedRow judged = gpt_oss();
  judged.drafts = {.count = 1, .accepted = 0.5, .source = Drafts::Source::Given};
  EXPECT_FALSE(case_of(judged)->deployed.deployment.rank.grouped);
  judged = gpt_oss();
  judged.row.engine = "trtllm";
  EXPECT_FALSE(case_of(judged)->deployed.deployment.rank.grouped);
}

TEST(KvGroups, AModelWhoseLayersAreAlikeHasNone) {
  EXPECT_FALSE(case_of(judged(a_row()))->deployed.deployment.rank.grouped);
}

}  // namespace
}  // namespace servecast::fit
