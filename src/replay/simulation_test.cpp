// SPDX-License-Identifier: Apache-2.0
// Small runs from end to end. Each is made in the fast mode and in the reference mode.
#include "replay/simulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perf/timers.hpp"
#include "replay/a_workload.hpp"

namespace servecast::replay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr std::int64_t kMs = 1'000'000;

Time ms(std::int64_t count) {
  return {count * kMs};
}

struct Sink final : RecordSink {
  std::vector<RequestRecord> order;
  std::map<std::uint64_t, RequestRecord> requests;
  std::map<std::uint64_t, std::vector<Admission>> histories;
  std::vector<PassRecord> passes;
  std::vector<KvEventRecord> events;

  void on_request(const RequestRecord& record) override {
    histories[record.ordinal].assign(record.history.begin(), record.history.end());
    RequestRecord kept = record;
    kept.history = {};
    order.push_back(kept);
    EXPECT_TRUE(requests.emplace(record.ordinal, kept).second) << "told twice: " << record.ordinal;
  }
  void on_pass(const PassRecord& record) override { passes.push_back(record); }
  void on_kv_event(const KvEventRecord& record) override { events.push_back(record); }
};

struct Told {
  Sink sink;
  RunTotals totals;
};

// Passes take 10 ms for a prefill and 2 ms for a decode.
Deployment a_deployment(std::uint32_t workers = 1, std::uint32_t blocks = 100) {
  Deployment deployment;
  deployment.workers = workers;
  deployment.rank.blocks = blocks;
  deployment.rank.block_tokens = 4;
  deployment.timer = perf::fixed_timer({.prefill_ms = 10, .decode_ms = 2}).value();
  return deployment;
}

Told play(const Deployment& deployment, const workload::Workload& workload,
          const Options& options = {}) {
  Told told;
  Result<RunTotals> totals = run(deployment, workload, options, told.sink);
  if (totals) {
    told.totals = std::move(*totals);
  } else {
    ADD_FAILURE() << to_text(totals.error().front());
  }
  return told;
}

