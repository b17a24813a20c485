// SPDX-License-Identifier: Apache-2.0
// Figures and rows against those of independent reference simulators, where their results are at
// hand.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "report/rows.hpp"
#include "report/test_run.hpp"

namespace servecast::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The folder of reference results beside the shared data, if there is one.
fs::path conformance(const std::string& kind) {
  const char* data = std::getenv("SERVECAST_DATA");
  const fs::path root =
      data ? fs::path(data) : fs::path(SERVECAST_SOURCE_DIR) / ".." / "shared" / "data";
  return root / ".." / "conformance" / kind;
}

Time time_of(const json& ms) {
  return ms.is_null() ? kNever : at_ms(ms.get<double>());
}

replay::RequestRecord record_of(const json& row) {
  replay::RequestRecord r;
  r.ordinal = row["index"];
  r.status = row["status"] == "completed" ? replay::Status::Completed : replay::Status::Rejected;
  r.arrival = time_of(row["arrival_ms"]);
  r.first_admit = time_of(row["first_admit_ms"]);
  r.first_token = time_of(row["first_token_ms"]);
  r.last_token = time_of(row["last_token_ms"]);
  r.second_token = r.last_token;  // not in the rows; nothing below depends on it
  r.terminal = time_of(row["terminal_ms"]);
  r.input_tokens = row["input_tokens"];
  r.output_tokens = row["output_tokens"];
  r.reused_tokens = row["max_reused_tokens"];
  r.reused_tokens_first = row["first_admission_reused_tokens"];
  return r;
}

// The rows tell how many gaps a request had and what they sum to: spread them evenly.
void add_gaps(replay::GapTable& table, std::map<std::int64_t, std::uint64_t>& gaps,
              const replay::RequestRecord& r) {
  if (r.output_tokens < 2 || r.status != replay::Status::Completed) return;
  const std::int64_t count = r.output_tokens - 1;
  const std::int64_t span = (r.last_token - r.first_token).ns;
  gaps[span / count] += static_cast<std::uint64_t>(count - 1);
  ++gaps[span - span / count * (count - 1)];
  table.count += static_cast<std::uint64_t>(count);
  table.sum_ns += static_cast<std::uint64_t>(span);
}

Report report_of(const fs::path& rows) {
  Collector collector({});
  replay::RunTotals totals;
  std::map<std::int64_t, std::uint64_t> gaps;
  std::ifstream file(rows);
  for (std::string line; std::getline(file, line);) {
    const replay::RequestRecord record = record_of(json::parse(line));
    collector.on_request(record);
    ++totals.requests;
    totals.first_arrival = std::min(totals.first_arrival, record.arrival);
    add_gaps(totals.gaps, gaps, record);
  }
  totals.gaps.gaps_ns.assign(gaps.begin(), gaps.end());
  const auto report = make_report(collector, totals, {});
  EXPECT_TRUE(report);
  return report ? *report : Report{};
}

TEST(Conformance, SummariesOfTheReferenceFollowFromItsRows) {
  const fs::path root = conformance("vllm");
  if (!fs::exists(root)) GTEST_SKIP() << "no reference results at " << root;
  std::size_t cases = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "summary.json") continue;
    SCOPED_TRACE(entry.path().string());
    ++cases;
    const Report report = report_of(entry.path().parent_path() / "expected.jsonl");
    const json expected = json::parse(std::ifstream(entry.path()));
    std::vector<std::string> keys{"num_requests",
                                  "completed_requests",
                                  "rejected_requests",
                                  "total_input_tokens",
                                  "total_output_tokens",
                                  "duration_ms",
                                  "first_admission_prefix_cache_reused_ratio",
                                  "num_itl_samples"};
    const bool any_time = expected["duration_ms"] > 0;
    for (const char* key : {"request_throughput_rps", "input_throughput_tok_s",
                            "output_throughput_tok_s", "total_throughput_tok_s"}) {
      if (any_time) keys.push_back(key);
    }
    for (const std::string metric : {"ttft", "tpot", "e2e_latency"}) {
      keys.push_back("num_" + metric + "_samples");
      if (expected["num_" + metric + "_samples"] == 0) continue;
      for (const char* stat : {"mean", "min", "max", "median", "p75", "p90", "p95", "p99", "std"}) {
        keys.push_back(std::string(stat) + "_" + metric + "_ms");
      }
    }
    if (expected["num_itl_samples"] > 0) keys.push_back("mean_itl_ms");
    for (const std::string& key : keys) {
      const double want = expected[key];
      EXPECT_NEAR(value_of(report, key), want, 1e-6 + 1e-9 * std::abs(want)) << key;
    }
    EXPECT_NEAR(value_of(report, "prefix_cache_reused_ratio"),
                expected["prefix_cache_reused_ratio_capped_at_input"].get<double>(), 1e-12);
  }
  EXPECT_GT(cases, 60U);
}

TEST(Conformance, KvEventRowsHaveTheFieldsOfTheReference) {
  const fs::path root = conformance("sglang");
  if (!fs::exists(root)) GTEST_SKIP() << "no reference results at " << root;
  std::size_t rows = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "events.jsonl") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line); ++rows) {
      json expected = json::parse(line);
      replay::KvEventRecord event;
      event.at = time_of(expected["time_ms"]);
      event.worker = expected["worker"];
      event.event = expected["event_id"];
      event.stored = expected["type"] == "stored";
      if (event.stored) {
        event.has_parent = !expected["parent_hash"].is_null();
        if (event.has_parent) event.parent = expected["parent_hash"];
        for (const json& block : expected["blocks"])
          event.blocks.push_back({block["block_hash"], block["tokens_hash"]});
      } else {
        for (const json& hash : expected["block_hashes"]) event.blocks.push_back({hash, 0});
      }
      std::string text;
      append_row(text, event);
      expected["time_ms"] = to_ms(event.at);  // the reference adds doubles
      ASSERT_EQ(json::parse(text), expected);
    }
  }
  EXPECT_GT(rows, 100U);
}

}  // namespace
}  // namespace servecast::report
