// SPDX-License-Identifier: Apache-2.0
#include "fit/hygiene.hpp"

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

TEST(Hygiene, OfExactRepetitionsTheFullestCounts) {
  std::vector<MeasuredRow> rows{a_row(), a_row(), a_row()};
  rows[1].version = "0.19";
  rows[2].tpot_ms = *rows[2].tpot_ms + 1e-9;  // a digit that an export lost
  const auto judged = judge(rows, {}, {});
  EXPECT_EQ(judged[0].status, Status::Duplicate);
  EXPECT_EQ(judged[1].status, Status::Use);
  EXPECT_EQ(judged[2].status, Status::Duplicate);
}

TEST(Hygiene, RowsWithoutBothTimesRepeatNothing) {
  std::vector<MeasuredRow> rows{a_row(), a_row()};
  for (MeasuredRow& row : rows) row.ttft_ms.reset();
  EXPECT_EQ(judge(rows, {}, {})[1].status, Status::Use);
}

TEST(Hygiene, WithoutConcurrencyTheBatchOfAllRanksIsTaken) {
  MeasuredRow row = a_row();
  row.concurrency.reset();
  row.batch = 6;
  row.widths.attention_data = 2;
  const JudgedRow one = judged(row);
  EXPECT_EQ(one.row.concurrency, 12U);
  EXPECT_EQ(one.status, Status::Special);
  row.batch.reset();
  EXPECT_EQ(judged(row).reason, "neither concurrency nor batch");
}

TEST(Hygiene, DisaggregatedRowsStandApartAndSayWhatIsAssumed) {
  MeasuredRow row = a_row();
  row.mode = "disagg";
  EXPECT_EQ(judged(row).status, Status::Disaggregated);
  EXPECT_TRUE(judged(row).assumed_pools);
  row.prefill.workers = row.decode.workers = 1;
  EXPECT_FALSE(judged(row).assumed_pools);
}

TEST(Hygiene, AWorkerOfARackIsNoAggregatedOne) {
  MeasuredRow row = a_row();
  row.widths.tensor = 72;
  EXPECT_EQ(judged(row).status, Status::Excluded);
}

TEST(Hygiene, NamedRulesExcludeOrMark) {
  NamedRule rule;
  rule.ids = {"2026_*"};
  rule.reason = "broken";
  EXPECT_EQ(judge({a_row()}, {rule}, {}).front().status, Status::Excluded);
  rule.verdict = NamedRule::Verdict::Special;
  EXPECT_EQ(judge({a_row()}, {rule}, {}).front().status, Status::Special);
  EXPECT_EQ(judge({a_row()}, {rule}, {}).front().reason, "broken");
}

TEST(Hygiene, TheProtocolComesFromTheIdUnlessAColumnSaysIt) {
  EXPECT_EQ(judged(a_row()).protocol, Protocol::InferenceMax);
  MeasuredRow row = a_row();
  row.id = "qwen";
  EXPECT_EQ(judged(row).protocol, Protocol::Fixed);
  row.protocol = "offline";
  EXPECT_EQ(judged(row).protocol, Protocol::Offline);
  row.protocol = "none of them";
  EXPECT_EQ(judged(row).reason, "unknown protocol none of them");
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
