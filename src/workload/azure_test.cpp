// SPDX-License-Identifier: Apache-2.0
#include "workload/azure.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "workload/trace_builders.hpp"

namespace servecast::workload {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_tools::complaints;
using testing_tools::kClosed;
using testing_tools::kTimed;

const TraceSource kAzure{.path = "trace.csv", .format = TraceFormat::AzureCsv};
const std::string kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

Trace parsed(const std::string& text, const Load& load = kTimed) {
  auto trace = parse_trace(text, kAzure, load);
  if (trace) return std::move(*trace);
  ADD_FAILURE() << to_text(trace.error()[0]);
  Trace none;
  none.sessions.resize(1);
  return none;
}

// What is said of one row below the header.
std::string complaint(const std::string& row) {
  const std::string text = complaints(kHeader + row, kAzure);
  EXPECT_EQ(text.substr(0, 3), "2: ");
  return text.size() < 3 ? text : text.substr(3);
}

TEST(Azure, KeepsTimesToAHundredNanoseconds) {
  const Trace trace = parsed(kHeader +
                             "2023-11-16 18:17:03.9799600,4808,10\n"
                             "2023-11-16 18:17:03.9799601,3180,0\n"
                             "2023-11-17 00:00:00,110,27");
  ASSERT_EQ(trace.turns.size(), 3u);
  EXPECT_EQ(trace.sessions[0].arrival.ns, 0);
  EXPECT_EQ(trace.sessions[1].arrival.ns, 100);
  EXPECT_EQ(trace.sessions[2].arrival.ns, 20'576'020'040'000);
  EXPECT_EQ(trace.turns[0].input_tokens, 4808u);
  EXPECT_EQ(trace.turns[1].output_tokens, 0u);
  EXPECT_EQ(trace.turns[2].ids_count, 0u);
  EXPECT_EQ(trace.sessions[2].plan_offset, 10u);
  EXPECT_EQ(trace.total_tokens_max, 4818u);
}

TEST(Azure, ReadsQuotesCarriageReturnsAndColumnsInAnyOrder) {
  const Trace trace = parsed(
      "\"GeneratedTokens\",NumImages,TIMESTAMP,ContextTokens\r\n"
      "10,\"a,\"\"b\"\"\",\"2023-11-16 18:17:03.5\",\"4808\"\r\n"
      "\r\n"
      "11,,2023-11-16 18:17:04.5,7\r\n");
  ASSERT_EQ(trace.turns.size(), 2u);
  EXPECT_EQ(trace.turns[0].input_tokens, 4808u);
  EXPECT_EQ(trace.turns[1].output_tokens, 11u);
  EXPECT_EQ(trace.sessions[1].arrival.ns, 1'000'000'000);
  EXPECT_THAT(trace.notes.warnings,
              ElementsAre("trace.csv: columns without meaning here are ignored: NumImages"));
}

TEST(Azure, SortsByTimeAndCountsTheDisorder) {
  const Trace trace = parsed(kHeader +
                             "2023-11-16 18:17:05,1,1\n"
                             "2023-11-16 18:17:03,2,1\n"
                             "2023-11-16 18:17:04,3,1\n");
  EXPECT_THAT(trace.order, ElementsAre(1, 2, 0));
  EXPECT_EQ(trace.sessions[0].arrival.ns, 2'000'000'000);
  EXPECT_EQ(trace.notes.rows_out_of_order, 1u);
}

TEST(Azure, AClosedLoopKeepsFileOrder) {
  EXPECT_TRUE(parsed(kHeader + "2023-11-16 18:17:05,1,1\n2023-11-16 18:17:03,2,1\n", kClosed)
                  .order.empty());
}

TEST(AzureTime, IsReadWithAndWithoutDecimalsAndOffset) {
  EXPECT_EQ(azure_time_ns("1970-01-01 00:00:00"), 0);
  EXPECT_EQ(azure_time_ns("1970-01-01 00:00:00.0000001"), 100);
  EXPECT_EQ(azure_time_ns("1970-01-02 01:02:03.5"), 90'123'500'000'000);
  EXPECT_EQ(azure_time_ns("2024-05-10 00:00:00.009930+00:00"), 1'715'299'200'009'930'000);
  EXPECT_EQ(azure_time_ns("2024-05-10 02:30:00.009930+02:30"), 1'715'299'200'009'930'000);
  EXPECT_EQ(azure_time_ns("2024-05-09 23:00:00.009930-01:00"), 1'715'299'200'009'930'000);
  EXPECT_EQ(azure_time_ns("2024-05-10 00:00:00.009930Z"), 1'715'299'200'009'930'000);
  EXPECT_TRUE(azure_time_ns("2024-02-29 00:00:00"));
  EXPECT_TRUE(azure_time_ns("2115-12-31 23:59:59.9999999"));
}

TEST(AzureTime, IsRefusedWhenItIsNoTime) {
  for (const char* text : {"",
                           "2023-11-16",
                           "2023-11-16T18:17:03",
                           "2023-11-16 18:17",
                           "2023-11-16 18:17:03.",
                           "2023-11-16 24:00:00",
                           "2023-11-16 18:60:00",
                           "2023-11-16 18:17:60",
                           "2023-02-29 00:00:00",
                           "2023-13-01 00:00:00",
                           "2023-00-10 00:00:00",
                           "2023-11-16 18:17:03.97996001",
                           "2023-11-16 18:17:03x",
                           " 2023-11-16 18:17:03",
                           "1969-12-31 23:59:59",
                           "1970-01-01 00:00:00+00:01",
                           "2116-01-01 00:00:00",
                           "2023-11-16 18:17:03+1:00",
                           "2023-11-16 18:17:03+24:00",
                           "-023-11-16 18:17:03"}) {
    EXPECT_FALSE(azure_time_ns(text)) << text;
  }
}

TEST(AzureErrors, NameColumnValueAndRule) {
  EXPECT_EQ(
      complaint("2023-11-16,1,1"),
      "TIMESTAMP is \"2023-11-16\": must be a date and time like 2023-11-16 18:17:03.9799600");
  const std::string time = "2023-11-16 18:17:03,";
  for (const char* value : {"0", "-1", "1.5", "", "x", "4294967296", "NaN", "inf", " 5"}) {
    EXPECT_EQ(complaint(time + value + ",1"),
              "ContextTokens is \"" + std::string(value) +
                  "\": must be a whole number from 1 to 4294967295");
  }
  EXPECT_EQ(complaint(time + "1,-1"),
            "GeneratedTokens is \"-1\": must be a whole number from 0 to 4294967295");
  EXPECT_EQ(complaint(time + "1"), "the row has 2 fields but the header has 3");
  EXPECT_EQ(complaint(time + "1,1,1"), "the row has 4 fields but the header has 3");
  EXPECT_EQ(complaint(time + "\"1,1"), "a quote is misplaced or not closed on its line");
  EXPECT_EQ(complaint(time + "\"1\"2,1"), "a quote is misplaced or not closed on its line");
  EXPECT_EQ(complaint(time + "1\",1"), "a quote is misplaced or not closed on its line");
  EXPECT_EQ(complaint(time + "4294967295,1"),
            "input and output together have 4294967296 tokens: must be at most 4294967295");
}

TEST(AzureErrors, TheHeaderMustNameEachColumnOnce) {
  EXPECT_EQ(complaints("TIMESTAMP,ContextTokens\n1,2\n", kAzure),
            "1: the header names the column GeneratedTokens 0 times: must be once");
  EXPECT_EQ(complaints("TIMESTAMP,TIMESTAMP,ContextTokens,GeneratedTokens\n", kAzure),
            "1: the header names the column TIMESTAMP 2 times: must be once");
  EXPECT_THAT(complaints("2023-11-16 18:17:03,1,1\n", kAzure),
              HasSubstr("the column TIMESTAMP 0 times"));
}

TEST(AzureErrors, AFileWithoutRowsIsAnError) {
  EXPECT_EQ(complaints("", kAzure), "the trace has no rows");
  EXPECT_EQ(complaints(kHeader, kAzure), "the trace has no rows");
}

TEST(AzureErrors, AreReportedForTwentyRowsAndCountedBeyond) {
  std::string text = kHeader;
  for (int i = 0; i < 23; ++i) text += "x,1,1\n";
  const auto trace = parse_trace(text, kAzure, kTimed);
  ASSERT_FALSE(trace);
  ASSERT_EQ(trace.error().size(), 21u);
  EXPECT_EQ(trace.error()[0].place.line, 2);
  EXPECT_EQ(trace.error()[20].message, "3 more rows are wrong");
}

TEST(Azure, TheSharedTracesHaveTheirPublishedTotals) {
  struct Expected {
    const char* file;
    std::size_t rows;
    std::uint64_t input, output;
    std::uint32_t input_max;
  };
  for (const Expected& e :
       {Expected{"traces/azure/AzureLLMInferenceTrace_code.csv", 8819, 18'059'974, 245'896, 7437},
        Expected{"traces/azure/AzureLLMInferenceTrace_conv.csv", 19'366, 22'361'870, 4'088'665,
                 14'050}}) {
    const auto path = testing_tools::shared_data(e.file);
    if (!path) GTEST_SKIP() << "no shared data";
    const auto trace = load_trace({.path = *path, .format = TraceFormat::AzureCsv}, kTimed);
    ASSERT_TRUE(trace) << to_text(trace.error()[0]);
    std::uint64_t input = 0, output = 0;
    for (const Turn& turn : trace->turns) {
      input += turn.input_tokens;
      output += turn.output_tokens;
    }
    EXPECT_EQ(trace->turns.size(), e.rows);
    EXPECT_EQ(input, e.input);
    EXPECT_EQ(output, e.output);
    EXPECT_EQ(trace->input_tokens_max, e.input_max);
    if (e.rows == 8819) {
      EXPECT_EQ(trace->sessions[8818].arrival.ns, 3'435'948'056'000);
    }
  }
}

}  // namespace
}  // namespace servecast::workload
