// SPDX-License-Identifier: Apache-2.0
// The comparison with expected results is itself tested: what deviates must be named.
#include "conformance/expectations.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string_view>

#include "conformance/case_yaml.hpp"
#include "conformance/naive_summary.hpp"
#include "conformance/text_case.hpp"
#include "support/trace_file.hpp"

namespace servecast::test {
namespace {

constexpr Time at(std::int64_t ms) {
  return Time{ms * 1'000'000};
}

// One request of 4 prompt tokens and 2 outputs at a prefill of 10 ms and a decode of 2 ms.
Recording one_request() {
  Recording run;
  run.has_passes = run.has_events = run.has_history = true;
  replay::RequestRecord r;
  r.row = 0;
  r.first_admit = at(0);
  r.first_token = at(10);
  r.second_token = r.last_token = r.terminal = at(12);
  r.input_tokens = 4;
  r.requested_output_tokens = r.output_tokens = 2;
  r.admissions = 1;
  run.requests = {{r, {{at(0), 0}}}};
  replay::PassRecord first;
  first.end = at(10);
  first.prefill = at(10) - at(0);
  first.prefill_requests = 1;
  first.total_isl = 4;
  first.scheduled = {{0, 0, 4}};
  first.admitted = {{0, 0}};
  first.outputs = {{0, 1, false}};
  replay::PassRecord second;
  second.pass = 1;
  second.start = at(10);
  second.end = at(12);
  second.decode = at(2) - at(0);
  second.decode_requests = 1;
  second.total_length = 5;
  second.scheduled = {{0, 4, 5}};
  second.outputs = {{0, 1, true}};
  run.passes = {first, second};
  run.totals.requests = 1;
  run.totals.passes = 2;
  run.totals.first_arrival = at(0);
  run.totals.gaps.gaps_ns = {{2'000'000, 1}};
  run.totals.pools = {{0, 1, 7}};
  return run;
}

SharedCase expected_of_one_request() {
  SharedCase expected;
  ExpectedRequest row;
  row.arrival = row.first_admit = 0;
  row.first_token = 10;
  row.last_token = row.terminal = 12;
  row.input_tokens = 4;
  row.requested_output_tokens = row.output_tokens = 2;
  row.status = "completed";
  expected.requests = {row};
  expected.summary = naive_summary(one_request());
  expected.passes_per_worker = {2};
  expected.final_pools = {{0, 1, 7}};
  for (const replay::PassRecord& pass : one_request().passes) {
    ExpectedPass& want = expected.passes.emplace_back();
    want.pass = pass.pass;
    want.start = to_ms(pass.start);
    want.end = to_ms(pass.end);
    want.prefill = to_ms(pass.prefill);
    want.decode = to_ms(pass.decode);
    want.prefill_requests = pass.prefill_requests;
    want.decode_requests = pass.decode_requests;
    want.total_isl = pass.total_isl;
    want.total_length = pass.total_length;
    want.scheduled = pass.scheduled;
    want.admitted = pass.admitted;
    want.outputs = pass.outputs;
  }
  return expected;
}

struct Deviation {
  std::string_view word;
  std::function<void(Recording&)> seed;
};

using Judge = std::optional<std::string> (*)(const SharedCase&, const Recording&);

void expect_each_named(Judge judge, const std::vector<Deviation>& deviations) {
  EXPECT_EQ(judge(expected_of_one_request(), one_request()), std::nullopt);
  for (const Deviation& deviation : deviations) {
    Recording run = one_request();
    deviation.seed(run);
    const auto found = judge(expected_of_one_request(), run);
    ASSERT_TRUE(found) << deviation.word;
    EXPECT_NE(found->find(deviation.word), std::string::npos) << *found;
  }
}

TEST(Expectations, NameTheRowAndTheFieldThatDeviates) {
  expect_each_named(
      rows_mismatch,
      {{"first_token_ms", [](Recording& r) { r.requests[0].record.first_token.ns += 2; }},
       {"first_token_ms", [](Recording& r) { r.requests[0].record.first_token = kNever; }},
       {"terminal_ms", [](Recording& r) { r.requests[0].record.terminal = at(13); }},
       {"status", [](Recording& r) { r.requests[0].record.status = replay::Status::Failed; }},
       {"output_tokens", [](Recording& r) { r.requests[0].record.output_tokens = 1; }},
       {"reused tokens", [](Recording& r) { r.requests[0].record.reused_tokens = 4; }},
       {"preemptions", [](Recording& r) { r.requests[0].record.preemptions = 1; }},
       {"worker", [](Recording& r) { r.requests[0].record.worker = 1; }},
       {"has no record", [](Recording& r) { r.requests.clear(); }},
       {"two records", [](Recording& r) { r.requests.push_back(r.requests[0]); }},
       {"names row", [](Recording& r) { r.requests[0].record.row = 5; }},
       {"the run failed", [](Recording& r) { r.problems.emplace_back(); }}});
}

TEST(Expectations, NameTheSummaryKeyThatDeviates) {
  expect_each_named(summary_mismatch,
                    {{"tpot", [](Recording& r) { r.requests[0].record.first_token = at(11); }},
                     {"ttst", [](Recording& r) { r.requests[0].record.second_token = at(11); }},
                     {"itl", [](Recording& r) { r.totals.gaps.gaps_ns[0].second = 2; }},
                     {"e2e", [](Recording& r) { r.requests[0].record.last_token = at(13); }},
                     {"duration_ms", [](Recording& r) { r.requests[0].record.terminal = at(13); }},
                     {"num_requests", [](Recording& r) { r.totals.requests = 2; }},
                     {"passes", [](Recording& r) { r.totals.passes = 3; }},
                     {"passes of worker 0", [](Recording& r) { r.passes.pop_back(); }},
                     {"preemptions in totals", [](Recording& r) { r.totals.preemptions = 1; }},
                     {"inactive blocks", [](Recording& r) { r.totals.pools[0].inactive = 2; }}});
}

TEST(Expectations, NameThePassThatDeviates) {
  expect_each_named(
      passes_mismatch,
      {{"scheduled[0] is [0, 0, 3], expected [0, 0, 4]",
        [](Recording& r) { r.passes[0].scheduled[0].to = 3; }},
       {"the end of the list", [](Recording& r) { r.passes[0].admitted.clear(); }},
       {"pass 1: outputs", [](Recording& r) { r.passes[1].outputs[0].completed = false; }},
       {"decode_ms", [](Recording& r) { r.passes[1].decode.ns += 2; }},
       {"inactive blocks", [](Recording& r) { r.passes[1].blocks_inactive = 9; }},
       {"told 1 passes", [](Recording& r) { r.passes.pop_back(); }}});
}

TEST(Percentile, RankIsRoundedHalfAwayFromZero) {
  // replay.md 32 case 7; columns p50, p75, p90, p95, p99.
  const std::vector<std::vector<std::size_t>> table = {
      {1, 0, 0, 0, 0, 0},    {2, 1, 1, 1, 1, 1},        {3, 1, 2, 2, 2, 2},
      {4, 2, 2, 3, 3, 3},    {5, 2, 3, 4, 4, 4},        {10, 5, 7, 8, 9, 9},
      {11, 5, 8, 9, 10, 10}, {100, 50, 74, 89, 94, 98}, {101, 50, 75, 90, 95, 99}};
  for (const auto& row : table) {
    const int percentiles[] = {50, 75, 90, 95, 99};
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(percentile_rank(row[0], percentiles[i]), row[i + 1]) << row[0];
    }
  }
}

TextCase case_of(const std::string& expect) {
  const TraceFile file(
      "name: n\nwhy: w\nengine: {blocks: 8, block_tokens: 4, prefill_ms: 10, "
      "decode_ms: 2}\nrequests:\n  - {at_ms: 0, prompt: 4, output: 2}\nexpect:\n  - " +
      expect + "\n");
  return read_text_case(read_yaml(file.path()).at(0));
}

TEST(TextCase, AcceptsFactsThatHold) {
  for (const char* facts :
       {"{request: 0, status: completed, first_token_ms: 10, tokens_ms: [10, 12]}",
        "{request: 0, reason: none, admitted_ms: [0], preemptions: 0}",
        "{pass: 1, scheduled: [[0, 4, 5]], outputs: [[0, 1, done]], decode_ms: 2}",
        "{pool: 0, active: 0, inactive: 1, free: 7}",
        "{totals: {passes: 2, gaps_ms: [[2, 1]], kv_events: 0}}"}) {
    EXPECT_EQ(broken_expectations(case_of(facts), one_request()), std::vector<std::string>{})
        << facts;
  }
}

TEST(TextCase, NamesFactsThatDoNotHold) {
  for (const char* facts :
       {"{request: 0, status: rejected}", "{request: 0, first_token_ms: 10.00001}",
        "{request: 0, first_token_ms: never}", "{request: 0, tokens_ms: [10]}",
        "{request: 0, tokens_reused: 4}", "{request: 0, tokns_reused: 0}",
        "{request: 1, status: completed}", "{pass: 1, scheduled: [[0, 4, 6]]}",
        "{pass: 2, decode_ms: 2}", "{pass: 0, preempted: [0]}", "{event: 0, kind: stored}",
        "{pass: 0, new_token_ratio: 0.7}", "{pool: 0, active: 1}", "{totals: {passes: 3}}",
        "{totals: {gaps_ms: [[3, 1]]}}"}) {
    EXPECT_EQ(broken_expectations(case_of(facts), one_request()).size(), 1U) << facts;
  }
}

TEST(TextCase, RefusesExpectationsThatCheckNothing) {
  EXPECT_THROW(broken_expectations(case_of("{request: 0}"), one_request()), std::runtime_error);
  EXPECT_THROW(broken_expectations(case_of("{reqest: 0}"), one_request()), std::runtime_error);
  EXPECT_THROW(case_of("{request: 0, request: 1}"), std::runtime_error);
}

TEST(TextCase, TellsTheRatioOfAPassAndTheSessionOfAnEvent) {
  Recording run = one_request();
  run.passes[1].new_token_ratio = 0.6989966666666666;
  replay::KvEventRecord event;
  event.stored = true;
  event.session = 7;
  run.events = {event, {}};
  run.events[1].event = 1;
  for (const char* facts : {"{pass: 1, new_token_ratio: 0.69899667}", "{event: 0, session: 7}",
                            "{event: 1, session: none}"})
    EXPECT_EQ(broken_expectations(case_of(facts), run), std::vector<std::string>{}) << facts;
  for (const char* facts :
       {"{pass: 1, new_token_ratio: 0.699}", "{event: 0, session: 6}", "{event: 0, session: none}"})
    EXPECT_EQ(broken_expectations(case_of(facts), run).size(), 1U) << facts;
}

replay::Deployment engine_of(const std::string& sglang) {
  const TraceFile file("{blocks: 8, block_tokens: 4, prefill_ms: 10, decode_ms: 2, sglang: {" +
                       sglang + "}}");
  replay::Deployment out;
  read_engine(read_yaml(file.path()).at(0), out);
  return out;
}

TEST(TextCase, SetsAnSglangRank) {
  EXPECT_TRUE(engine_of("").rank.sglang);
  const scheduler::SglangSettings set =
      *engine_of(
           "schedule_policy: lpm, policy_seed: 1, chunked_prefill_size: 2, max_prefill_tokens: 3, "
           "clip_max_new_tokens: 4, schedule_conservativeness: 0.5, retract_decode_steps: 6, "
           "decode_log_interval: 7, prefill_decode_interval: 8, enable_mixed_chunk: true, "
           "host_loop: true, fidelity: exact")
           .rank.sglang;
  EXPECT_EQ(set.policy, scheduler::SglangPolicy::Lpm);
  EXPECT_EQ(set.policy_seed, 1U);
  EXPECT_EQ(set.chunked_prefill_size, 2U);
  EXPECT_EQ(set.max_prefill_tokens, 3U);
  EXPECT_EQ(set.clip_max_new_tokens, 4U);
  EXPECT_EQ(set.schedule_conservativeness, 0.5);
  EXPECT_EQ(set.retract_decode_steps, 6U);
  EXPECT_EQ(set.decode_log_interval, 7U);
  EXPECT_EQ(set.prefill_decode_interval, 8U);
  EXPECT_TRUE(set.mixed_chunk && set.host_loop);
  EXPECT_EQ(set.fidelity, scheduler::Fidelity::Exact);
  EXPECT_THROW(engine_of("chunk: 3"), std::runtime_error);
  EXPECT_THROW(engine_of("schedule_policy: sjf"), std::runtime_error);
}

TEST(TextCase, SpellsSharedPromptsWithSharedBlocks) {
  TextCase text_case;
  text_case.requests.resize(2);
  text_case.requests[0].prompt = 8;
  text_case.requests[1].prompt = 6;
  text_case.requests[1].same_tokens = 4;
  text_case.requests[1].extra_key = "a";
  EXPECT_EQ(mooncake_text(text_case, 4),
            "{\"session_id\": \"s0\", \"input_length\": 8, \"output_length\": 0, \"timestamp\": 0, "
            "\"hash_ids\": [0, 1]}\n"
            "{\"session_id\": \"s1\", \"input_length\": 6, \"output_length\": 0, \"timestamp\": 0, "
            "\"extra_key\": \"a\", \"hash_ids\": [0, 1000001]}\n");
}

}  // namespace
}  // namespace servecast::test
