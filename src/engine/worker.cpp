// SPDX-License-Identifier: Apache-2.0
#include "engine/worker.hpp"

#include <algorithm>
#include <span>

#include "base/hash.hpp"

namespace servecast::engine {

using scheduler::Admit;
using scheduler::Request;
using scheduler::Slot;

Worker::Worker(const scheduler::RankConfig& config, const Options& options,
               const perf::StepTimer& timer, scheduler::RequestSlab& requests, GapLedger& gaps,
               GapLedger* step_gaps)
    : scheduler_(config, options.scheduler, requests),
      timer_(timer),
      requests_(requests),
      gaps_(gaps),
      step_gaps_(step_gaps),
      capture_(options.scheduler.trace || options.scheduler.events),
      run_passes_max_(options.run_passes_max) {}

void Worker::note_pass(Time end, std::uint32_t decode_requests, std::uint64_t decode_context) {
  ++passes_;
  const auto when = static_cast<std::uint64_t>(end.ns);
  fingerprint_ =
      fold(fingerprint_, when ^ (std::uint64_t{decode_requests} << 44) ^ (decode_context << 20));
}

// What a pass of steady decode does not have: prompt tokens and endings.
void Worker::note_changes() {
  const perf::StepShape& shape = pass_.shape;
  if (shape.prefill_requests > 0) {
    fingerprint_ = fold(fingerprint_, shape.prefill_isl);
    fingerprint_ =
        fold(fingerprint_, shape.prefill_prefix ^ (std::uint64_t{shape.prefill_requests} << 44));
  }
  for (const Slot slot : pass_.outcome.ended) {
    const Request& request = requests_[slot];
    fingerprint_ = fold(fingerprint_, request.ordinal ^ (std::uint64_t(request.ending) << 60) ^
                                          (std::uint64_t(request.reason) << 56));
    fingerprint_ =
        fold(fingerprint_, (std::uint64_t{request.generated} << 32) | request.reused_max);
  }
}

void Worker::submit(Slot slot, Instant now) {
  const bool testable = scheduler_.submit(slot);
  if (!testable || next_ == ends_.size()) return;
  retire(now.time);
  if (next_ == ends_.size()) return;
  const bool begun = next_start() < now.time || now.driven;
  last_completes_ = last_completes_ && begun && next_ + 1 == ends_.size();
  ends_.resize(next_ + (begun ? 1 : 0));
}

bool Worker::drive(Time now) {
  SERVECAST_CHECK(idle());
  if (!scheduler_.has_work()) return false;
  if (plan(now)) return true;
  begin(now, Admit::Yes);
  if (pass_.end > now || scheduler_.made_progress()) return true;
  in_flight_ = false;  // a pass without effect is no pass (engine-vllm.md 16.3)
  return false;
}

// A run ends with the first pass that ends requests, and before a pass of no duration.
bool Worker::plan(Time now) {
  const scheduler::VllmScheduler::Quiet quiet = scheduler_.quiet(run_passes_max_);
  if (quiet.passes == 0) return false;
  const std::uint32_t passes = quiet.passes + (quiet.then_completes ? 1 : 0);
  durations_.resize(passes);
  timer_.decode_run(scheduler_.cohort_size(), scheduler_.cohort_context(),
                    scheduler_.pool().capacity() * std::uint64_t{scheduler_.block_tokens()},
                    durations_);
  ends_.clear();
  next_ = 0;
  Time end = now;
  for (const Duration duration : durations_) {
    if (duration.ns == 0) break;
    end = end + duration;
    if (end >= kNever) break;  // left to the pass that the loop then refuses
    ends_.push_back(end);
  }
  if (ends_.empty()) return false;
  run_start_ = now;
  last_completes_ = quiet.then_completes && ends_.size() == passes;
  return true;
}

void Worker::begin(Time start, Admit admit) {
  pass_.start = start;
  pass_.shape = scheduler_.schedule(start, admit);
  pass_.time = timer_.time(pass_.shape);
  pass_.end = start + pass_.time.prefill + pass_.time.decode;
  scheduler_.complete(pass_.end, pass_.outcome);
  in_flight_ = true;
  if (!capture_) return;
  // The rank as the pass left it; requests that arrive until it ends do not show.
  const scheduler::KvCounts kv = scheduler_.kv();
  captured_ = {.start = start,
               .end = pass_.end,
               .time = pass_.time,
               .shape = pass_.shape,
               .trace = {},
               .events = {},
               .blocks_active = kv.active,
               .blocks_inactive = kv.inactive,
               .blocks_free = kv.free,
               .running = scheduler_.running(),
               .waiting = scheduler_.waiting()};
}

void Worker::note_gaps(const Request& request) {
  const std::vector<Time>& times = request.token_times;
  for (std::size_t i = 1; i < times.size(); ++i) gaps_.add((times[i] - times[i - 1]).ns, 1);
  std::size_t first = 0;  // token of a step
  for (const std::uint32_t size : request.burst_sizes) {
    if (first > 0) step_gaps_->add((times[first] - times[first - 1]).ns, 1);
    first += size;
  }
}

void Worker::retire_pass() {
  const scheduler::Outcome& outcome = pass_.outcome;
  if (outcome.cohort_tokens > 0) gaps_.add((pass_.end - last_end_).ns, outcome.cohort_tokens);
  for (const std::int64_t gap : outcome.gaps_ns) gaps_.add(gap, 1);
  for (const std::int64_t gap : outcome.taken_back) gaps_.add(gap, -1);
  if (scheduler_.keeps_token_times()) {
    for (const Slot slot : outcome.ended) {
      if (requests_[slot].ending == scheduler::Ending::Completed) note_gaps(requests_[slot]);
    }
  }
  if (step_gaps_ != nullptr) {
    accepted_tokens_ += outcome.accepted_tokens;
    decode_forwards_ += outcome.decode_forwards;
  } else {
    accepted_tokens_ += pass_.shape.decode_requests;
    decode_forwards_ += pass_.shape.decode_requests;
  }
  ended_.insert(ended_.end(), outcome.ended.begin(), outcome.ended.end());
  if (capture_) {
    FinishedPass& captured = finished_.emplace_back();
    captured = std::move(captured_);
    captured.pass = passes_;
    captured.trace = std::move(pass_.outcome.trace);
    captured.events = std::move(pass_.outcome.events);
  }
  note_pass(pass_.end, pass_.shape.decode_requests, pass_.shape.decode_context);
  note_changes();
  last_end_ = pass_.end;
  in_flight_ = false;
}

// Commits the next `passes` passes of the run, all of them quiet.
void Worker::commit(std::size_t passes) {
  const std::span<const Time> ends(ends_.data() + next_, passes);
  const std::uint32_t size = scheduler_.cohort_size();
  std::uint64_t context = scheduler_.cohort_context();
  for (const Time end : ends) {
    gaps_.add((end - last_end_).ns, size);
    note_pass(end, size, context);
    accepted_tokens_ += size;
    decode_forwards_ += size;
    context += size;
    last_end_ = end;
  }
  scheduler_.advance(ends);
  next_ += passes;
}

void Worker::retire(Time now) {
  if (in_flight_) {
    if (pass_.end <= now) retire_pass();
    return;
  }
  const auto first = ends_.begin() + static_cast<std::ptrdiff_t>(next_);
  const auto past = std::upper_bound(first, ends_.end(), now);
  auto passes = static_cast<std::size_t>(past - first);
  if (passes == 0) return;
  const bool completes = last_completes_ && past == ends_.end();
  if (completes) --passes;
  if (passes > 0) commit(passes);
  if (!completes) return;
  const Time start = next_start(), end = ends_.back();
  next_ = ends_.size();
  begin(start, Admit::No);
  SERVECAST_CHECK(pass_.end == end);
  retire_pass();
}

// Somebody looks at the rank: the pass of the run that spans `now` becomes the pass in flight, the
// passes after it are dropped.
void Worker::begin_spanning(Instant now) {
  retire(now.time);
  if (in_flight_ || next_ == ends_.size()) return;
  const Time start = next_start();
  next_ = ends_.size();
  if (start < now.time || now.driven) begin(start, Admit::No);
}

void Worker::settle(Time cap) {
  begin_spanning({cap, true});
}

void Worker::cancel(Slot slot, Instant now) {
  begin_spanning(now);
  Request& request = requests_[slot];
  if (request.state == scheduler::State::Ended) {  // with the pass in flight, so nobody knows yet
    std::erase(pass_.outcome.ended, slot);
    request.ending = scheduler::Ending::Canceled;
  } else {
    scheduler_.cancel(slot);
  }
  std::vector<Time> times = scheduler_.token_times(slot, scheduler_.passes());
  for (std::size_t i = 1; !scheduler_.keeps_token_times() && i < times.size(); ++i) {
    const std::int64_t gap = (times[i] - times[i - 1]).ns;
    // The pass in flight adds its gaps when it ends; they must be there before they are taken.
    if (in_flight_) {
      pass_.outcome.taken_back.push_back(gap);
    } else {
      gaps_.add(gap, -1);
    }
  }
  if (in_flight_ && !times.empty() && times.back() == pass_.end) times.pop_back();
  request.generated = static_cast<std::uint32_t>(times.size());
  request.first_token = times.empty() ? kNever : times[0];
  request.second_token = times.size() < 2 ? kNever : times[1];
  request.last_token = times.empty() ? kNever : times.back();
  ended_.push_back(slot);
}

void Worker::take_back_live() {
  if (scheduler_.keeps_token_times()) return;
  std::vector<std::int64_t> gaps;
  scheduler_.for_each_live([&](Slot slot) { scheduler_.gaps_of(slot, passes_, gaps); });
  if (in_flight_) {
    for (const Slot slot : pass_.outcome.ended) scheduler_.gaps_of(slot, passes_, gaps);
  }
  for (const std::int64_t gap : gaps) gaps_.add(gap, -1);
}

}  // namespace servecast::engine
