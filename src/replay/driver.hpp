// SPDX-License-Identifier: Apache-2.0
// Releases the requests of a workload in time: open loop by their arrival times, closed loop by
// free places, later turns of a session after the turn before (replay.md 8, 13).
//
// Invariants: (1) at most one turn of a session is in flight; (2) in a closed loop no more sessions
// are open than the concurrency, and a session keeps its place through its think times.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.hpp"
#include "scheduler/request.hpp"
#include "workload/workload.hpp"

namespace servecast::replay {

class Driver {
 public:
  // `spell`: requests carry real tokens (reference mode).
  Driver(const workload::Workload& workload, bool spell);

  // When the next request becomes ready by itself; kNever when only an ending can make one ready.
  Time next_ready() const;
  // Fills `request` with the next request that is ready at `now`; false when there is none. Times
  // later than `now` stay. Requests come in the order of (ready time, session, turn).
  bool release(Time now, scheduler::Request& request);
  // When the client of the request released last goes away; kNever if it waits for its answer.
  Time cancel_at() const { return cancel_at_; }
  // The request ended at `now`. False when that makes a turn ready past the end of simulated time.
  // requires: it was released and has not ended before.
  bool ended(const scheduler::Request& request, Time now);

  // Nothing is in flight and nothing is to come.
  bool drained() const { return in_flight_ == 0 && ready_.empty() && !has_session_; }
  std::uint64_t in_flight() const { return in_flight_; }

 private:
  struct Open {  // a session with turns to come or in flight
    workload::Session session;
    std::uint32_t next_turn = 0;
    std::uint32_t history_tokens = 0;  // of all turns before, prompts and outputs
    std::uint64_t plan_offset = 0;
    std::vector<std::uint32_t> history;  // the tokens themselves, when spelled
  };
  struct Ready {
    Time time;
    std::uint32_t session;
    std::uint32_t open;  // index into open_
  };
  struct Later {
    bool operator()(const Ready& a, const Ready& b) const {
      return a.time != b.time ? a.time > b.time : a.session > b.session;
    }
  };

  void fetch();
  const workload::Session& upcoming() const { return open_[upcoming_].session; }
  void open_session(Time ready);
  void fill(Open& open, Time ready, scheduler::Request& request);
  void end_session(std::uint32_t open, Time now);

  const workload::Workload& workload_;
  bool spell_;
  bool closed_;
  workload::Workload::Cursor cursor_;
  std::vector<Open> open_;
  std::uint32_t upcoming_ = 0;  // where the next session stands, not opened yet
  bool has_session_ = false;
  std::vector<std::uint32_t> free_open_;
  std::uint32_t open_count_ = 0;
  std::vector<Ready> ready_;  // heap by (time, session)
  std::uint64_t in_flight_ = 0;
  Time cancel_at_ = kNever;
};

}  // namespace servecast::replay