class Simulation : public testing::TestWithParam<bool> {
 protected:
  Options options() const {
    Options options;
    options.stepping = GetParam();
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(, Simulation, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& mode) {
                           return mode.param ? "Stepping" : "Fast";
                         });

TEST_P(Simulation, TellsFirstTokenAndGaps) {  // bugs.md A38: the wait for the first token is no gap
  const Told told =
      play(a_deployment(), a_trace({{.at_ms = 3, .input = 8, .output = 5}}), options());
  ASSERT_EQ(told.sink.requests.size(), 1U);
  const RequestRecord& record = told.sink.requests.at(0);
  EXPECT_EQ(record.status, Status::Completed);
  EXPECT_EQ(record.arrival, ms(3));
  EXPECT_EQ(record.first_admit, ms(3));
  EXPECT_EQ(record.first_token, ms(13));
  EXPECT_EQ(record.second_token, ms(15));
  EXPECT_EQ(record.last_token, ms(21));
  EXPECT_EQ(record.terminal, ms(21));
  EXPECT_EQ(record.input_tokens, 8U);
  EXPECT_EQ(record.output_tokens, 5U);
  EXPECT_EQ(record.admissions, 1U);
  EXPECT_THAT(told.totals.gaps.gaps_ns, ElementsAre(Pair(2 * kMs, 4)));
  EXPECT_EQ(told.totals.gaps.count, 4U);
  EXPECT_EQ(told.totals.passes, 5U);
  EXPECT_EQ(told.totals.first_arrival, ms(3));
  EXPECT_EQ(told.totals.end, ms(21));
  EXPECT_EQ(told.totals.requests, 1U);
}

TEST_P(Simulation, EndsWhereAFrontendPassesTheEndOfTime) {
  Deployment deployment = a_deployment();
  deployment.rank.sglang.emplace();
  deployment.rank.sglang->host_loop = true;
  deployment.rank.sglang->frontend = {{.workers = 1, .service_ms = 4e12}};
  Sink sink;
  const Result<RunTotals> totals = run(
      deployment, a_trace({{.at_ms = 0, .input = 4}, {.at_ms = 1, .input = 4}}), options(), sink);
  ASSERT_FALSE(totals);
  EXPECT_EQ(totals.error().front().code, "replay.time_ran_out");
  EXPECT_EQ(sink.requests.size(), 1U) << "the first is served after 127 years";
}

// engine-vllm.md C36: 8 of 8 bytes in the first pass, 12 wanted by the second.
TEST_P(Simulation, EndsWhenAPassExceedsAPoolOfBytes) {
  Deployment deployment = a_deployment();
  deployment.rank.blocks = 0;
  deployment.rank.prefix_caching = false;
  deployment.rank.max_batched_tokens = 8;
  deployment.rank.grouped = scheduler::GroupedCacheSettings{.groups = {{.name = "window",
                                                                        .num_layers = 1,
                                                                        .block_size_tokens = 4,
                                                                        .page_size_bytes = 4,
                                                                        .sliding_window = 4}},
                                                            .capacity_bytes = 8};
  Sink sink;
  const Result<RunTotals> totals =
      run(deployment, a_trace({{.at_ms = 0, .input = 16, .output = 1}}), options(), sink);
  ASSERT_FALSE(totals);
  EXPECT_EQ(totals.error().front().code, "replay.pass_exceeds_kv");
  EXPECT_EQ(totals.error().front().fault, Fault::Execution);
  EXPECT_THAT(to_text(totals.error().front()),
              HasSubstr("a pass of request 1 (16 prompt tokens) needs 12 bytes of KV at"));
  EXPECT_THAT(to_text(totals.error().front()), HasSubstr("the pool of its rank has 8"));
  EXPECT_THAT(to_text(totals.error().front()), HasSubstr("max_batched_tokens"));

  deployment.rank.max_batched_tokens = 4;
  const Told fits = play(deployment, a_trace({{.at_ms = 0, .input = 16, .output = 1}}), options());
  EXPECT_EQ(fits.sink.requests.at(0).status, Status::Completed);
}

TEST_P(Simulation, NamesTheBytesThatARequestLacks) {
  Deployment deployment = a_deployment();
  deployment.rank.blocks = 0;
  deployment.rank.prefix_caching = false;
  deployment.rank.grouped = scheduler::GroupedCacheSettings{
      .groups = {{.name = "full", .num_layers = 1, .block_size_tokens = 4, .page_size_bytes = 10}},
      .capacity_bytes = 35};
  const Told told = play(
      deployment,
      a_trace({{.at_ms = 0, .input = 13, .output = 1}, {.at_ms = 50, .input = 11, .output = 9}}),
      options());
  const RequestRecord& rejected = told.sink.requests.at(0);
  EXPECT_EQ(rejected.reason, Reason::PoolTooSmall);
  EXPECT_EQ(rejected.kv_needed, 40U);
  EXPECT_EQ(rejected.kv_available, 35U);
  EXPECT_TRUE(rejected.kv_in_bytes);
  const RequestRecord& outgrew = told.sink.requests.at(1);
  EXPECT_EQ(outgrew.status, Status::Failed);
  EXPECT_EQ(outgrew.reason, Reason::KvCapacity);
  EXPECT_EQ(outgrew.output_tokens, 2U) << "token 13 wants a fourth block";
  EXPECT_EQ(outgrew.kv_needed, 40U);
}

TEST_P(Simulation, ARequestThatJoinsMakesEveryonesGapLonger) {
  const Told told = play(
      a_deployment(), a_trace({{.at_ms = 0, .output = 4}, {.at_ms = 11, .output = 2}}), options());
  // 0-10 prefill, 10-12 decode, 12-24 both, 24-26 decode.
  EXPECT_EQ(told.sink.requests.at(0).last_token, ms(26));
  EXPECT_EQ(told.sink.requests.at(1).first_admit, ms(12));
  EXPECT_EQ(told.sink.requests.at(1).first_token, ms(24));
  EXPECT_EQ(told.sink.requests.at(1).last_token, ms(26));
  EXPECT_THAT(told.totals.gaps.gaps_ns, ElementsAre(Pair(2 * kMs, 3), Pair(12 * kMs, 1)));
}

TEST_P(Simulation, SpreadsRequestsOverWorkers) {
  const Told told =
      play(a_deployment(3), a_trace({{.at_ms = 0}, {.at_ms = 0}, {.at_ms = 0}, {.at_ms = 0}}),
           options());
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(told.sink.requests.at(i).worker, i % 3);
  EXPECT_EQ(told.totals.workers, 3U);
  EXPECT_EQ(told.totals.pools.size(), 3U);
  EXPECT_EQ(told.totals.end, ms(10)) << "two share a pass, the others run beside it";
}

// Two workers of two ranks: by turns the workers, and on each its ranks.
TEST_P(Simulation, SpreadsRequestsOverTheRanksOfWorkers) {
  Deployment deployment = a_deployment(2);
  deployment.ranks_per_worker = 2;
  const std::vector<Row> rows(5, {.at_ms = 0});
  const Told told = play(deployment, a_trace(rows), options());
  std::vector<std::pair<std::uint32_t, std::uint32_t>> at;
  for (const auto& [ordinal, record] : told.sink.requests) {
    at.emplace_back(record.worker, record.rank);
    EXPECT_EQ(record.ranks, 2U);
  }
  EXPECT_THAT(at, ElementsAre(Pair(0, 0), Pair(1, 0), Pair(0, 1), Pair(1, 1), Pair(0, 0)));
  EXPECT_EQ(told.totals.ranks_per_worker, 2U);
  EXPECT_EQ(told.totals.passes, 2U) << "the ranks of a worker run in lockstep";
  ASSERT_EQ(told.totals.pools.size(), 4U);
  EXPECT_EQ(told.totals.pools[0].inactive, 2U) << "the first rank of the first worker had two";
  for (const std::size_t other : {1U, 2U, 3U}) EXPECT_EQ(told.totals.pools[other].inactive, 1U);
}

// replay.md 5.4: what the ranks of a worker did comes rank by rank.
TEST_P(Simulation, EndingsOfOnePassComeByRank) {
  Deployment deployment = a_deployment();
  deployment.ranks_per_worker = 3;
  const std::vector<Row> rows(6, {.at_ms = 0});
  const Told told = play(deployment, a_trace(rows), options());
  std::vector<std::uint64_t> ordinals;
  for (const RequestRecord& record : told.sink.order) ordinals.push_back(record.ordinal);
  EXPECT_THAT(ordinals, ElementsAre(0U, 3U, 1U, 4U, 2U, 5U));
  EXPECT_EQ(told.totals.end, ms(10));
}

TEST_P(Simulation, ARankWaitsForTheSlowestOfItsWorker) {
  Deployment deployment = a_deployment();
  deployment.ranks_per_worker = 2;
  const Told told = play(deployment,
                         a_trace({{.at_ms = 0, .output = 3},    // rank 0
                                  {.at_ms = 0, .output = 3},    // rank 1
                                  {.at_ms = 5, .output = 1}}),  // rank 0
                         options());
  // 0-10 both prefill; 10-22 rank 0 prefills and decodes, rank 1 decodes for 2 ms; 22-24.
  EXPECT_EQ(told.sink.requests.at(1).second_token, ms(22));
  EXPECT_EQ(told.sink.requests.at(1).last_token, ms(24));
  EXPECT_THAT(told.totals.gaps.gaps_ns, ElementsAre(Pair(2 * kMs, 2), Pair(12 * kMs, 2)));
}

TEST_P(Simulation, EndingsOfOneInstantComeByWorker) {
  const Told told =
      play(a_deployment(3), a_trace({{.at_ms = 0}, {.at_ms = 0}, {.at_ms = 0}}), options());
  std::vector<std::uint32_t> workers;
  for (const RequestRecord& record : told.sink.order) workers.push_back(record.worker);
  EXPECT_THAT(workers, ElementsAre(0U, 1U, 2U));
}

TEST_P(Simulation, ALaterTurnReusesWhatItsSessionSaid) {
  workload::Spec spec;
  spec.source = workload::SessionSource{.new_input = {.fixed = 8},
                                        .output = {.fixed = 5},
                                        .turns = 2,
                                        .inter_turn_delay_ms = 7,
                                        .block_size = 4};
  spec.load.concurrency = 1;
  spec.stop = {.count = 1, .per_load_unit = std::nullopt};
  const Told told = play(a_deployment(), built(spec), options());
  ASSERT_EQ(told.sink.requests.size(), 2U);
  const RequestRecord &first = told.sink.requests.at(0), &second = told.sink.requests.at(1);
  EXPECT_EQ(first.terminal, ms(18));
  EXPECT_EQ(second.arrival, ms(25));
  EXPECT_EQ(second.turn, 1U);
  EXPECT_EQ(second.input_tokens, 8U + 5 + 8);
  // Tokens 0-11 have KV; the thirteenth was the last one sampled.
  EXPECT_EQ(second.reused_tokens, 12U);
  EXPECT_EQ(told.totals.prefix_hit_tokens, 12U);
  EXPECT_EQ(told.totals.prefix_queried_tokens, 8U + 21);
}

TEST_P(Simulation, ARejectedRequestHasAReasonAndNoTimes) {
  const Told told = play(a_deployment(1, 4),
                         a_trace({{.at_ms = 0, .input = 20}, {.at_ms = 0, .input = 8}}), options());
  const RequestRecord& rejected = told.sink.requests.at(0);
  EXPECT_EQ(rejected.status, Status::Rejected);
  EXPECT_EQ(rejected.reason, Reason::PoolTooSmall);
  EXPECT_EQ(rejected.kv_needed, 5U);
  EXPECT_EQ(rejected.kv_available, 4U);
  EXPECT_EQ(rejected.first_token, kNever);
  EXPECT_EQ(rejected.admissions, 0U);
  EXPECT_EQ(rejected.terminal, ms(10)) << "shown when the pass ends";
  EXPECT_EQ(told.sink.requests.at(1).status, Status::Completed);
}

TEST_P(Simulation, AFailedRequestCountsNoGaps) {
  const Told told =
      play(a_deployment(1, 2), a_trace({{.at_ms = 0, .output = 9}, {.at_ms = 0, .output = 3}}),
           options());
  const RequestRecord& failed = told.sink.requests.at(0);
  EXPECT_EQ(failed.status, Status::Failed);
  EXPECT_EQ(failed.reason, Reason::KvCapacity);
  EXPECT_EQ(failed.output_tokens, 5U);
  EXPECT_EQ(told.sink.requests.at(1).status, Status::Completed);
  EXPECT_EQ(told.totals.gaps.count, 2U);
}

// The soft cap (replay.md 5.6).

TEST_P(Simulation, WhatIsInFlightAtTheCapIsIncompleteAndHasNoRecord) {
  Options capped = options();
  capped.cap = ms(15);
  const Told told = play(
      a_deployment(),
      a_trace({{.at_ms = 0, .output = 2}, {.at_ms = 0, .output = 9}, {.at_ms = 14}, {.at_ms = 16}}),
      capped);
  EXPECT_EQ(told.sink.requests.size(), 1U);
  EXPECT_EQ(told.sink.requests.at(0).last_token, ms(12));
  EXPECT_EQ(told.totals.requests, 3U) << "the last one comes after the cap";
  EXPECT_EQ(told.totals.incomplete_at_cap, 2U);
  EXPECT_EQ(told.totals.end, ms(15));
  EXPECT_EQ(told.totals.gaps.count, 1U) << "gaps of incomplete requests do not count";
  // The pass from 14 to 26 has begun: six tokens of the second request, four of the third.
  ASSERT_EQ(told.totals.pools.size(), 1U);
  EXPECT_EQ(told.totals.pools[0].active, 2U);
}

TEST_P(Simulation, ThePassThatSpansTheCapHasTakenItsBlocks) {
  Options capped = options();
  capped.cap = ms(11);
  const Told told = play(a_deployment(), a_trace({{.at_ms = 0, .output = 9}}), capped);
  ASSERT_EQ(told.totals.pools.size(), 1U);
  EXPECT_EQ(told.totals.pools[0].active, 2U) << "the fifth token opens a block at 10 ms";
  EXPECT_EQ(told.totals.passes, 1U);
}

TEST_P(Simulation, WhatEndsAtTheCapCounts) {
  Options capped = options();
  capped.cap = ms(12);
  const Told told = play(a_deployment(), a_trace({{.at_ms = 0, .output = 2}}), capped);
  EXPECT_EQ(told.sink.requests.size(), 1U);
  EXPECT_EQ(told.totals.incomplete_at_cap, 0U);
}

TEST_P(Simulation, ACapThatIsNotReachedChangesNothing) {
  Options capped = options();
  capped.cap = ms(1000);
  const workload::Workload workload =
      a_trace({{.at_ms = 0, .output = 4}, {.at_ms = 3, .output = 7}});
  const Told a = play(a_deployment(), workload, capped);
  const Told b = play(a_deployment(), workload, options());
  EXPECT_EQ(a.totals.fingerprint, b.totals.fingerprint);
  EXPECT_EQ(a.totals.end, b.totals.end);
  EXPECT_EQ(a.totals.gaps.gaps_ns, b.totals.gaps.gaps_ns);
}

// A rank without a token budget can compute nothing; config refuses it, run() does not know.
TEST_P(Simulation, NamesTheRequestsThatAreStuckWhenNothingCanHappen) {  // C50
  Deployment deployment = a_deployment(2);
  deployment.rank.max_batched_tokens = 0;
  Sink sink;
  const Result<RunTotals> two =
      run(deployment, a_trace({{.at_ms = 4, .input = 9}, {.at_ms = 4}}), options(), sink);
  ASSERT_FALSE(two);
  const Problem& problem = two.error().front();
  EXPECT_EQ(problem.code, "replay.no_progress");
  EXPECT_EQ(problem.fault, Fault::Execution);
  EXPECT_THAT(problem.message, HasSubstr("2 requests in flight"));
  EXPECT_THAT(problem.message,
              HasSubstr("request 1 (waiting on worker 0, needs 3 blocks, 100 available)"));
  EXPECT_THAT(problem.message, HasSubstr("request 2 (waiting on worker 1"));
  EXPECT_THAT(problem.message, HasSubstr(" 4.0"));
  EXPECT_THAT(sink.order, IsEmpty());

  const Result<RunTotals> many =
      run(deployment, a_trace(std::vector<Row>(12, Row{.at_ms = 0})), options(), sink);
  ASSERT_FALSE(many);
  EXPECT_THAT(many.error().front().message, HasSubstr("12 requests in flight"));
  EXPECT_THAT(many.error().front().message, HasSubstr("and others"));
}

// Capture.

TEST_P(Simulation, KeepsEveryAdmissionWhenRequestsAreCaptured) {
  Options captured = options();
  captured.capture_requests = true;
  const Told told = play(a_deployment(1, 4),
                         a_trace({{.at_ms = 0, .output = 8}, {.at_ms = 0, .output = 8}}), captured);
  EXPECT_EQ(told.totals.preemptions, 1U);
  EXPECT_EQ(told.sink.histories.at(0).size(), 1U);
  const std::vector<Admission>& second = told.sink.histories.at(1);
  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(second[0].at, ms(0));
  EXPECT_EQ(second[1].at, told.sink.requests.at(0).terminal);
  EXPECT_EQ(told.sink.requests.at(1).preemptions, 1U);
}

TEST(Capture, TellsEveryPassInTheOrderOfItsEnd) {
  Options options;
  options.capture_passes = true;
  const Told told =
      play(a_deployment(2),
           a_trace({{.at_ms = 0, .output = 3}, {.at_ms = 1, .output = 2}, {.at_ms = 2}}), options);
  EXPECT_EQ(told.sink.passes.size(), told.totals.passes);
  std::vector<std::uint64_t> next(2);
  Time before;
  std::uint64_t tokens = 0;
  for (const PassRecord& pass : told.sink.passes) {
    EXPECT_EQ(pass.pass, next[pass.worker]++);
    EXPECT_LE(before, pass.end);
    EXPECT_EQ(pass.end, pass.start + pass.prefill + pass.decode);
    before = pass.end;
    for (const PassRecord::Output& output : pass.outputs) tokens += output.tokens;
  }
  EXPECT_EQ(tokens, 6U);
}

TEST(Capture, TellsTheShareOfEveryRankInAPass) {
  Deployment deployment = a_deployment();
  deployment.ranks_per_worker = 3;
  Options options;
  options.capture_passes = options.capture_kv_events = true;
  const Told told = play(
      deployment,
      a_trace({{.at_ms = 0, .output = 2}, {.at_ms = 0, .output = 1}, {.at_ms = 5, .output = 1}}),
      options);
  ASSERT_EQ(told.totals.passes, 2U);
  ASSERT_EQ(told.sink.passes.size(), 6U);
  for (std::uint32_t i = 0; i < 6; ++i) {
    const PassRecord& part = told.sink.passes[i];
    EXPECT_EQ(part.pass, i / 3);
    EXPECT_EQ(part.rank, i % 3);
    EXPECT_EQ(part.ranks, 3U);
    EXPECT_EQ(part.end, ms(i < 3 ? 10 : 20));
  }
  EXPECT_EQ(told.sink.passes[2].prefill, Duration{}) << "the third came during the pass";
  EXPECT_EQ(told.sink.passes[3].decode, Duration{2 * kMs}) << "its own share, not the pass";
  EXPECT_EQ(told.sink.passes[5].prefill, Duration{10 * kMs});
  ASSERT_EQ(told.sink.events.size(), 3U);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(told.sink.events[rank].rank, rank);
    EXPECT_EQ(told.sink.events[rank].event, 0U) << "numbered per rank";
  }
}

