// SPDX-License-Identifier: Apache-2.0
// A worker for tests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "engine/worker.hpp"

namespace servecast::engine {

using scheduler::RankConfig;
using scheduler::Slot;

// 10 ns for a pass that prefills and 10 ns for one that decodes, unless told otherwise.
class TestTimer final : public perf::StepTimer {
 public:
  std::int64_t prefill_ns = 10, decode_ns = 10;
  std::int64_t every = 0;         // decode passes whose context it divides ...
  std::int64_t every_ns = 0;      // ... take this long
  std::int64_t context_unit = 0;  // ns per token of context, on top

  perf::StepTime time(const perf::StepShape& shape) const override {
    return {{shape.prefill_requests > 0 ? prefill_ns : 0},
            {shape.decode_requests > 0 ? decode(shape.decode_context) : 0}};
  }
  void decode_run(const perf::DecodeRun& run, std::span<Duration> out) const override {
    std::uint64_t context = run.context;
    for (Duration& duration : out) {
      duration = {decode(context)};
      context += run.requests;
    }
  }
  perf::Provenance provenance() const override { return perf::Provenance::Fixed; }
  std::uint32_t run_passes_max() const override { return 64; }

 private:
  std::int64_t decode(std::uint64_t context) const {
    const auto tokens = static_cast<std::int64_t>(context);
    if (every > 0 && tokens % every == 0) return every_ns;
    return decode_ns + context_unit * tokens;
  }
};

struct Machine {
  RankConfig rank{.blocks = 100, .block_tokens = 4, .max_model_len = std::nullopt};
  TestTimer timer = {};
  bool stepping = false;
  bool trace = false;
  std::uint32_t run_passes_max = 64;
  std::uint32_t ranks = 1;
};

class Bench {
 public:
  explicit Bench(const Machine& machine)
      : timer_(machine.timer), worker(machine.rank, options(machine), timer_, requests, gaps) {}

  Slot add(std::uint32_t prompt, std::uint32_t output, std::uint32_t rank = 0) {
    const Slot slot = requests.add();
    scheduler::Request& request = requests[slot];
    request.ordinal = slot;
    request.rank = rank;
    request.prompt_tokens = prompt;
    request.output_tokens = output;
    request.content.owner = slot;
    request.content.prompt_first = slot * std::uint64_t{1000003};
    request.content.plan_offset = slot * std::uint64_t{1000};
    return slot;
  }
  // requires: `ids` outlives the request.
  void share(Slot slot, const std::vector<std::uint32_t>& ids) {
    if (ids.empty()) return;
    scheduler::Request& request = requests[slot];
    request.content.ids = ids;
    request.content.trace_block = 3;
    request.content.shared_tokens = request.content.shareable_tokens = request.prompt_tokens;
  }
  Slot submit(std::uint32_t prompt, std::uint32_t output, Instant now, std::uint32_t rank = 0) {
    const Slot slot = add(prompt, output, rank);
    worker.submit(slot, now);
    return slot;
  }
  const scheduler::Request& operator[](Slot slot) const { return requests[slot]; }
  std::uint32_t active() const { return worker.ranks()[0].scheduler().kv().active; }

 private:
  static Worker::Options options(const Machine& machine) {
    return {.scheduler = {.stepping = machine.stepping,
                          .take_back = true,
                          .trace = machine.trace,
                          .events = false,
                          .history = false},
            .ranks = machine.ranks,
            .run_passes_max = machine.run_passes_max};
  }
  TestTimer timer_;

 public:
  scheduler::RequestSlab requests;
  GapLedger gaps;
  Worker worker;
};

// A request of four tokens whose prefill ended at 10, and a run that ends with its last token.
inline Slot start_run(Bench& bench, std::uint32_t output) {
  const Slot slot = bench.submit(4, output, {{0}, false});
  SERVECAST_CHECK(bench.worker.drive({0}));
  SERVECAST_CHECK(bench.worker.wake() == Time{10});
  bench.worker.retire({10});
  SERVECAST_CHECK(bench.worker.idle());
  SERVECAST_CHECK(bench.worker.drive({10}));
  return slot;
}

}  // namespace servecast::engine
