// SPDX-License-Identifier: Apache-2.0
// The reader of the shared SGLang cases and the comparison with them are themselves tested: a run
// that did what a case says has no mismatch, and what deviates is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/expectations.hpp"
#include "conformance/shared_files.hpp"
#include "conformance/shared_sglang.hpp"

namespace servecast::test {
namespace {

using testing::HasSubstr;

Time at(double ms) {
  return Time{std::llround(ms * 1e6)};
}

RecordedRequest request_of(const SharedSglangCase& shared, std::size_t row) {
  const ExpectedRequest& want = shared.common.requests[row];
  const SglangHistory& history = shared.histories[row];
  RecordedRequest out;
  replay::RequestRecord& r = out.record;
  r.ordinal = row;
  r.row = static_cast<std::uint32_t>(row);
  r.arrival = at(*want.arrival);
  r.first_admit = at(*want.first_admit);
  r.first_token = at(*want.first_token);
  if (history.tokens.size() > 1) r.second_token = at(history.tokens[1]);
  r.last_token = at(*want.last_token);
  r.terminal = at(*want.terminal);
  r.input_tokens = want.input_tokens;
  r.requested_output_tokens = want.requested_output_tokens;
  r.output_tokens = want.output_tokens;
  r.reused_tokens_first = want.reused_first;
  r.reused_tokens = want.reused;
  r.preemptions = want.preemptions;
  r.worker = want.worker;
  for (std::size_t i = 0; i < history.admitted.size(); ++i)
    out.history.push_back({at(history.admitted[i]), history.reused[i]});
  return out;
}

replay::PassRecord pass_of(const SglangPass& want, std::uint32_t page) {
  replay::PassRecord pass;
  pass.worker = want.worker;
  pass.pass = want.pass;
  pass.start = at(want.start);
  pass.end = at(want.end);
  pass.decode = at(want.device) - Time{};
  pass.prefill_requests = static_cast<std::uint32_t>(want.batch.size());
  pass.decode_requests = static_cast<std::uint32_t>(want.rows.size());
  pass.scheduled = want.batch;
  for (const std::uint64_t row : want.rows) pass.scheduled.push_back({row, 0, 1});
  pass.total_length = want.sum_len;
  for (const std::uint64_t victim : want.retracted) pass.preempted.push_back({victim, 0});
  pass.running = want.running;
  pass.waiting = want.waiting;
  pass.blocks_free = static_cast<std::uint32_t>(want.available / page);
  pass.blocks_inactive = static_cast<std::uint32_t>(want.evictable / page);
  pass.new_token_ratio = want.ratio;
  return pass;
}

// Passes and the tokens that they gave.
void add_passes(const SharedSglangCase& shared, Recording& run) {
  std::map<std::pair<std::uint32_t, std::int64_t>, std::size_t> by_end;
  for (const SglangPass& want : shared.passes) {
    run.passes.push_back(pass_of(want, shared.common.deployment.rank.block_tokens));
    by_end[{want.worker, run.passes.back().end.ns}] = run.passes.size() - 1;
  }
  for (std::size_t row = 0; row < shared.histories.size(); ++row) {
    const std::uint32_t worker = shared.common.requests[row].worker;
    for (const double token : shared.histories[row].tokens)
      run.passes[by_end.at({worker, at(token).ns})].outputs.push_back({row, 1, false});
  }
}

// A run that did what the case says.
Recording run_of(const SharedSglangCase& shared) {
  Recording run;
  run.has_passes = !shared.passes.empty();
  run.has_events = run.has_history = true;
  std::map<std::int64_t, std::uint64_t> gaps;
  run.totals.first_arrival = kNever;
  for (std::size_t row = 0; row < shared.histories.size(); ++row) {
    run.requests.push_back(request_of(shared, row));
    const std::vector<double>& tokens = shared.histories[row].tokens;
    for (std::size_t i = 1; i < tokens.size(); ++i) ++gaps[(at(tokens[i]) - at(tokens[i - 1])).ns];
    run.totals.first_arrival =
        std::min(run.totals.first_arrival, run.requests.back().record.arrival);
    run.totals.preemptions += run.requests.back().record.preemptions;
  }
  run.totals.requests = run.requests.size();
  run.totals.gaps.gaps_ns.assign(gaps.begin(), gaps.end());
  if (run.has_passes) add_passes(shared, run);
  for (const std::uint64_t passes : shared.common.passes_per_worker) run.totals.passes += passes;
  for (const SglangEvent& event : shared.events) {
    run.events.push_back(event.event);
    run.events.back().at = at(event.time);
  }
  run.totals.pools = shared.common.final_pools;
  return run;
}

std::optional<std::string> any_mismatch(const SharedSglangCase& shared, const Recording& run) {
  if (run.has_passes) {
    if (auto found = sglang_passes_mismatch(shared, run)) return found;
  }
  if (auto found = sglang_events_mismatch(shared, run)) return found;
  if (auto found = rows_mismatch(shared.common, run)) return found;
  if (auto found = sglang_histories_mismatch(shared, run)) return found;
  return summary_mismatch(shared.common, run);
}

TEST(SglangReader, FindsNoMismatchWithARunThatDidWhatACaseSays) {
  const auto folder = shared_folder("sglang");
  if (!folder) GTEST_SKIP() << "the shared conformance cases are not on this machine";
  std::size_t cases = 0, with_passes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    const SharedSglangCase shared = read_shared_sglang_case(entry.path());
    EXPECT_EQ(any_mismatch(shared, run_of(shared)), std::nullopt) << entry.path();
    EXPECT_FALSE(shared.events.empty());
    ++cases;
    with_passes += shared.passes.empty() ? 0 : 1;
  }
  EXPECT_GE(cases, 6U);
  EXPECT_GE(with_passes, 5U);
}

TEST(SglangReader, NamesWhatDeviates) {
  const auto folder = shared_folder("sglang");
  if (!folder) GTEST_SKIP() << "the shared conformance cases are not on this machine";
  const SharedSglangCase shared = read_shared_sglang_case(*folder / "retraction_p4");
  const std::pair<std::string_view, std::function<void(Recording&)>> deviations[] = {
      {"worker 0 pass 0: batch[0] is [0, 0, 15], expected [0, 0, 16]",
       [](Recording& r) { r.passes[0].scheduled[0].to = 15; }},
      {"pass 24: retracted[0] is the end of the list, expected [2]",
       [](Recording& r) { r.passes[24].preempted.clear(); }},
      {"pass 24: rows[0] is [5], expected [3]",
       [](Recording& r) { std::swap(r.passes[24].scheduled[0], r.passes[24].scheduled[1]); }},
      {"pass 0: kind is decode, expected prefill",
       [](Recording& r) {
         r.passes[0].prefill_requests = 0;
         r.passes[0].decode_requests = 1;
       }},
      {"pass 24: sum_len", [](Recording& r) { ++r.passes[24].total_length; }},
      {"pass 24: device time", [](Recording& r) { r.passes[24].decode.ns += 2; }},
      {"pass 24: available", [](Recording& r) { ++r.passes[24].blocks_free; }},
      {"pass 24: evictable", [](Recording& r) { ++r.passes[24].blocks_inactive; }},
      {"pass 24: ratio", [](Recording& r) { *r.passes[24].new_token_ratio += 0.001; }},
      {"told 454 passes", [](Recording& r) { r.passes.pop_back(); }},
      {"told 456 passes", [](Recording& r) { r.passes.emplace_back(); }},
      {"KV event 0: time_ms", [](Recording& r) { r.events[0].at.ns += 2; }},
      {"KV event 1: session", [](Recording& r) { r.events[1].session = 1; }},
      {"KV event 0: parent_hash", [](Recording& r) { r.events[0].has_parent = true; }},
      {"KV event 2: blocks[1]", [](Recording& r) { ++r.events[2].blocks[1].hash; }},
      {"kv_events is 75, expected 76", [](Recording& r) { r.events.pop_back(); }},
      {"row 2: number of admit_ms is 1, expected 2",
       [](Recording& r) { r.requests[2].history.pop_back(); }},
      {"row 1: reused tokens[1]", [](Recording& r) { r.requests[1].history[1].reused_tokens = 4; }},
      {"row 0: number of token_ms is 91, expected 92",
       [](Recording& r) { r.passes[0].outputs.clear(); }},
      {"gaps: ", [](Recording& r) { ++r.totals.gaps.gaps_ns[0].second; }},
      {"row 1: preemptions is 0, expected 1",
       [](Recording& r) { r.requests[1].record.preemptions = 0; }},
      {"free blocks", [](Recording& r) { ++r.totals.pools[0].free; }},
  };
  for (const auto& [says, seed] : deviations) {
    Recording run = run_of(shared);
    seed(run);
    const auto found = any_mismatch(shared, run);
    ASSERT_TRUE(found) << says;
    EXPECT_THAT(*found, HasSubstr(std::string(says)));
  }
}

// The device is busy with one forward when the next is launched.
TEST(SglangReader, TellsADevicesTimeFromAnIterations) {
  const auto folder = shared_folder("sglang");
  if (!folder) GTEST_SKIP() << "the shared conformance cases are not on this machine";
  const SharedSglangCase shared = read_shared_sglang_case(*folder / "overlap_basic");
  EXPECT_TRUE(shared.common.deployment.rank.sglang->host_loop);
  for (const SglangPass& pass : shared.passes) {
    const double expected = pass.kind == "prefill" ? 20 : pass.kind == "decode" ? 4 : 0;
    EXPECT_NEAR(pass.device, expected, 1e-9) << pass.pass;
  }
  EXPECT_EQ(shared.passes.back().kind, "empty");
}

TEST(SglangReader, TakesEveryFlagOfTheReference) {
  SharedCase shared;
  const std::uint32_t block = read_sglang_args({"--trace-block-size",
                                                "16",
                                                "--workers",
                                                "2",
                                                "--num-gpu-blocks",
                                                "96",
                                                "--page-size",
                                                "4",
                                                "--max-running",
                                                "6",
                                                "--chunked-prefill-size",
                                                "48",
                                                "--max-prefill-tokens",
                                                "256",
                                                "--schedule-conservativeness",
                                                "0.1",
                                                "--policy",
                                                "lpm",
                                                "--overlap",
                                                "--no-radix-cache",
                                                "--clip-max-new-tokens",
                                                "7",
                                                "--decode-log-interval",
                                                "9",
                                                "--concurrency",
                                                "3",
                                                "--timing",
                                                "fixed:10,2"},
                                               shared);
  EXPECT_EQ(block, 16U);
  EXPECT_EQ(shared.deployment.workers, 2U);
  const scheduler::RankConfig& rank = shared.deployment.rank;
  EXPECT_EQ(rank.blocks, 96U);
  EXPECT_EQ(rank.block_tokens, 4U);
  EXPECT_EQ(rank.max_sequences, 6U);
  EXPECT_FALSE(rank.prefix_caching);
  ASSERT_TRUE(rank.sglang);
  EXPECT_EQ(rank.sglang->chunked_prefill_size, 48U);
  EXPECT_EQ(rank.sglang->max_prefill_tokens, 256U);
  EXPECT_EQ(rank.sglang->clip_max_new_tokens, 7U);
  EXPECT_EQ(rank.sglang->decode_log_interval, 9U);
  EXPECT_EQ(rank.sglang->schedule_conservativeness, 0.1);
  EXPECT_EQ(rank.sglang->policy, scheduler::SglangPolicy::Lpm);
  EXPECT_TRUE(rank.sglang->host_loop);
  EXPECT_EQ(shared.spec.load.kind, workload::Load::Kind::Concurrency);
  EXPECT_EQ(shared.spec.load.concurrency, 3U);
  EXPECT_TRUE(shared.deployment.timer);
}

TEST(SglangReader, RefusesFlagsThatItDoesNotKnow) {
  SharedCase shared;
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"--pages", "4"}, {"--page-size"}, {"--page-size", "4x"}, {"--policy", "sjf"}})
    EXPECT_THROW(read_sglang_args(args, shared), std::runtime_error) << args[0];
  read_sglang_args({}, shared);
  EXPECT_EQ(shared.spec.load.kind, workload::Load::Kind::TraceTimestamps);
}

}  // namespace
}  // namespace servecast::test