TEST(Capture, TellsKvEventsNumberedPerWorkerAndNoneWithoutCaching) {  // bugs.md A20
  Deployment deployment = a_deployment(2, 3);
  const workload::Workload workload = a_trace({{.at_ms = 0, .input = 8},
                                               {.at_ms = 0, .input = 8},
                                               {.at_ms = 20, .input = 12},
                                               {.at_ms = 20, .input = 4}});
  Options options;
  options.capture_kv_events = true;
  const Told told = play(deployment, workload, options);
  std::vector<std::uint64_t> next(2);
  std::uint32_t stored = 0, removed = 0;
  for (const KvEventRecord& event : told.sink.events) {
    EXPECT_EQ(event.event, next[event.worker]++);
    (event.stored ? stored : removed) += static_cast<std::uint32_t>(event.blocks.size());
  }
  EXPECT_EQ(stored, 2U + 2 + 3 + 1);
  EXPECT_EQ(removed, 2U) << "the long one needed all of its worker's blocks";

  deployment.rank.prefix_caching = false;
  EXPECT_THAT(play(deployment, workload, options).sink.events, IsEmpty());
}

// Laws.

workload::Workload many_requests(std::uint64_t seed) {
  workload::Spec spec;
  using workload::Length;
  spec.source =
      workload::SyntheticSource{.input = {.kind = Length::Kind::Uniform, .min = 1, .max = 60},
                                .output = {.kind = Length::Kind::Uniform, .min = 1, .max = 40},
                                .seed = seed};
  spec.load.kind = workload::Load::Kind::Poisson;
  spec.load.per_second = 100;
  spec.stop = {.count = 1500, .per_load_unit = std::nullopt};
  return built(spec);
}

