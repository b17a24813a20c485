// SPDX-License-Identifier: Apache-2.0
#include "engine/worker.hpp"

#include <algorithm>
#include <span>

namespace servecast::engine {

using scheduler::Admit;
using scheduler::Request;
using scheduler::Slot;

namespace {

// Some rule keeps prompts waiting in some passes of the worker, so that its ranks must know of
// each other's.
bool holds_prompts_back(const scheduler::RankConfig& config, std::uint32_t ranks) {
  if (config.sglang) return config.sglang->prefill_decode_interval > 0;
  return ranks > 1 && config.prefill_schedule_interval > 1;
}

}  // namespace

Worker::Worker(const scheduler::RankConfig& config, const Options& options,
               const perf::StepTimer& timer, scheduler::RequestSlab& requests, GapLedger& gaps,
               GapLedger* step_gaps)
    : timer_(timer),
      requests_(requests),
      gaps_(gaps),
      step_gaps_(step_gaps),
      capture_(options.scheduler.trace || options.scheduler.events),
      throttles_(holds_prompts_back(config, options.ranks)),
      prepares_(config.sglang && !config.sglang->frontend.empty()),
      run_passes_max_(options.run_passes_max) {
  SERVECAST_CHECK(options.ranks > 0);
  scheduler::RankConfig rank = config;
  if (!throttles_) rank.prefill_schedule_interval = 1;  // a lone rank holds up nobody else
  if (rank.sglang) rank.sglang = scheduler::of_one_rank(*rank.sglang, options.ranks);
  scheduler::RankOptions scheduler = options.scheduler;
  ranks_.reserve(options.ranks);
  for (; ranks_.size() < options.ranks; ++scheduler.rank)
    ranks_.emplace_back(rank, scheduler, requests);
}

Rank& Worker::rank_of(Slot slot) {
  const std::uint32_t rank = requests_[slot].rank;
  SERVECAST_CHECK(rank < ranks_.size());
  return ranks_[rank];
}

bool Worker::has_work() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.scheduler().has_work(); });
}

void Worker::submit(Slot slot, Instant now) {
  Rank& rank = rank_of(slot);
  // Passes that started before it came did not find it waiting.
  if (throttles_ && rank.scheduler().waiting() == 0) begin_spanning(now);
  const bool testable = rank.scheduler().submit(slot, now.time);
  if (!testable || next_ == ends_.size()) return;
  retire(now.time);
  if (next_ == ends_.size()) return;
  const bool begun = next_start() < now.time || now.driven;
  last_completes_ = last_completes_ && begun && next_ + 1 == ends_.size();
  ends_.resize(next_ + (begun ? 1 : 0));
}

bool Worker::drive(Time now) {
  SERVECAST_CHECK(idle());
  if (prepares_) process_internal(now);
  if (throttles_) note_idle_group();
  if (!choose_ranks()) return false;
  if (plan(now)) return true;
  begin(now, Admit::Yes);
  if (pass_end_ > now || made_progress()) return true;
  in_flight_ = false;  // a pass without effect is no pass (engine-vllm.md 16.3)
  return false;
}

void Worker::process_internal(Time now) {
  for (Rank& rank : ranks_) rank.scheduler().process_internal(now);
}

std::optional<Time> Worker::next_internal_deadline() const {
  std::optional<Time> next;
  if (!prepares_ || !idle()) return next;
  for (const Rank& rank : ranks_) {
    const std::optional<Time> due = rank.scheduler().next_internal_deadline();
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

// Whether some rank has work. Who takes part is settled until the next call.
bool Worker::choose_ranks() {
  bool any = false;
  for (Rank& rank : ranks_) any |= rank.join();
  return any;
}

bool Worker::made_progress() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
    return rank.takes_part() && rank.scheduler().made_progress();
  });
}

