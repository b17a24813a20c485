// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "report/test_run.hpp"

namespace servecast::report {
namespace {

using replay::Reason;
using replay::Status;

// `n` token times from `first`, `gap` apart.
std::vector<double> steady(double first, double gap, int n) {
  std::vector<double> times;
  for (int i = 0; i < n; ++i) times.push_back(first + gap * i);
  return times;
}

TEST(Summary, LatenciesOfOneRequest) {
  const Report report = TestRun().add(a_request().tokens({50, 60, 75, 95})).report();
  EXPECT_EQ(value_of(report, "mean_ttft_ms"), 50);
  EXPECT_EQ(value_of(report, "mean_ttst_ms"), 10);
  EXPECT_EQ(value_of(report, "mean_e2e_latency_ms"), 95);
  EXPECT_EQ(value_of(report, "mean_itl_ms"), 15);
  EXPECT_EQ(value_of(report, "mean_tpot_ms"), 15);
  EXPECT_EQ(value_of(report, "max_itl_ms"), 20);
}

TEST(Summary, InterTokenLatencyNeverHoldsTheTimeToTheFirstToken) {
  const Report report = TestRun().add(a_request().tokens(steady(500, 10, 5))).report();
  EXPECT_EQ(value_of(report, "mean_itl_ms"), 10);
  EXPECT_EQ(value_of(report, "max_itl_ms"), 10);
  EXPECT_EQ(value_of(report, "mean_ttft_ms"), 500);
}

TEST(Summary, TpotShowsTheWaitBetweenFirstTokenAndDecode) {  // bugs.md A39
  const Report report = TestRun().add(a_request().tokens({100, 160, 170, 180, 190})).report();
  EXPECT_EQ(value_of(report, "mean_e2e_latency_ms"), 190);
  EXPECT_EQ(value_of(report, "mean_tpot_ms"), 22.5);
}

TEST(Summary, PooledAndPerRequestGapsDiffer) {
  const Report report = TestRun()
                            .add(a_request(0).tokens(steady(100, 10, 2)))
                            .add(a_request(1).tokens(steady(100, 30, 4)))
                            .report();
  EXPECT_EQ(value_of(report, "mean_tpot_ms"), 20);
  EXPECT_EQ(value_of(report, "mean_request_itl_ms"), 20);
  EXPECT_EQ(value_of(report, "mean_itl_ms"), 25);
  EXPECT_EQ(value_of(report, "num_tpot_samples"), 2);
  EXPECT_EQ(value_of(report, "num_itl_samples"), 4);
}

TEST(Summary, ZeroGapsCountInInterTokenLatencyAndNotInRates) {
  const Report report = TestRun().add(a_request().tokens({100, 100, 120})).report();
  EXPECT_EQ(value_of(report, "mean_itl_ms"), 10);
  EXPECT_EQ(value_of(report, "min_itl_ms"), 0);
  EXPECT_EQ(value_of(report, "num_itl_samples"), 2);
  EXPECT_EQ(value_of(report, "num_output_token_throughput_per_user_samples"), 1);
  EXPECT_EQ(value_of(report, "mean_output_token_throughput_per_user"), 50);
  EXPECT_EQ(value_of(report, "mean_request_output_tps"), 100);  // 2 gaps in 20 ms
}

TEST(Summary, TpotIsKeptToThePicosecond) {
  // 10 ms over 3 gaps; a whole nanosecond would lose 333 ps.
  const Report report = TestRun().add(a_request().tokens({0, 1, 2, 10})).report();
  EXPECT_EQ(value_of(report, "mean_tpot_ms"), 3.333333333);
  EXPECT_NEAR(value_of(report, "mean_request_output_tps"), 300, 1e-6);
}

TEST(Summary, RatesFollowFromTheDuration) {
  TestRun run;
  for (std::uint64_t i = 0; i < 4; ++i)
    run.add(a_request(i).input(50).tokens(steady(2000 - 99, 1, 100)));
  run.totals.gpus_per_worker = 2;
  const Report report = run.report();
  EXPECT_EQ(value_of(report, "duration_ms"), 2000);
  EXPECT_EQ(value_of(report, "request_throughput_rps"), 2);
  EXPECT_EQ(value_of(report, "output_throughput_tok_s"), 200);
  EXPECT_EQ(value_of(report, "input_throughput_tok_s"), 100);
  EXPECT_EQ(value_of(report, "total_throughput_tok_s"), 300);
  EXPECT_NEAR(value_of(report, "gpu_hours"), 0.0011111, 1e-7);
}

TEST(Summary, TheDurationRunsFromTheFirstArrivalToTheLastCompletion) {
  TestRun run;
  run.add(a_request(0).arrives(100).rejected(Reason::ModelLength).ends(110));
  run.add(a_request(1).arrives(150).tokens({200, 400}));
  run.add(a_request(2).arrives(160).rejected(Reason::ModelLength).ends(900));
  EXPECT_EQ(value_of(run.report(), "duration_ms"), 300);
}

TEST(Summary, ARequestThatProducesNoTokenStillTakesTimeAndWorkers) {
  TestRun run;
  run.add(a_request().input(32).admitted(5).ends(25));
  run.totals.gpus_per_worker = 4;
  const Report report = run.report();
  EXPECT_EQ(value_of(report, "duration_ms"), 25);
  EXPECT_EQ(value_of(report, "decode_worker_seconds"), 0.025);
  EXPECT_DOUBLE_EQ(value_of(report, "gpu_hours"), 0.1 / 3600);
  EXPECT_EQ(value_of(report, "completed_requests"), 1);
  EXPECT_EQ(value_of(report, "total_input_tokens"), 32);
  for (const char* name : {"ttft", "ttst", "tpot", "itl", "e2e_latency"}) {
    EXPECT_EQ(value_of(report, std::string("num_") + name + "_samples"), 0);
    EXPECT_TRUE(is_null(report, std::string("mean_") + name + "_ms"));
  }
}

TEST(Summary, DoublingTheGpusDoublesGpuHoursAndNoLatency) {
  TestRun one, two;
  for (TestRun* run : {&one, &two}) run->add(a_request().tokens({50, 60}));
  two.totals.gpus_per_worker = 2;
  EXPECT_EQ(value_of(two.report(), "gpu_hours"), 2 * value_of(one.report(), "gpu_hours"));
  EXPECT_EQ(value_of(two.report(), "mean_e2e_latency_ms"),
            value_of(one.report(), "mean_e2e_latency_ms"));
}

TEST(Summary, ADistributionWithoutSamplesIsNullInEveryStatistic) {
  const Report report = TestRun().report();
  for (const char* stat : {"mean", "min", "max", "median", "p75", "p90", "p95", "p99", "std"}) {
    for (const char* metric :
         {"ttft_ms", "ttst_ms", "tpot_ms", "itl_ms", "e2e_latency_ms", "request_itl_ms",
          "output_token_throughput_per_user", "request_output_tps"}) {
      EXPECT_TRUE(is_null(report, std::string(stat) + "_" + metric)) << stat << ' ' << metric;
    }
  }
}

TEST(Summary, RatesAreNullWhenNothingLasted) {
  TestRun run({.sla = {.e2e_ms = 10}});
  run.add(a_request().tokens({0}));
  const Report report = run.report();
  EXPECT_EQ(value_of(report, "duration_ms"), 0);
  for (const char* key : {"request_throughput_rps", "input_throughput_tok_s",
                          "output_throughput_tok_s", "total_throughput_tok_s",
                          "goodput_request_throughput_rps", "goodput_output_throughput_tok_s"}) {
    EXPECT_TRUE(is_null(report, key)) << key;
  }
  EXPECT_EQ(value_of(report, "goodput_completed_requests"), 1);
}

TEST(Summary, ReuseNeverPassesTheInput) {
  TestRun run;
  run.add(a_request(0).input(100).reused(40, 140).tokens({10}));
  run.add(a_request(1).input(300).reused(0, 60).tokens({10}));
  const Report report = run.report();
  EXPECT_EQ(value_of(report, "prefix_cache_reused_ratio"), 160.0 / 400);
  EXPECT_EQ(value_of(report, "first_admission_prefix_cache_reused_ratio"), 40.0 / 400);
}

TEST(Summary, FailedRequestsAreCountedAndLeftOutOfLatencies) {  // bugs.md A37
  // Whatever way a request is lost, and however fast, the nine good ones stay as they are.
  for (const Status lost : {Status::Rejected, Status::Failed, Status::Canceled}) {
    TestRun run;
    for (std::uint64_t i = 0; i < 9; ++i) run.add(a_request(i).tokens({100}));
    run.add(a_request(9).tokens({1, 2, 3}).input(77).ended(lost, Reason::KvCapacity));
    const Report report = run.report();
    EXPECT_EQ(value_of(report, "mean_e2e_latency_ms"), 100);
    EXPECT_EQ(value_of(report, "p99_e2e_latency_ms"), 100);
    EXPECT_EQ(value_of(report, "min_ttft_ms"), 100);
    EXPECT_EQ(value_of(report, "num_itl_samples"), 0);
    EXPECT_EQ(value_of(report, "total_output_tokens"), 9);
    EXPECT_EQ(value_of(report, "total_input_tokens"), 9);
    EXPECT_EQ(value_of(report, "num_requests"), 10);
    EXPECT_EQ(value_of(report, "completed_requests"), 9);
    const std::string count = std::string(to_string(lost)) + "_requests";
    EXPECT_EQ(value_of(report, count), 1);
    EXPECT_EQ(value_of(report, count + "_kv_capacity"), 1);
    EXPECT_THAT(table(report, {}), testing::HasSubstr("Requests Not Completed: 1 of 10"));
  }
}

TEST(Summary, RequestsInFlightAtTheCapCountAsArrivedOnly) {
  TestRun run;
  run.add(a_request().tokens({10}));
  run.totals.requests += 3;
  run.totals.incomplete_at_cap = 3;
  const Report report = run.report();
  EXPECT_EQ(value_of(report, "num_requests"), 4);
  EXPECT_EQ(value_of(report, "completed_requests"), 1);
  EXPECT_EQ(value_of(report, "incomplete_at_cap"), 3);
}

TEST(SummaryDeathTest, ARequestThatVanishedIsABug) {
  TestRun run;
  run.add(a_request().tokens({10}));
  ++run.totals.requests;
  EXPECT_EXIT((void)run.try_report(), testing::ExitedWithCode(70), "incomplete_at_cap");
}

TEST(SummaryDeathTest, GapsThatDoNotFitTheRequestsAreABug) {
  TestRun run;
  run.add(a_request().tokens({10, 20}));
  ++run.totals.gaps.sum_ns;
  EXPECT_EXIT((void)run.try_report(), testing::ExitedWithCode(70), "gaps.sum_ns");
}

TEST(Goodput, BothBoundsMustHold) {
  TestRun run({.sla = {.ttft_ms = 150, .itl_ms = 30}});
  run.add(a_request(0).tokens({100, 150, 200}));
  run.add(a_request(1).tokens({100, 120, 140}));
  run.add(a_request(2).tokens({100}));
  const Report report = run.report();
  EXPECT_EQ(value_of(report, "duration_ms"), 200);
  EXPECT_EQ(value_of(report, "goodput_completed_requests"), 2);
  EXPECT_EQ(value_of(report, "goodput_output_throughput_tok_s"), 20);
  EXPECT_EQ(value_of(report, "goodput_request_throughput_rps"), 10);
}

TEST(Goodput, MeansOneThing) {  // bugs.md A41
  // 10 requests in 5 s: 7 keep TTFT, 6 keep TPOT, 5 keep both.
  TestRun run({.sla = {.ttft_ms = 100, .itl_ms = 20}});
  for (std::uint64_t i = 0; i < 10; ++i) {
    const double first = i < 7 ? 100 : 101;
    const double gap = i < 5 || i == 9 ? 20 : 21;
    run.add(a_request(i).arrives(4860).tokens(steady(4860 + first, gap, 2)));
  }
  run.totals.first_arrival = Time{0};
  run.add(a_request(10)
              .arrives(0)
              .tokens(steady(4900, 100, 2))
              .ended(Status::Failed, Reason::KvCapacity));
  run.add(a_request(11).arrives(0).tokens({5000}).ended(Status::Completed, Reason::None));
  Report report = run.report();
  EXPECT_EQ(value_of(report, "duration_ms"), 5000);
  EXPECT_EQ(value_of(report, "goodput_completed_requests"), 5);
  EXPECT_EQ(value_of(report, "goodput_request_throughput_rps"), 1);
  // Lost and late requests are in the denominator.
  EXPECT_EQ(value_of(report, "goodput_request_ratio"), 5.0 / 12);
}

TEST(Goodput, HalfOfTenRequestsIsFiftyPercent) {
  TestRun run({.sla = {.e2e_ms = 2500}});
  for (std::uint64_t i = 0; i < 10; ++i) run.add(a_request(i).tokens({i < 5 ? 2500.0 : 5000.0}));
  const Report report = run.report();
  EXPECT_EQ(value_of(report, "goodput_request_throughput_rps"), 1);
  EXPECT_EQ(value_of(report, "goodput_request_ratio"), 0.5);
  EXPECT_THAT(table(report, {}),
              testing::HasSubstr("Goodput (requests/sec): 1.00 (5 of 10 requests, 50.00 %)"));
}

double good(Sla sla, RequestBuilder request) {
  TestRun run({.sla = sla});
  run.add(std::move(request));
  return value_of(run.report(), "goodput_completed_requests");
}

TEST(Goodput, BoundsAreInclusiveToTheNanosecond) {  // bugs.md A51
  const Sla ttft{.ttft_ms = 100};
  EXPECT_EQ(good(ttft, a_request().tokens({100})), 1);
  EXPECT_EQ(good(ttft, a_request().tokens({100.0001})), 0);
  EXPECT_EQ(good(ttft, a_request().tokens({100.000001})), 0);
  const Sla itl{.itl_ms = 50};
  EXPECT_EQ(good(itl, a_request().tokens({10, 60})), 1);
  EXPECT_EQ(good(itl, a_request().tokens({10, 60.5})), 0);
  // 3 gaps of 150.000001 ms: the mean is a third of a nanosecond above the bound.
  EXPECT_EQ(good(itl, a_request().tokens({0, 50, 100, 150})), 1);
  EXPECT_EQ(good(itl, a_request().tokens({0, 50, 100, 150.000001})), 0);
  const Sla e2e{.e2e_ms = 150};
  EXPECT_EQ(good(e2e, a_request().tokens({100, 200})), 0);
  EXPECT_EQ(good(e2e, a_request().tokens({100, 120})), 1);
}

TEST(Goodput, ARequestWithoutTokenIsGoodOnlyUnderABoundOnTheWhole) {
  const auto silent = [] { return a_request().admitted(5).ends(100); };
  EXPECT_EQ(good({.e2e_ms = 100}, silent()), 1);
  EXPECT_EQ(good({.e2e_ms = 99}, silent()), 0);
  EXPECT_EQ(good({.ttft_ms = 1e9}, silent()), 0);
  EXPECT_EQ(good({.ttft_ms = 1e9, .e2e_ms = 100}, silent()), 0);
  EXPECT_EQ(good({.itl_ms = 1e9}, silent()), 0);
}

TEST(Goodput, ABoundThatIsNoNumberNeverHolds) {
  EXPECT_EQ(good({.ttft_ms = std::nan("")}, a_request().tokens({1})), 0);
  EXPECT_EQ(good({.ttft_ms = 1e300}, a_request().tokens({1})), 1);
}

TEST(Goodput, LostRequestsAreNeverGood) {
  EXPECT_EQ(
      good({.e2e_ms = 100}, a_request().tokens({1}).ended(Status::Failed, Reason::KvCapacity)), 0);
  EXPECT_EQ(good({.e2e_ms = 100}, a_request().rejected(Reason::PoolTooSmall)), 0);
}

TEST(Goodput, StandsInTheReportOnlyWithABound) {
  const Report report = TestRun().add(a_request().tokens({1})).report();
  EXPECT_EQ(find(report.summary, "goodput_completed_requests"), nullptr);
}

TEST(Report, HoldsEveryPromisedKeyOnceAndNoHostTime) {
  TestRun run;
  run.totals.fingerprint = 0xABCDEF;
  const Report report = run.add(a_request().tokens({50, 60})).report();
  std::set<std::string> keys;
  for (const Member& member : report.summary)
    EXPECT_TRUE(keys.insert(member.key).second) << member.key;
  for (const char* key : {"num_requests",
                          "completed_requests",
                          "total_input_tokens",
                          "total_output_tokens",
                          "duration_ms",
                          "request_throughput_rps",
                          "input_throughput_tok_s",
                          "output_throughput_tok_s",
                          "total_throughput_tok_s",
                          "prefill_worker_seconds",
                          "decode_worker_seconds",
                          "prefill_gpus_per_worker",
                          "decode_gpus_per_worker",
                          "gpu_hours",
                          "processed_tokens",
                          "prefix_cache_reused_ratio",
                          "first_admission_prefix_cache_reused_ratio",
                          "prefix_cache_queried_tokens",
                          "prefix_cache_hit_tokens",
                          "preemptions",
                          "passes",
                          "incomplete_at_cap",
                          "percentile_method",
                          "fingerprint"}) {
    EXPECT_TRUE(keys.contains(key)) << key;
  }
  for (const char* key :
       {"wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s"}) {
    EXPECT_FALSE(keys.contains(key)) << key;
  }
  EXPECT_EQ(*find(report.summary, "fingerprint")->get<std::string>(), "0000000000abcdef");
}

TEST(Report, SaysWhetherPercentilesAreExact) {
  TestRun run;
  EXPECT_EQ(*find(run.report().summary, "percentile_method")->get<std::string>(), "exact");
  run.totals.gaps.exact = false;
  EXPECT_EQ(*find(run.report().summary, "percentile_method")->get<std::string>(), "bucketed");
}

TEST(Report, UncheckedTimingIsFunctionalOnly) {
  TestRun run;
  for (const char* provenance : {"fixed", "polynomial", "analytic"}) {
    run.facts.provenance = provenance;
    const Report report = run.report();
    EXPECT_EQ(*find(report.summary, "qualification")->get<std::string>(), "functional_only");
    EXPECT_EQ(*find(report.summary, "provenance")->get<std::string>(), provenance);
    EXPECT_THAT(table(report, {}),
                testing::StartsWith(std::string("Functional only: ") + provenance));
  }
  run.facts.timing_is_checked = true;
  const Report report = run.report();
  EXPECT_EQ(find(report.summary, "qualification"), nullptr);
  EXPECT_THAT(table(report, {}), testing::Not(testing::HasSubstr("Functional")));
}

TEST(Report, NamesTheNumberThatIsNotFinite) {
  TestRun run;
  run.facts.sections = {{"memory", Object{{"total", std::numeric_limits<double>::infinity()}}}};
  const auto report = run.try_report();
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().front().message, testing::HasSubstr("/metadata/memory/total"));
}

TEST(Report, LatenciesTooLargeForExactSumsAreAProblem) {
  TestRun run;
  for (std::uint64_t i = 0; i < 40; ++i) run.add(a_request(i).tokens({4e12}));
  const auto report = run.try_report();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().front().code, "report.latencies_too_large");
}

