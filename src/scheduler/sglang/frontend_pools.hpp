// SPDX-License-Identifier: Apache-2.0
// Pools of workers that prepare requests before the scheduler sees them (engine-sglang.md S9). A
// request passes through every stage in order: it waits in the stage's queue for an idle worker,
// then has a share of what the stage's workers do. How fast all of them are depends on how many are
// served, so every start and end of one reprices the others.
//
//   FrontendPools pools({{.workers = 2, .service_ms = 10}});
//   pools.submit(slot, now);
//   pools.take_exits(*pools.next_deadline(), received);
//
// Inside, time is double milliseconds since the pools were last empty, as a service time and its
// repricing give it. It is rounded in one place, half away from zero: an end is due, and an exit
// happens, at its time in whole nanoseconds. Rounding errors therefore do not add up over stages
// and queues.
//
// Invariants: (1) no stage serves more requests than it has workers; (2) none waits in a queue
// while one of the stage's workers is idle; (3) exits are in order of their times.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "base/time.hpp"
#include "scheduler/rank_config.hpp"
#include "scheduler/request.hpp"

namespace servecast::scheduler {

class FrontendPools {
 public:
  // requires: at least one stage, each as FrontendStage says.
  explicit FrontendPools(const std::vector<FrontendStage>& stages);

  // All take the time of the call, which must not go back: what is due by it happens first.
  void submit(Slot slot, Time now);
  // Takes the request out, wherever it is; false when it is not here.
  bool cancel(Slot slot, Time now);
  // Appends the requests that have left the last stage by `now`, in the order in which they did.
  void take_exits(Time now, std::vector<Slot>& out);

  // When something happens by itself; nothing when no request is here. kNever: past the end of
  // simulated time.
  std::optional<Time> next_deadline() const;
  // Every request that is here.
  std::vector<Slot> slots() const;
  void verify() const;

 private:
  struct Job {
    Slot slot;
    double remaining = 1;  // of its service, 1 to 0
  };
  struct Stage {
    FrontendStage pool;
    std::vector<Job> active = {};  // in the order in which they started
    std::deque<Slot> queue = {};

    double latency_ms() const;  // of a whole service at the present concurrency
  };
  struct Exit {
    Slot slot;
    Time at;
  };

  double due_ms(const Stage& stage, const Job& job) const;
  double next_end_ms() const;  // infinite when nobody is served
  Time time_of(double at_ms) const;
  void settle(Time now);
  void progress(double at_ms);
  void end_due(double at_ms);
  void refill();
  bool serves_nobody() const;

  std::vector<Stage> stages_;
  std::deque<Exit> exits_;
  Time origin_;          // when the first request came to empty stages
  double clock_ms_ = 0;  // since then; what has happened so far
};

}  // namespace servecast::scheduler