TEST_P(Simulation, NothingIsLostAndNothingIsLeft) {
  const workload::Workload workload = many_requests(1);
  const Told told = play(a_deployment(3, 25), workload, options());
  EXPECT_EQ(told.totals.requests, 1500U);
  ASSERT_EQ(told.sink.requests.size(), 1500U);
  EXPECT_EQ(told.totals.incomplete_at_cap, 0U);
  EXPECT_GT(told.totals.preemptions, 0U) << "the pool is too large to show anything";
  std::uint64_t gaps = 0;
  UInt128 gap_ns = 0;
  Time before;
  for (const RequestRecord& record : told.sink.order) {
    EXPECT_LE(before, record.terminal) << "records come in the order of time";
    before = record.terminal;
    EXPECT_LE(record.arrival, record.first_admit);
    EXPECT_LT(record.first_admit, record.first_token);
    EXPECT_EQ(record.status, Status::Completed);
    EXPECT_EQ(record.output_tokens, record.requested_output_tokens);
    EXPECT_EQ(record.admissions, record.preemptions + 1);
    EXPECT_LE(record.reused_tokens, record.input_tokens);
    gaps += record.output_tokens - 1;
    gap_ns += static_cast<UInt128>((record.last_token - record.first_token).ns);
  }
  EXPECT_EQ(told.totals.gaps.count, gaps);
  EXPECT_TRUE(told.totals.gaps.sum_ns == gap_ns);
  EXPECT_EQ(told.totals.end, before);
  for (const PoolState& pool : told.totals.pools) {
    EXPECT_EQ(pool.active, 0U);
    EXPECT_EQ(pool.inactive + pool.free, 25U);
  }
}

