// SPDX-License-Identifier: Apache-2.0
#include "conformance/expect_reported.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "conformance/expectations.hpp"
#include "report/report.hpp"

namespace servecast::test {

void expect_reported(const SharedCase& shared, const workload::Workload& workload) {
  report::Collector collector({});
  const auto totals = replay::run(shared.deployment, workload, {}, collector);
  ASSERT_TRUE(totals) << to_text(totals.error().front());
  const auto report = report::make_report(collector, *totals, {});
  ASSERT_TRUE(report) << to_text(report.error().front());
  std::map<std::string, double> reported;
  for (const report::Member& member : report->summary) {
    const std::optional<double> number = member.value.number();
    if (number || member.value.is_null()) reported[member.key] = number.value_or(0);
  }
  EXPECT_EQ(reported_mismatch(shared, reported), std::nullopt);
}

}  // namespace servecast::test
