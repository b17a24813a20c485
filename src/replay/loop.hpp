// SPDX-License-Identifier: Apache-2.0
// The story of a simulation: arrivals, routing, passes, endings, on one virtual clock (replay.md
// 5).
//
// Invariants: (1) time never goes back; (2) every request released by the driver is handed to the
// sink exactly once, or counted as incomplete at the cap; (3) between two instants a worker is in
// the wake heap iff it is not idle or something is due in it by itself.
#pragma once

#include <compare>
#include <deque>
#include <optional>
#include <vector>

#include "engine/gap_ledger.hpp"
#include "engine/worker.hpp"
#include "kernel/wakes.hpp"
#include "replay/driver.hpp"
#include "replay/oracle.hpp"
#include "replay/simulation.hpp"
#include "router/router.hpp"

namespace servecast::replay {

class Loop {
 public:
  Loop(const Deployment& deployment, const workload::Workload& workload, const Options& options,
       RecordSink& sink);
  Result<RunTotals> run();

 private:
  struct Cancellation {
    Time at;
    std::uint64_t ordinal = 0;
    scheduler::Slot slot = scheduler::kNoSlot;
    auto operator<=>(const Cancellation&) const = default;
  };

  void drain(Time now);
  bool end_passes(Time now);
  bool cancel_due(Time now, bool driven);
  bool release_arrivals(Time now, bool driven);
  bool drive_workers(Time now);

  void retire(std::uint32_t worker, Time now);
  void tell_oracle(std::uint32_t worker);
  void record_ended(std::uint32_t worker, Time now);
  void record_passes(std::uint32_t worker);
  void record_events(std::uint32_t worker, std::uint32_t rank, Time at,
                     std::vector<scheduler::KvEvent>& events);
  void make_ready(std::uint32_t worker);
  void rest(std::uint32_t worker);
  void look_again(std::uint32_t worker);
  bool is_live(const Cancellation& due) const;
  Time next_cancellation();
  RequestRecord record_of(const scheduler::Request& request, Time now);
  void stop_at_cap();
  std::optional<Problem> trouble() const;
  Problem time_ran_out() const;
  const engine::Rank& rank_of(const scheduler::Request& request) const;
  Problem pass_is_oversized(const scheduler::Request& request, Time now) const;
  Problem nothing_can_happen() const;
  RunTotals totals() const;

  const Deployment& deployment_;
  const workload::Workload& workload_;
  const Options& options_;
  RecordSink& sink_;
  bool stepping_;

  scheduler::RequestSlab requests_;
  engine::GapLedger gaps_;
  std::optional<engine::GapLedger> step_gaps_;  // with speculation
  std::optional<Oracle> oracle_;                // with EvictionPolicy::Belady
  std::deque<engine::Worker> workers_;
  kernel::Wakes wakes_;
  router::Router router_;
  Driver driver_;

  // Of clients that go away, the next one first: a heap. Those of requests that have ended since
  // are dropped when their turn comes.
  std::vector<Cancellation> cancellations_;
  // Idle workers that may start a pass at this instant: a heap, lowest id first.
  std::vector<std::uint32_t> ready_;
  std::vector<bool> is_ready_;
  Time now_;
  bool capped_ = false;
  bool past_end_of_time_ = false;     // something is due at kNever or later
  std::optional<Problem> oversized_;  // a request ended with Reason::OversizedPass
  RunTotals counts_;
  std::uint64_t ended_ = 0;
  std::vector<Admission> history_;     // scratch
  std::vector<std::uint64_t> events_;  // next KV event number of each rank of each worker
};

}  // namespace servecast::replay