TEST(Runs, BothModesAndEveryLengthOfRunTellTheSame) {
  const workload::Workload workload = many_requests(2);
  Options options;
  options.stepping = true;
  const Told plain = play(a_deployment(3, 24), workload, options);
  options.stepping = false;
  for (const std::uint32_t run_passes_max : {0U, 1U, 3U, 1000U}) {
    options.run_passes_max = run_passes_max;
    const Told fast = play(a_deployment(3, 24), workload, options);
    EXPECT_EQ(fast.totals.fingerprint, plain.totals.fingerprint);
    EXPECT_EQ(fast.totals.passes, plain.totals.passes);
    EXPECT_EQ(fast.totals.evictions, plain.totals.evictions);
    EXPECT_EQ(fast.totals.gaps.gaps_ns, plain.totals.gaps.gaps_ns);
    for (const auto& [ordinal, record] : plain.sink.requests) {
      EXPECT_EQ(fast.sink.requests.at(ordinal).last_token, record.last_token);
    }
  }
}

TEST(Runs, OfGroupsOfRanksTellTheSameInBothModes) {
  const workload::Workload workload = many_requests(2);
  for (const std::uint32_t interval : {1U, 3U}) {
    Deployment deployment = a_deployment(2, 24);
    deployment.ranks_per_worker = 4;
    deployment.rank.prefill_schedule_interval = interval;
    Options options;
    options.stepping = true;
    const Told plain = play(deployment, workload, options);
    options.stepping = false;
    for (const std::uint32_t run_passes_max : {0U, 1U, 3U}) {
      options.run_passes_max = run_passes_max;
      const Told fast = play(deployment, workload, options);
      EXPECT_EQ(fast.totals.fingerprint, plain.totals.fingerprint);
      EXPECT_EQ(fast.totals.passes, plain.totals.passes);
      EXPECT_EQ(fast.totals.gaps.gaps_ns, plain.totals.gaps.gaps_ns);
    }
  }
}

TEST(Runs, AreAFunctionOfTheirArguments) {
  const workload::Workload workload = many_requests(3);
  Deployment deployment = a_deployment(5, 24);
  deployment.router = {.policy = router::Policy::LeastLoaded, .tie = router::Tie::Random};
  const std::uint64_t first = play(deployment, workload).totals.fingerprint;
  EXPECT_EQ(play(deployment, workload).totals.fingerprint, first);
  deployment.router.seed = 43;
  EXPECT_NE(play(deployment, workload).totals.fingerprint, first);
}

TEST(Runs, TellTheirProgressAndAreNotChangedByIt) {
  const workload::Workload workload = many_requests(4);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> calls;
  Options options;
  options.progress = [&](std::uint64_t ended, std::uint64_t all) {
    calls.emplace_back(ended, all);
  };
  const Told told = play(a_deployment(), workload, options);
  EXPECT_THAT(calls, ElementsAre(Pair(1024, 1500)));
  EXPECT_EQ(told.totals.fingerprint, play(a_deployment(), workload).totals.fingerprint);
}

}  // namespace
}  // namespace servecast::replay
