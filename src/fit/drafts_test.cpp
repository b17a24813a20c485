// SPDX-License-Identifier: Apache-2.0
#include "fit/drafts.hpp"

#include <gtest/gtest.h>

#include "fit/a_row.hpp"

namespace servecast::fit {
namespace {

MeasuredRow r1(double tpot_ms, std::string version = "1.2.0rc6.post3") {
  MeasuredRow row = a_row();
  row.model = "deepseek-ai/DeepSeek-R1";
  row.engine = "trtllm";
  row.version = std::move(version);
  row.tpot_ms = tpot_ms;
  return row;
}

TEST(Drafts, AreInferredForR1AndSaidToBe) {
  const JudgedRow one = judged(r1(8));
  EXPECT_EQ(one.drafts.count, 3U);
  EXPECT_EQ(one.drafts.source, Drafts::Source::Inferred);
  MeasuredRow many = r1(8);
  many.concurrency = 33;
  EXPECT_EQ(judged(many).drafts.count, 1U);
  many.widths.attention_data = 8;  // 5 requests a rank
  EXPECT_EQ(judged(many).drafts.count, 3U);
  EXPECT_EQ(judged(r1(8, "1.2.0rc6.post2")).drafts.count, 0U);
  EXPECT_EQ(judged(a_row()).drafts.source, Drafts::Source::None);
}

TEST(Drafts, ATwinOfV3HasNone) {
  std::vector<MeasuredRow> rows{r1(8), r1(8)};
  rows[1].model = "deepseek-ai/DeepSeek-V3";
  const auto judged = judge(rows, {}, {});
  EXPECT_EQ(judged[0].drafts.count, 0U);
  EXPECT_EQ(judged[1].drafts.count, 0U);
}

TEST(Drafts, OfAPairTheSlowerHasNone) {
  const auto judged = judge({r1(8), r1(8 * 1.36)}, {}, {});
  EXPECT_EQ(judged[0].drafts.count, 3U);
  EXPECT_EQ(judged[1].drafts.count, 0U);
  EXPECT_EQ(judge({r1(8), r1(8 * 1.34)}, {}, {})[1].drafts.count, 3U);
}

TEST(Drafts, ARowsOwnWordBeatsTheCommandLineWhichBeatsTheRule) {
  MeasuredRow row = r1(8);
  const JudgedRow given = judge({row}, {}, {.nextn = 1, .accepted = 0.5}).front();
  EXPECT_EQ(given.drafts.count, 1U);
  EXPECT_EQ(given.drafts.accepted, 0.5);
  EXPECT_EQ(given.drafts.source, Drafts::Source::Given);
  row.nextn = 0;
  EXPECT_EQ(judge({row}, {}, {.nextn = 1}).front().drafts.count, 0U);
}

}  // namespace
}  // namespace servecast::fit
