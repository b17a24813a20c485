// SPDX-License-Identifier: Apache-2.0
// One simulation: a deployment, a workload, and a sink for records. A plain function of its
// arguments; any number may run in one process.
//
//   auto totals = replay::run(deployment, workload, {}, sink);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/problem.hpp"
#include "base/time.hpp"
#include "perf/step_timer.hpp"
#include "replay/records.hpp"
#include "router/spec.hpp"
#include "scheduler/rank_config.hpp"
#include "workload/workload.hpp"

namespace servecast::replay {

// Which cached block goes first: the one that was released first, or the one that the workload asks
// for latest (engine-vllm.md 15), which no engine can know: a yardstick.
enum class EvictionPolicy : std::uint8_t { Lru, Belady };

struct Deployment {
  std::uint32_t workers = 1;
  std::uint32_t ranks_per_worker = 1;  // attention data parallelism: ranks that run in lockstep
  std::uint32_t gpus_per_worker = 1;   // of all its ranks
  scheduler::RankConfig rank;          // of each
  std::shared_ptr<const perf::StepTimer> timer;
  router::Spec router;
  // Belady: requires prefix caching and the linear pool.
  EvictionPolicy kv_eviction_policy = EvictionPolicy::Lru;
};

struct Options {
  bool stepping = false;  // the reference mode: every pass one by one, every request by itself
  bool capture_requests = false;     // fill RequestRecord::history
  bool capture_passes = false;       // call on_pass
  bool capture_kv_events = false;    // call on_kv_event
  std::optional<Time> cap;           // soft virtual-time cap (replay.md 5.6)
  std::uint32_t run_passes_max = 0;  // limit of planned passes; 0 = the timer's own. For tests.
  // Called now and then with (requests ended, requests in all); never changes the run.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

// What run() refuses before it begins: an eviction by demands that the workload leaves open, images
// that nobody encodes or that have no price.
Problems check(const Deployment& deployment, const workload::Workload& workload);

Result<RunTotals> run(const Deployment& deployment, const workload::Workload& workload,
                      const Options& options, RecordSink& sink);

}  // namespace servecast::replay
