// SPDX-License-Identifier: Apache-2.0
// The judges are judged first: a comparison or an audit that cannot fail would prove nothing.
#include "support/recording.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string_view>

#include "support/audit.hpp"

namespace servecast::test {
namespace {

constexpr Time at(std::int64_t ms) {
  return Time{ms * 1'000'000};
}
constexpr Duration lasting(std::int64_t ms) {
  return Duration{ms * 1'000'000};
}

class TenTwo final : public perf::StepTimer {  // prefill 10 ms, decode 2 ms
 public:
  perf::StepTime time(const perf::StepShape& shape) const override {
    return {shape.prefill_requests > 0 ? lasting(10) : Duration{},
            shape.decode_requests > 0 ? lasting(2) : Duration{}};
  }
  void decode_run(const perf::DecodeRun&, std::span<Duration> out) const override {
    for (Duration& d : out) d = lasting(2);
  }
  perf::Provenance provenance() const override { return perf::Provenance::Fixed; }
  std::uint32_t run_passes_max() const override { return 256; }
};

replay::Deployment one_worker() {
  replay::Deployment deployment;
  deployment.rank.blocks = 8;
  deployment.rank.block_tokens = 4;
  deployment.rank.max_batched_tokens = 16;
  deployment.timer = std::make_shared<TenTwo>();
  return deployment;
}

// Two requests of one run, spelled by hand: request 0 has 4 prompt tokens and 2 outputs, request 1
// the same prompt twice over and 1 output.
Recording by_hand() {
  Recording run;
  run.has_passes = run.has_events = run.has_history = true;
  replay::RequestRecord a;
  a.ordinal = 0;
  a.first_admit = at(0);
  a.first_token = at(10);
  a.second_token = a.last_token = a.terminal = at(12);
  a.input_tokens = 4;
  a.requested_output_tokens = a.output_tokens = 2;
  a.admissions = 1;
  replay::RequestRecord b = a;
  b.ordinal = 1;
  b.session = 1;
  b.first_token = b.last_token = b.terminal = at(10);
  b.second_token = kNever;
  b.input_tokens = 8;
  b.requested_output_tokens = b.output_tokens = 1;
  b.reused_tokens = b.reused_tokens_first = 4;
  run.requests = {{a, {{at(0), 0}}}, {b, {{at(0), 4}}}};

  replay::PassRecord first;
  first.end = at(10);
  first.prefill = lasting(10);
  first.prefill_requests = 2;
  first.total_isl = 12;
  first.total_prefix = 4;
  first.scheduled = {{0, 0, 4}, {1, 4, 8}};
  first.admitted = {{0, 0}, {1, 4}};
  first.outputs = {{0, 1, false}, {1, 1, true}};
  first.blocks_active = 1;
  first.blocks_inactive = 1;
  first.blocks_free = 6;
  first.running = 1;
  replay::PassRecord second;
  second.pass = 1;
  second.start = at(10);
  second.end = at(12);
  second.decode = lasting(2);
  second.decode_requests = 1;
  second.total_length = 5;
  second.scheduled = {{0, 4, 5}};
  second.outputs = {{0, 1, true}};
  second.blocks_inactive = 2;
  second.blocks_free = 6;
  run.passes = {first, second};

  const std::uint64_t local = 77;
  replay::KvEventRecord stored;
  stored.at = at(10);
  stored.stored = true;
  stored.blocks = {{local, local}};
  run.events = {stored};

  run.totals.requests = 2;
  run.totals.passes = 2;
  run.totals.prefix_queried_tokens = 12;
  run.totals.prefix_hit_tokens = 4;
  run.totals.first_arrival = at(0);
  run.totals.end = at(12);
  run.totals.gaps.gaps_ns = {{2'000'000, 1}};
  run.totals.gaps.count = 1;
  run.totals.gaps.sum_ns = 2'000'000;
  run.totals.gaps.sum_squares_ns = UInt128{4'000'000'000'000};
  run.totals.pools = {{0, 2, 6}};
  run.totals.workers = 1;
  return run;
}

struct Fault {
  std::string_view word;  // must stand in what is reported
  std::function<void(Recording&)> seed;
};

TEST(FirstDifference, IsNothingForEqualRuns) {
  EXPECT_EQ(first_difference(by_hand(), by_hand()), std::nullopt);
}

TEST(FirstDifference, NamesTheFieldThatDiffers) {
  const Fault faults[] = {
      {"first_token", [](Recording& r) { r.requests[0].record.first_token = at(11); }},
      {"new_token_ratio", [](Recording& r) { r.passes[0].new_token_ratio = 0.7; }},
      {"session", [](Recording& r) { r.events[0].session = 3; }},
      {"second_token", [](Recording& r) { r.requests[1].record.second_token = at(11); }},
      {"reason", [](Recording& r) { r.requests[0].record.reason = replay::Reason::KvCapacity; }},
      {"status", [](Recording& r) { r.requests[0].record.status = replay::Status::Failed; }},
      {"preemptions", [](Recording& r) { r.requests[0].record.preemptions = 1; }},
      {"history", [](Recording& r) { r.requests[1].history[0].reused_tokens = 0; }},
      {"scheduled", [](Recording& r) { r.passes[0].scheduled[1].from = 3; }},
      {"blocks_inactive", [](Recording& r) { r.passes[1].blocks_inactive = 3; }},
      {"number of passes", [](Recording& r) { r.passes.pop_back(); }},
      {"blocks", [](Recording& r) { r.events[0].blocks[0].hash = 78; }},
      {"number of KV events", [](Recording& r) { r.events.clear(); }},
      {"number of request records", [](Recording& r) { r.requests.pop_back(); }},
      {"evictions", [](Recording& r) { r.totals.evictions = 1; }},
      {"pools", [](Recording& r) { r.totals.pools[0].free = 5; }},
      {"gaps[0]", [](Recording& r) { r.totals.gaps.gaps_ns[0].second = 2; }},
      {"sum of squared gaps", [](Recording& r) { r.totals.gaps.sum_squares_ns += 1; }},
      {"fingerprint", [](Recording& r) { r.totals.fingerprint = 1; }},
      {"one run failed", [](Recording& r) { r.problems.emplace_back(); }},
  };
  for (const Fault& fault : faults) {
    Recording changed = by_hand();
    fault.seed(changed);
    const auto found = first_difference(by_hand(), changed);
    ASSERT_TRUE(found) << fault.word;
    EXPECT_NE(found->find(fault.word), std::string::npos) << *found;
  }
}

TEST(FirstDifference, LeavesOutWhatOnlyOneRunCaptured) {
  Recording bare = by_hand();
  bare.has_passes = bare.has_events = bare.has_history = false;
  bare.passes.clear();
  bare.events.clear();
  for (RecordedRequest& request : bare.requests) request.history.clear();
  EXPECT_EQ(first_difference(by_hand(), bare), std::nullopt);
}

TEST(Audit, AcceptsARunThatObeysTheLaws) {
  EXPECT_EQ(audit(one_worker(), by_hand(), false), std::vector<std::string>{});
}

TEST(Audit, NamesTheLawThatIsBroken) {
  const Fault faults[] = {
      {"out of order", [](Recording& r) { r.requests[0].record.arrival = at(1); }},
      {"ends before", [](Recording& r) { r.requests[0].record.terminal = at(11); }},
      {"second token", [](Recording& r) { r.requests[0].record.second_token = kNever; }},
      {"reuse exceeds", [](Recording& r) { r.requests[0].record.reused_tokens = 5; }},
      {"admissions", [](Recording& r) { r.requests[0].record.admissions = 2; }},
      {"output tokens", [](Recording& r) { r.requests[0].record.requested_output_tokens = 3; }},
      {"rejected after",
       [](Recording& r) { r.requests[1].record.status = replay::Status::Rejected; }},
      {"requests arrived", [](Recording& r) { r.totals.requests = 3; }},
      {"without a cap", [](Recording& r) { r.totals.incomplete_at_cap = 1; }},
      {"leaked", [](Recording& r) { r.totals.pools[0] = {1, 1, 6}; }},
      {"do not add up", [](Recording& r) { r.totals.pools[0] = {0, 1, 6}; }},
      {"more prefix hits", [](Recording& r) { r.totals.prefix_hit_tokens = 13; }},
      {"ended twice", [](Recording& r) { r.requests.push_back(r.requests.back()); }},
      {"not consecutive", [](Recording& r) { r.passes[1].pass = 2; }},
      {"starts before", [](Recording& r) { r.passes[1].start = at(9); }},
      {"its parts", [](Recording& r) { r.passes[1].end = at(13); }},
      {"while it runs", [](Recording& r) { r.passes[1].admitted = {{0, 0}}; }},
      {"preempted while", [](Recording& r) { r.passes[1].preempted = {{1, 1}}; }},
      {"scheduled while", [](Recording& r) { r.passes[1].scheduled.push_back({1, 8, 9}); }},
      {"a part of a unit", [](Recording& r) { r.passes[0].admitted[1].reused_tokens = 3; }},
      {"nothing left to sample", [](Recording& r) { r.passes[0].admitted[0].reused_tokens = 4; }},
      {"computes from", [](Recording& r) { r.passes[1].scheduled[0].from = 3; }},
      {"unknown tokens", [](Recording& r) { r.passes[1].scheduled[0].to = 6; }},
      {"pass the budget", [](Recording& r) { r.passes[0].scheduled[1].to = 40; }},
      {"emits with", [](Recording& r) { r.passes[1].scheduled.clear(); }},
      {"total_isl", [](Recording& r) { r.passes[0].total_isl = 8; }},
      {"total_length", [](Recording& r) { r.passes[1].total_length = 6; }},
      {"the timer says", [](Recording& r) { r.passes[1].decode = lasting(3); }},
      {"tokens in passes", [](Recording& r) { r.passes[0].outputs.pop_back(); }},
      {"last token differs",
       [](Recording& r) {
         r.requests[0].record.last_token = r.requests[0].record.second_token = at(11);
       }},
      {"first reuse", [](Recording& r) { r.requests[1].record.reused_tokens_first = 0; }},
      {"gap table differs", [](Recording& r) { r.totals.gaps.gaps_ns[0].first = 3'000'000; }},
      {"sums of the gap table", [](Recording& r) { r.totals.gaps.sum_ns += 1; }},
      {"passes told", [](Recording& r) { r.totals.passes = 3; }},
      {"preemptions in passes", [](Recording& r) { r.totals.preemptions = 1; }},
      {"is not consecutive", [](Recording& r) { r.events[0].event = 1; }},
      {"removes what", [](Recording& r) { r.events[0].stored = false; }},
      {"stores what",
       [](Recording& r) {
         r.events.push_back(r.events[0]);
         r.events[1].event = 1;
       }},
      {"does not follow", [](Recording& r) { r.events[0].blocks[0].hash = 78; }},
      {"are announced", [](Recording& r) { r.totals.pools[0] = {0, 0, 8}; }},
      {"the run failed", [](Recording& r) { r.problems.emplace_back(); }},
  };
  for (const Fault& fault : faults) {
    Recording changed = by_hand();
    fault.seed(changed);
    std::string all;
    for (const std::string& line : audit(one_worker(), changed, false)) all += line + "\n";
    EXPECT_NE(all.find(fault.word), std::string::npos) << fault.word << "\n" << all;
  }
}

TEST(Audit, CountsTheBlocksOfEveryRequestWhereNothingIsShared) {
  replay::Deployment deployment = one_worker();
  deployment.rank.prefix_caching = false;
  Recording run = by_hand();
  run.events.clear();
  run.requests[1].record.reused_tokens = run.requests[1].record.reused_tokens_first = 0;
  run.passes[0].scheduled[1].from = 0;
  run.passes[0].admitted[1].reused_tokens = 0;
  run.passes[0].total_prefix = 0;
  run.passes[0].blocks_inactive = run.passes[1].blocks_inactive = 0;
  run.passes[0].blocks_free = 7;
  run.passes[1].blocks_free = 8;
  run.totals.pools[0] = {0, 0, 8};
  EXPECT_EQ(audit(deployment, run, false), std::vector<std::string>{});

  run.passes[0].blocks_active = 2;
  run.passes[0].blocks_free = 6;
  const auto broken = audit(deployment, run, false);
  ASSERT_EQ(broken.size(), 1U);
  EXPECT_NE(broken[0].find("2 blocks are active, recount 1"), std::string::npos) << broken[0];
}

}  // namespace
}  // namespace servecast::test