TEST(Report, IsTheSameFromMemoryAndFromTheFile) {
  const auto text = [](std::uint64_t in_memory) {
    TestRun run({.samples_in_memory_max = in_memory});
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const double first = static_cast<double>(i * 1237 % 2003) / 7;
      run.add(a_request(i).tokens(steady(first, 1 + static_cast<double>(i % 13), 3)));
    }
    return prediction_json(run.report());
  };
  const std::string memory = text(kSamplesInMemoryMax);
  EXPECT_EQ(memory, text(64));
  EXPECT_EQ(memory, text(1));
}

TEST(Report, NoReportComesFromATemporaryFileThatFailed) {
  TestRun run({.samples_in_memory_max = 16, .temporary_directory = "/nonexistent-directory"});
  for (std::uint64_t i = 0; i < 100; ++i) run.add(a_request(i).tokens({1, 2}));
  const auto report = run.try_report();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().front().fault, Fault::Resource);
}

TEST(Report, KeepingRecordsChangesNoNumber) {
  const auto text = [](bool keep) {
    TestRun run({.keep_requests = keep, .keep_passes = keep, .keep_kv_events = keep});
    for (std::uint64_t i = 0; i < 20; ++i) run.add(a_request(i).tokens(steady(10, 3, 4)));
    return prediction_json(run.report());
  };
  EXPECT_EQ(text(true), text(false));
}

TEST(Report, TheOrderOfTheRecordsChangesNoNumber) {
  TestRun up, down;
  for (std::uint64_t i = 0; i < 500; ++i) {
    up.add(a_request(i).tokens(
        steady(static_cast<double>(i * 7 % 101), 0.1 + static_cast<double>(i % 5), 7)));
    const std::uint64_t k = 499 - i;
    down.add(a_request(k).tokens(
        steady(static_cast<double>(k * 7 % 101), 0.1 + static_cast<double>(k % 5), 7)));
  }
  EXPECT_EQ(prediction_json(up.report()), prediction_json(down.report()));
}

}  // namespace
}  // namespace servecast::report