// A run lasts while every rank stays quiet. It ends with the first pass that ends requests, and
// before a pass of no duration.
bool Worker::plan(Time now) {
  enter_wave(0);
  std::uint32_t passes = run_passes_max_;
  bool completes = false;
  for (const Rank& rank : ranks_) {
    if (!rank.takes_part()) continue;
    const scheduler::Quiet quiet = rank.scheduler().quiet(passes);
    if (quiet.passes == 0) return false;
    const std::uint32_t length = quiet.passes + (quiet.then_completes ? 1 : 0);
    completes = quiet.then_completes || (completes && length == passes);
    passes = length;
  }
  durations_.resize(passes);
  time_run();
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
  last_completes_ = completes && ends_.size() == passes;
  return true;
}

// Fills durations_: of each pass that of its slowest rank.
void Worker::time_run() {
  std::uint64_t group_tokens = 0;
  for (const Rank& rank : ranks_) {
    if (rank.takes_part()) group_tokens += rank.scheduler().cohort_size();
  }
  const scheduler::RankScheduler* before = nullptr;
  for (const Rank& rank : ranks_) {
    if (!rank.takes_part()) continue;
    const scheduler::RankScheduler& scheduler = rank.scheduler();
    const std::uint32_t size = scheduler.cohort_size();
    const std::uint64_t context = scheduler.cohort_context();
    // Equal batches take equally long, and evenly spread load makes many of them.
    if (before != nullptr && size == before->cohort_size() && context == before->cohort_context())
      continue;
    std::vector<Duration>& out = before == nullptr ? durations_ : others_;
    out.resize(durations_.size());
    timer_.decode_run({.requests = size,
                       .context = context,
                       .capacity_tokens = scheduler.capacity_tokens(),
                       .group_tokens = group_tokens},
                      out);
    for (std::size_t i = 0; before != nullptr && i < out.size(); ++i)
      durations_[i] = std::max(durations_[i], out[i]);
    before = &scheduler;
  }
}

// Tells every rank which pass of the wave comes next, and counts the `passes` that begin with it.
void Worker::enter_wave(std::uint64_t passes) {
  if (!throttles_) return;
  for (Rank& rank : ranks_) rank.scheduler().set_wave_step(wave_step_);
  wave_step_ += passes;
}

void Worker::leave_rounds(bool prefilled, std::uint64_t passes) {
  if (!throttles_) return;
  for (Rank& rank : ranks_) rank.scheduler().end_rounds(prefilled, passes);
}

void Worker::note_idle_group() {
  const bool runs = std::any_of(ranks_.begin(), ranks_.end(),
                                [](const Rank& rank) { return rank.scheduler().running() > 0; });
  for (Rank& rank : ranks_) {
    if (!runs) rank.scheduler().group_is_idle();
  }
}

void Worker::end_wave_if_drained() {
  if (throttles_ && !has_work()) wave_step_ = 0;
}

void Worker::begin(Time start, Admit admit) {
  enter_wave(1);
  pass_start_ = pass_end_ = start;
  // Tokens of all ranks meet in the experts, so that the last composed decides what the first
  // costs.
  std::uint64_t group_tokens = 0;
  for (Rank& rank : ranks_) {
    if (rank.takes_part()) group_tokens += rank.compose(start, admit);
  }
  for (Rank& rank : ranks_) {
    if (rank.takes_part()) pass_end_ = std::max(pass_end_, rank.begin(start, group_tokens, timer_));
  }
  bool prefilled = false;
  for (Rank& rank : ranks_) {
    if (!rank.takes_part()) continue;
    prefilled |= rank.prefills();
    rank.complete(pass_end_);
  }
  leave_rounds(prefilled, 1);
  in_flight_ = true;
  if (!capture_) return;
  captured_.clear();
  for (const Rank& rank : ranks_) captured_.push_back(rank.capture(pass_start_, pass_end_));
}

void Worker::retire_pass() {
  std::uint64_t tokens = 0;
  for (Rank& rank : ranks_) {
    if (rank.takes_part()) tokens += rank.retire(pass_end_, gaps_, step_gaps_, ended_);
  }
  if (tokens > 0) gaps_.add((pass_end_ - last_end_).ns, static_cast<std::int64_t>(tokens));
  if (capture_) {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      FinishedPass& captured = finished_.emplace_back(std::move(captured_[r]));
      captured.pass = passes_;
      captured.rank = r;
      if (!ranks_[r].takes_part()) continue;
      captured.trace = std::move(ranks_[r].outcome().trace);
      captured.events = std::move(ranks_[r].outcome().events);
    }
  }
  ++passes_;
  last_end_ = pass_end_;
  in_flight_ = false;
  end_wave_if_drained();
}

