// SPDX-License-Identifier: Apache-2.0
// A run of SGLang ranks obeys the laws; changed in one place it breaks the one that looks there.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "perf/timers.hpp"
#include "support/audit.hpp"
#include "support/trace_file.hpp"

namespace servecast::test {
namespace {

// Requests 0 and 1 outgrow the pool together, so that request 1 gives way and comes back; request 2
// waits for a seat, and request 3 never fits.
constexpr std::string_view kRows =
    R"({"input_length": 8, "output_length": 7, "hash_ids": [1], "timestamp": 0}
{"input_length": 8, "output_length": 7, "hash_ids": [2], "timestamp": 0}
{"input_length": 20, "output_length": 1, "hash_ids": [1, 2, 3], "timestamp": 2}
{"input_length": 30, "output_length": 1, "hash_ids": [1, 2, 3, 4], "timestamp": 4}
)";

replay::Deployment deployment(bool host_loop) {
  replay::Deployment deployment;
  deployment.rank.blocks = 6;
  deployment.rank.block_tokens = 4;
  deployment.rank.max_sequences = 2;
  scheduler::SglangSettings& sglang = deployment.rank.sglang.emplace();
  sglang.chunked_prefill_size = 16;
  sglang.clip_max_new_tokens = 2;
  sglang.schedule_conservativeness = 0.1;
  sglang.retract_decode_steps = 1;
  sglang.decode_log_interval = 3;
  sglang.host_loop = host_loop;
  deployment.timer = perf::fixed_timer({.prefill_ms = 10, .decode_ms = 2}).value();
  return deployment;
}

Recording run(bool host_loop) {
  const TraceFile trace{std::string(kRows)};
  workload::Spec spec;
  workload::TraceSource source;
  source.path = trace.path();
  source.block_size = 8;
  spec.source = source;
  spec.load.kind = workload::Load::Kind::TraceTimestamps;
  replay::Options options;
  options.stepping = true;
  options.capture_requests = options.capture_passes = options.capture_kv_events = true;
  return record(deployment(host_loop), workload::build(spec).value(), options);
}

TEST(SglangAudit, AcceptsARunThatObeysTheLaws) {
  for (const bool host_loop : {false, true})
    EXPECT_EQ(audit(deployment(host_loop), run(host_loop), false), std::vector<std::string>{});
}

using Pass = replay::PassRecord;

Pass& pass_with(Recording& run, const std::function<bool(const Pass&)>& what) {
  for (Pass& pass : run.passes) {
    if (what(pass)) return pass;
  }
  ADD_FAILURE() << "no such pass";
  return run.passes.front();
}
Pass& preempting(Recording& run) {
  return pass_with(run, [](const Pass& pass) { return !pass.preempted.empty(); });
}
Pass& decoding(Recording& run) {
  return pass_with(run, [](const Pass& pass) { return pass.decode_requests == 2; });
}

struct Fault {
  std::string_view word;
  std::function<void(Recording&)> seed;
};

TEST(SglangAudit, NamesTheLawThatIsBroken) {
  const Fault faults[] = {
      {"ends at", [](Recording& r) { r.passes[0].end = Time{9'000'000}; }},
      {"new token ratio", [](Recording& r) { r.passes[2].new_token_ratio = 0.5; }},
      {"takes part or does not", [](Recording& r) { r.passes[2].new_token_ratio.reset(); }},
      {"requests run, recount", [](Recording& r) { r.passes[0].running = 1; }},
      {"wait at its start", [](Recording& r) { r.passes[0].waiting = 2; }},
      {"do not add up", [](Recording& r) { r.passes[0].blocks_free += 1; }},
      {"are active, recount",
       [](Recording& r) {
         r.passes[0].blocks_active += 3;
         r.passes[0].blocks_free -= 3;
       }},
      {"computes", [](Recording& r) { r.passes[0].scheduled[1].to = 12; }},
      {"without such an admission",
       [](Recording& r) { r.passes[0].admitted[1].reused_tokens = 4; }},
      {"before its turn",
       [](Recording& r) { std::swap(r.passes[0].scheduled[0], r.passes[0].scheduled[1]); }},
      {"is the wrong victim", [](Recording& r) { preempting(r).preempted[0].request = 0; }},
      {"held", [](Recording& r) { preempting(r).preempted[0].blocks += 1; }},
      {"nobody gives way", [](Recording& r) { preempting(r).preempted.clear(); }},
      {"is preempted for nobody", [](Recording& r) { r.passes[1].preempted = {{1, 3}}; }},
      {"rows, recount", [](Recording& r) { decoding(r).scheduled.pop_back(); }},
      {"another order",
       [](Recording& r) { std::swap(decoding(r).scheduled[0], decoding(r).scheduled[1]); }},
      {"decodes of", [](Recording& r) { decoding(r).total_length += 1; }},
      {"the timer says", [](Recording& r) { decoding(r).decode = Duration{1}; }},
      {"tokens where request", [](Recording& r) { decoding(r).outputs[0].tokens = 2; }},
      {"is complete", [](Recording& r) { decoding(r).outputs[0].completed = true; }},
      {"outputs, recount", [](Recording& r) { decoding(r).outputs.push_back({0, 1, false}); }},
      {"are rejected, recount",
       [](Recording& r) {
         pass_with(r, [](const Pass& pass) { return !pass.rejected.empty(); }).rejected.clear();
       }},
      {"would have been enough", [](Recording& r) { r.requests[3].record.kv_needed = 7; }},
      {"decode steps in passes", [](Recording& r) { r.totals.decode_forwards += 1; }},
      {"no flush is due", [](Recording& r) { r.events[0].at = r.passes[1].end; }},
      {"the tree has", [](Recording& r) { r.events.pop_back(); }},
      {"are cached at the end", [](Recording& r) { r.events.pop_back(); }},
      {"there is room",
       [](Recording& r) {
         Pass& pass = r.passes[0];
         pass.scheduled.pop_back();
         pass.admitted.pop_back();
         pass.waiting = 1;
       }},
  };
  for (const Fault& fault : faults) {
    Recording changed = run(false);
    fault.seed(changed);
    std::string all;
    for (const std::string& line : audit(deployment(false), changed, false)) all += line + "\n";
    EXPECT_NE(all.find(fault.word), std::string::npos) << fault.word << "\n" << all;
  }
}

}  // namespace
}  // namespace servecast::test
