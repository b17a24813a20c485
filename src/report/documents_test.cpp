// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/random.hpp"
#include "base/text.hpp"
#include "report/rows.hpp"
#include "report/test_run.hpp"

namespace servecast::report {
namespace {

using nlohmann::json;
using replay::Reason;
using replay::Status;

std::string written(const std::function<Result<void>(const Write&)>& produce) {
  std::string text;
  EXPECT_TRUE(produce([&](std::string_view piece) { text += piece; }));
  return text;
}

std::vector<json> rows_of(const std::string& text) {
  std::vector<json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    rows.push_back(json::parse(line));
    // Parsing into a sorted object and printing it back: keys were sorted, no spaces, no duplicate.
    std::vector<std::string> keys;
    for (const auto& [key, value] : rows.back().items()) keys.push_back(key);
    std::size_t at = 0;
    for (const std::string& key : keys) {
      const std::size_t found = line.find("\"" + key + "\":", at);
      EXPECT_NE(found, std::string::npos) << key << " in " << line;
      if (found != std::string::npos) at = found;
    }
  }
  return rows;
}

std::vector<json> request_rows(const TestRun& run, const Names& names = {}) {
  return rows_of(written([&](const Write& w) { return write_requests(run.collector, names, w); }));
}

TEST(Milliseconds, AreTheShortestTextOfTheirDouble) {
  Random random(5);
  const auto expect = [](std::int64_t ns) {
    std::string fast, slow;
    append_ms(fast, ns);
    append_double(slow, ms_from_ns(ns));
    ASSERT_EQ(fast, slow) << ns;
  };
  for (std::int64_t ns = 0; ns < 20'000; ++ns) expect(ns);
  for (int round = 0; round < 300'000; ++round) {
    expect(static_cast<std::int64_t>(random.below(std::uint64_t{1} << (1 + random.below(62)))));
  }
  for (std::int64_t power = 1; power < 1'000'000'000'000'000'000; power *= 10) {
    for (std::int64_t d = -2; d <= 2; ++d) expect(std::max<std::int64_t>(0, power + d));
  }
}

TEST(Uuid, IsTheOrdinalPlusOne) {
  EXPECT_EQ(uuid_text(0), "00000000-0000-0000-0000-000000000001");
  EXPECT_EQ(uuid_text(0xFFFFFFFFFFULL), "00000000-0000-0000-0000-010000000000");
  EXPECT_EQ(uuid_text(0x123456789ABCDEEULL), "00000000-0000-0000-0123-456789abcdef");
  // Ids that differ only above bit 31 stay apart (bugs.md A28).
  EXPECT_NE(uuid_text(0), uuid_text(4'294'967'296));
}

TEST(PredictionJson, IsIndentedSortedAndHoldsSummaryAndSections) {
  TestRun run;
  run.facts.sections = {{"zone", Array{1}}, {"model", Object{{"name", "m"}, {"card", "c"}}}};
  const Report report = run.add(a_request().tokens({50, 60})).report();
  const std::string text = prediction_json(report);
  const json parsed = json::parse(text);
  EXPECT_EQ(parsed["model"]["card"], "c");
  EXPECT_EQ(parsed["mean_ttft_ms"], 50.0);
  EXPECT_TRUE(text.starts_with("{\n  \"canceled_requests\": 0,\n"));
  EXPECT_TRUE(text.ends_with("}\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'),
            static_cast<long>(report.summary.size() + 2 + 6 +
                              1));  // + model 4 lines, zone 3, braces, less 1
}

TEST(SummaryJson, IsFlatCompactAndSorted) {
  TestRun run;
  run.facts.sections = {{"model", Object{{"name", "m"}}}};
  const std::string text = summary_json(run.report());
  const json parsed = json::parse(text);
  EXPECT_FALSE(parsed.contains("model"));
  for (const auto& [key, value] : parsed.items()) EXPECT_TRUE(value.is_primitive()) << key;
  EXPECT_EQ(text.find(' '), std::string::npos);
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(HostCost, HoldsTheRatesThatDependOnTheMachine) {
  const Report report = TestRun().add(a_request().input(100).tokens({1, 2})).report();
  const Object cost = host_cost(report, {.wall_time_ms = 500, .peak_rss_bytes = 7});
  EXPECT_EQ(
      to_json(cost, Layout::Compact),
      R"({"peak_rss_bytes":7,"processed_output_tokens_per_s":4.0,"processed_tokens_per_s":204.0,"wall_time_ms":500.0})");
  EXPECT_EQ(find(host_cost(report, {}), "processed_tokens_per_s")->number(), 0.0);
}

TEST(RequestRows, HoldTimesLengthsAndIdentity) {
  TestRun run({.keep_requests = true});
  RequestBuilder request =
      a_request(4).arrives(10).admitted(12).input(32).reused(16, 48).tokens({50, 60, 75, 95});
  request.record().row = 0;
  request.record().worker = 3;
  request.record().rank = 1;
  request.record().ranks = 4;
  request.record().turn = 2;
  const replay::Admission history[] = {{at_ms(12), 16}, {at_ms(30), 32}};
  request.record().history = history;
  request.record().admissions = 2;
  request.record().preemptions = 1;
  run.add(request);
  const Names names{.request = [](std::uint32_t) { return "r\"0"; },
                    .session = [](std::uint32_t) { return "s"; },
                    .metadata = [](std::uint32_t) { return R"({"priority":1})"; }};
  const auto rows = request_rows(run, names);
  ASSERT_EQ(rows.size(), 1U);
  const json& row = rows[0];
  EXPECT_EQ(row["request_id"], "r\"0");
  EXPECT_EQ(row["session_id"], "s");
  EXPECT_EQ(row["turn_index"], 2);
  EXPECT_EQ(row["metadata"]["priority"], 1);
  EXPECT_EQ(row["uuid"], "00000000-0000-0000-0000-000000000005");
  EXPECT_EQ(row["arrival_time_ms"], 10.0);
  EXPECT_EQ(row["first_admit_ms"], 12.0);
  EXPECT_EQ(row["queue_ms"], 2.0);
  EXPECT_EQ(row["ttft_ms"], 40.0);
  EXPECT_EQ(row["ttst_ms"], 10.0);
  EXPECT_EQ(row["e2e_latency_ms"], 85.0);
  EXPECT_EQ(row["itl_ms"], 15.0);
  EXPECT_EQ(row["prefill_ms"], 38.0);
  EXPECT_EQ(row["decode_ms"], 45.0);
  EXPECT_EQ(row["terminal_status"], "completed");
  EXPECT_EQ(row["input_length"], 32);
  EXPECT_EQ(row["output_length"], 4);
  EXPECT_EQ(row["reused_input_tokens"], 32);  // never more than the input
  EXPECT_EQ(row["first_admission_reused_input_tokens"], 16);
  EXPECT_EQ(row["decode_worker_idx"], 13);  // each rank of each worker is a scheduler
  ASSERT_EQ(row["routing_history"].size(), 1U);
  const json& routed = row["routing_history"][0];
  EXPECT_EQ(routed["logical_worker_id"], 3);
  EXPECT_EQ(routed["dp_rank"], 1);
  EXPECT_EQ(routed["scheduler_id"], 13);
  EXPECT_EQ(routed["pool"], "agg");
  EXPECT_EQ(routed["outcome"], "immediate");
  EXPECT_EQ(routed["queue_wait_ms"], 0.0);
  EXPECT_TRUE(row["prefill_worker_idx"].is_null());
  EXPECT_EQ(row["admission_count"], 2);
  EXPECT_EQ(row["readmission_count"], 1);
  EXPECT_EQ(row["preemptions"], 1);
  ASSERT_EQ(row["admission_history"].size(), 2U);
  EXPECT_EQ(row["admission_history"][1],
            json::parse(R"({"admission_ordinal":1,"at_ms":30.0,"is_readmission":true,"pool":"agg",
                            "pool_admission_ordinal":1,"reused_input_tokens":32})"));
  EXPECT_FALSE(row.contains("sla_ok"));
  EXPECT_FALSE(row.contains("reason"));
}

TEST(RequestRows, AreNullWhereNothingHappened) {
  TestRun run({.sla = {.e2e_ms = 50}, .keep_requests = true});
  RequestBuilder request = a_request().rejected(Reason::PoolTooSmall).ends(5);
  request.record().kv_needed = 9;
  request.record().kv_available = 4;
  run.add(request);
  const json row = request_rows(run).at(0);
  for (const char* key : {"first_admit_ms", "first_token_ms", "last_token_ms", "ttft_ms", "ttst_ms",
                          "e2e_latency_ms", "itl_ms", "queue_ms", "prefill_ms", "decode_ms",
                          "session_id", "turn_index", "dispatched_at_ms"}) {
    EXPECT_TRUE(row.at(key).is_null()) << key;
  }
  EXPECT_EQ(row["terminal_status"], "rejected");
  EXPECT_EQ(row["reason"], "pool_too_small");
  EXPECT_EQ(row["blocks_needed"], 9);
  EXPECT_EQ(row["blocks_available"], 4);
  EXPECT_EQ(row["sla_ok"], false);
  EXPECT_FALSE(row.contains("request_id"));
}

TEST(RequestRows, HaveEveryStatus) {
  TestRun run({.keep_requests = true});
  const Status statuses[] = {Status::Completed, Status::Rejected, Status::Canceled, Status::Failed};
  for (std::uint64_t i = 0; i < 4; ++i) run.add(a_request(i).ended(statuses[i], Reason::None));
  const auto rows = request_rows(run);
  EXPECT_EQ(rows[0]["terminal_status"], "completed");
  EXPECT_EQ(rows[1]["terminal_status"], "rejected");
  EXPECT_EQ(rows[2]["terminal_status"], "canceled");
  EXPECT_EQ(rows[3]["terminal_status"], "failed");
}

TEST(RequestRows, SortByAuthoredNameThenArrivalThenId) {
  TestRun run({.keep_requests = true});
  const std::vector<std::string> sessions{"b", "", "a", "", ""};
  const double arrivals[] = {30, 20, 10, 0, 0};
  for (const std::uint64_t i : {4U, 0U, 1U, 2U, 3U})
    run.add(a_request(i).arrives(arrivals[i]).tokens({100}));
  const Names names{.session = [&](std::uint32_t s) -> std::string_view { return sessions[s]; }};
  std::vector<std::pair<json, double>> order;
  for (const json& row : request_rows(run, names))
    order.emplace_back(row["session_id"], row["arrival_time_ms"]);
  EXPECT_EQ(order, (std::vector<std::pair<json, double>>{
                       {nullptr, 0.0}, {nullptr, 0.0}, {nullptr, 20.0}, {"a", 10.0}, {"b", 30.0}}));
}

TEST(RequestRows, NameUnnamedSessionsByTheirIndex) {
  TestRun run({.keep_requests = true});
  run.add(a_request(7).tokens({1}));
  const json row = request_rows(run, {.sessions = true}).at(0);
  EXPECT_EQ(row["session_id"], "7");
  EXPECT_EQ(row["turn_index"], 0);
}

TEST(RequestRows, AreWrittenInPiecesThatJoinToWholeLines) {
  TestRun run({.keep_requests = true});
  for (std::uint64_t i = 0; i < 2000; ++i) run.add(a_request(i).tokens({1, 2}));
  std::size_t pieces = 0;
  std::string text;
  ASSERT_TRUE(write_requests(run.collector, {}, [&](std::string_view piece) {
    ++pieces;
    EXPECT_TRUE(piece.ends_with('\n'));
    text += piece;
  }));
  EXPECT_GT(pieces, 1U);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2000);
}

replay::PassRecord a_pass() {
  replay::PassRecord pass;
  pass.worker = 1;
  pass.pass = 187;
  pass.start = at_ms(18.451798);
  pass.end = at_ms(35.972398);
  pass.prefill = {17'520'600};
  pass.prefill_requests = 1;
  pass.total_isl = 195;
  pass.total_prefix = 128;
  pass.scheduled = {{2, 128, 195}};
  pass.admitted = {{2, 0}};
  pass.preempted = {{5, 3}};
  pass.rejected = {7};
  pass.outputs = {{2, 1, false}, {7, 0, true}};
  pass.blocks_active = 13;
  pass.blocks_free = 11;
  pass.running = 1;
  return pass;
}

std::vector<json> passes_told(const std::vector<replay::PassRecord>& passes) {
  Collector collector({.keep_passes = true});
  for (const replay::PassRecord& pass : passes) collector.on_pass(pass);
  return rows_of(written([&](const Write& w) { return write_passes(collector, w); }));
}

TEST(PassRows, HoldTheFieldsOfAPass) {
  EXPECT_EQ(passes_told({a_pass()}).at(0), json::parse(R"({
    "worker":1,"pass":187,"start_ms":18.451798,"end_ms":35.972398,"prefill_ms":17.5206,"decode_ms":0.0,
    "prefill_count":1,"total_isl":195,"total_prefix":128,"decode_count":0,"total_length":0,
    "scheduled":[[2,128,195]],"admitted":[[2,0]],"preempted":[[5,3]],"rejected":[7],"outputs":[[2,1,0],[7,0,1]],
    "after":{"active":13,"inactive":0,"free":11,"running":1,"waiting":0}})"));
}

TEST(PassRows, TellSglangsRatioWhereThereIsOne) {
  replay::PassRecord pass = a_pass();
  pass.new_token_ratio = 0.6989966666666666;
  EXPECT_EQ(passes_told({pass}).at(0)["after"]["new_token_ratio"], 0.6989966666666666);
}

TEST(PassRows, TellTheImagesOfAPassThatHasSome) {
  replay::PassRecord pass = a_pass();
  EXPECT_FALSE(passes_told({pass}).at(0).contains("images"));
  EXPECT_FALSE(passes_told({pass}).at(0).contains("vision_ms"));
  pass.images = 2;
  pass.vision = {7'500'000};
  EXPECT_EQ(passes_told({pass}).at(0)["images"], 2);
  EXPECT_EQ(passes_told({pass}).at(0)["vision_ms"], 7.5);
}

TEST(PassRows, NameTheRankWhereAWorkerHasSeveral) {
  replay::PassRecord pass = a_pass();
  EXPECT_FALSE(passes_told({pass}).at(0).contains("dp_rank"));
  pass.rank = 2;
  pass.ranks = 4;
  EXPECT_EQ(passes_told({pass}).at(0)["dp_rank"], 2);
}

TEST(PassRows, AreTheSameFromMemoryAndFromTheFile) {
  Collector memory({.keep_passes = true});
  Collector file({.keep_passes = true, .spooled_bytes_in_memory_max = 1000});
  for (int i = 0; i < 50; ++i) {
    memory.on_pass(a_pass());
    file.on_pass(a_pass());
  }
  const auto text = [](Collector& c) {
    return written([&](const Write& w) { return write_passes(c, w); });
  };
  EXPECT_EQ(text(memory), text(file));
  EXPECT_EQ(text(file).size(), 50 * text(memory).find('\n') + 50);
}

TEST(KvEventRows, HoldStoredAndRemovedBlocks) {
  Collector collector({.keep_kv_events = true});
  replay::KvEventRecord event;
  event.at = at_ms(10);
  event.stored = true;
  event.blocks = {{18446744073709551615U, 2}};
  collector.on_kv_event(event);
  event.event = 1;
  event.has_parent = true;
  event.parent = 77;
  collector.on_kv_event(event);
  event.event = 2;
  event.stored = false;
  event.blocks = {{5, 0}, {6, 0}};
  collector.on_kv_event(event);
  const auto rows = rows_of(written([&](const Write& w) { return write_kv_events(collector, w); }));
  EXPECT_EQ(rows.at(0),
            json::parse(R"({"time_ms":10.0,"worker":0,"event_id":0,"type":"stored","session":null,
    "parent_hash":null,"blocks":[{"block_hash":18446744073709551615,"tokens_hash":2}]})"));
  EXPECT_EQ(rows.at(1)["parent_hash"], 77);
  EXPECT_EQ(
      rows.at(2),
      json::parse(
          R"({"time_ms":10.0,"worker":0,"event_id":2,"type":"removed","block_hashes":[5,6]})"));

  event.rank = 3;
  event.ranks = 4;
  collector.on_kv_event(event);
  const auto more = rows_of(written([&](const Write& w) { return write_kv_events(collector, w); }));
  EXPECT_EQ(more.at(3)["dp_rank"], 3);

  event.stored = true;
  event.session = 17;
  collector.on_kv_event(event);
  const auto last = rows_of(written([&](const Write& w) { return write_kv_events(collector, w); }));
  EXPECT_EQ(last.at(4)["session"], 17);
}

TEST(Canonical, HasFiveRootsInOrderAndNoHostTime) {
  TestRun run({.keep_requests = true});
  run.facts.sections = {{"model", Object{{"name", "m"}}}};
  run.add(a_request(1).tokens({50, 60})).add(a_request(0).tokens({70}));
  const std::string line = canonical_line(run.report(), run.collector, {});
  EXPECT_TRUE(line.ends_with("}\n"));
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  std::size_t at = 0;
  for (const char* root : {"{\"coverage\":", ",\"metadata\":", ",\"per_request\":[",
                           "],\"planner\":null", ",\"summary\":"}) {
    const std::size_t found = line.find(root, at);
    ASSERT_NE(found, std::string::npos) << root;
    at = found;
  }
  const json parsed = json::parse(line);
  EXPECT_EQ(parsed.size(), 5U);
  EXPECT_EQ(parsed["coverage"]["per_request_records"], 2);
  EXPECT_EQ(parsed["metadata"]["schema_version"], "aisim.offline-replay.v1");
  EXPECT_EQ(parsed["metadata"]["result_exclusions"].size(), 4U);
  EXPECT_EQ(parsed["metadata"]["model"]["name"], "m");
  EXPECT_EQ(parsed["per_request"][0]["uuid"], uuid_text(0));
  EXPECT_EQ(parsed["per_request"][1]["uuid"], uuid_text(1));
  EXPECT_FALSE(parsed["summary"].contains("wall_time_ms"));
  EXPECT_EQ(parsed["summary"]["completed_requests"], 2);
}

TEST(Canonical, EqualRunsGiveEqualBytesInAnyOrderOfRecords) {
  const auto line = [](bool reversed) {
    TestRun run({.keep_requests = true});
    for (std::uint64_t i = 0; i < 50; ++i) {
      const std::uint64_t k = reversed ? 49 - i : i;
      run.add(a_request(k).arrives(static_cast<double>(k)).tokens({100.1, 133.7}));
    }
    return canonical_line(run.report(), run.collector, {});
  };
  EXPECT_EQ(line(false), line(true));
}

}  // namespace
}  // namespace servecast::report