// Commits the next `passes` passes of the run, all of them quiet.
void Worker::commit(std::size_t passes) {
  enter_wave(passes);
  leave_rounds(false, passes);
  const std::span<const Time> ends(ends_.data() + next_, passes);
  std::int64_t members = 0;
  for (const Rank& rank : ranks_) {
    if (rank.takes_part()) members += rank.scheduler().cohort_size();
  }
  // Everyone's gaps are counted beside the account of the first rank: most workers have no other,
  // and the two do not wait for each other.
  bool counted = false;
  for (Rank& rank : ranks_) {
    if (!rank.takes_part()) continue;
    if (counted) {
      rank.advance(ends, [](Time) {});
      continue;
    }
    counted = true;
    rank.advance(ends, [&](Time end) {
      gaps_.add((end - last_end_).ns, members);
      last_end_ = end;
    });
  }
  passes_ += passes;
  next_ += passes;
}

void Worker::retire(Time now) {
  if (in_flight_) {
    if (pass_end_ <= now) retire_pass();
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
  SERVECAST_CHECK(pass_end_ == end);
  retire_pass();
}

// Somebody looks at the worker: the pass of the run that spans `now` becomes the pass in flight,
// the passes after it are dropped.
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
  Rank& rank = rank_of(slot);
  Request& request = requests_[slot];
  const bool failed = request.ending == scheduler::Ending::Failed;
  if (request.state == scheduler::State::Ended) {  // with the pass in flight, so nobody knows yet
    std::erase(rank.outcome().ended, slot);
    request.ending = scheduler::Ending::Canceled;
  } else {
    rank.scheduler().cancel(slot, now.time);
  }
  std::vector<Time> times = rank.scheduler().token_times(slot, rank.scheduler().passes());
  std::erase_if(rank.outcome().trace.outputs, [&](const scheduler::PassTrace::Output& output) {
    return output.request == request.ordinal;
  });
  const bool unseen = in_flight_ && !times.empty() && times.back() == pass_end_;
  std::vector<std::int64_t>& later = rank.outcome().taken_back;  // when the pass in flight ends
  const bool counts = !rank.scheduler().keeps_token_times();
  for (std::size_t i = 1; counts && i < times.size(); ++i) {
    const std::int64_t gap = (times[i] - times[i - 1]).ns;
    // The pass in flight adds its gaps when it ends; they must be there before they are taken.
    if (unseen && i + 1 == times.size()) {
      later.push_back(gap);
      continue;
    }
    gaps_.add(gap, -1);
    if (failed) later.erase(std::ranges::find(later, gap));  // it was to be taken back then
  }
  while (unseen && !times.empty() && times.back() == pass_end_) times.pop_back();  // a burst
  request.generated = static_cast<std::uint32_t>(times.size());
  request.first_token = times.empty() ? kNever : times[0];
  request.second_token = times.size() < 2 ? kNever : times[1];
  request.last_token = times.empty() ? kNever : times.back();
  ended_.push_back(slot);
  if (!in_flight_) {
    rank.scheduler().end_pass(rank.outcome());
    std::vector<scheduler::KvEvent>& events = rank.outcome().events;
    if (!events.empty()) idle_events_.push_back({request.rank, now.time, std::move(events)});
    events.clear();
  }
  end_wave_if_drained();
}

void Worker::take_back_live() {
  std::vector<std::int64_t> gaps;
  for (Rank& rank : ranks_) {
    const scheduler::RankScheduler& scheduler = rank.scheduler();
    if (scheduler.keeps_token_times()) continue;
    for (const Slot slot : scheduler.live()) scheduler.gaps_of(slot, rank.passes(), gaps);
    if (!in_flight_ || !rank.takes_part()) continue;
    for (const Slot slot : rank.outcome().ended) scheduler.gaps_of(slot, rank.passes(), gaps);
  }
  for (const std::int64_t gap : gaps) gaps_.add(gap, -1);
}

}  // namespace servecast::engine
