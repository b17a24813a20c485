// SPDX-License-Identifier: Apache-2.0
#include "fit/hygiene.hpp"

#include <gtest/gtest.h>

#include "fit/a_row.hpp"

namespace servecast::fit {
namespace {

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

}  // namespace
}  // namespace servecast::fit
