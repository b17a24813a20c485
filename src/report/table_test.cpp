// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "report/test_run.hpp"

namespace servecast::report {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Table, LooksLikeThis) {
  TestRun run;
  run.facts.timing_is_checked = true;
  run.add(a_request(0).input(40).reused(10, 10).tokens({1050, 1060, 1075, 1095}));
  run.add(a_request(1).input(40).tokens({1000, 1100}));
  EXPECT_EQ(table(run.report(), {.wall_time_ms = 1234.5}),
            R"(                                                    servecast | LLM Metrics
┌────────────────────────────────────────────────────┬──────────┬──────────┬──────────┬──────────┬──────────┬──────────┬───────┐
│ Metric                                             │      avg │      min │      max │      p99 │      p90 │      p75 │   std │
├────────────────────────────────────────────────────┼──────────┼──────────┼──────────┼──────────┼──────────┼──────────┼───────┤
│ Time to First Token (ms)                           │ 1,025.00 │ 1,000.00 │ 1,050.00 │ 1,050.00 │ 1,050.00 │ 1,050.00 │ 25.00 │
│ Time to Second Token (ms)                          │    55.00 │    10.00 │   100.00 │   100.00 │   100.00 │   100.00 │ 45.00 │
│ Request Latency (ms)                               │ 1,097.50 │ 1,095.00 │ 1,100.00 │ 1,100.00 │ 1,100.00 │ 1,100.00 │  2.50 │
│ Inter Token Latency (ms)                           │    36.25 │    10.00 │   100.00 │   100.00 │   100.00 │    20.00 │ 36.98 │
│ Output Token Throughput Per User (tokens/sec/user) │    56.67 │    10.00 │   100.00 │   100.00 │   100.00 │    66.67 │ 32.40 │
│ Output Token Throughput (tokens/sec)               │     5.45 │      N/A │      N/A │      N/A │      N/A │      N/A │   N/A │
│ Request Throughput (requests/sec)                  │     1.82 │      N/A │      N/A │      N/A │      N/A │      N/A │   N/A │
│ Request Count (requests)                           │     2.00 │      N/A │      N/A │      N/A │      N/A │      N/A │   N/A │
└────────────────────────────────────────────────────┴──────────┴──────────┴──────────┴──────────┴──────────┴──────────┴───────┘
Wall Time (ms): 1,234.50
Prefix Cache Reused Ratio: 0.12
First Admission Prefix Cache Reused Ratio: 0.12
)");
}

TEST(Table, SaysNotAvailableForWhatHasNoSample) {
  TestRun run;
  run.add(a_request().tokens({5}));
  for (const std::string& line : lines_of(table(run.report(), {}))) {
    if (line.find("Inter Token") == std::string::npos) continue;
    std::size_t count = 0;
    for (std::size_t at = line.find("N/A"); at != std::string::npos; at = line.find("N/A", at + 1))
      ++count;
    EXPECT_EQ(count, 7U);
  }
}

TEST(Table, SaysWhatWasLostAndNothingWhenNothingWas) {
  TestRun clean;
  clean.add(a_request().tokens({5}));
  EXPECT_THAT(table(clean.report(), {}), Not(HasSubstr("Requests Not Completed")));
  EXPECT_THAT(table(clean.report(), {}), Not(HasSubstr("Preemptions")));

  TestRun run;
  run.add(a_request(0).tokens({5}));
  for (std::uint64_t i = 1; i <= 3; ++i)
    run.add(a_request(i).rejected(replay::Reason::PoolTooSmall));
  run.add(a_request(4).rejected(replay::Reason::ModelLength));
  run.add(a_request(5).ended(replay::Status::Failed, replay::Reason::KvCapacity));
  run.totals.requests += 2000;
  run.totals.incomplete_at_cap = 2000;
  run.totals.preemptions = 12;
  const std::string text = table(run.report(), {});
  EXPECT_THAT(text, HasSubstr("Requests Not Completed: 2,005 of 2,006\n"));
  EXPECT_THAT(text, HasSubstr("Requests Rejected: 4 (model_length 1, pool_too_small 3)\n"));
  EXPECT_THAT(text, HasSubstr("Requests Failed: 1 (kv_capacity 1)\n"));
  EXPECT_THAT(text, HasSubstr("Requests In Flight At The Time Cap: 2,000\n"));
  EXPECT_THAT(text, HasSubstr("Preemptions: 12\n"));
  EXPECT_THAT(text, Not(HasSubstr("Requests Canceled")));
}

}  // namespace
}  // namespace servecast::report
