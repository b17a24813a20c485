// SPDX-License-Identifier: Apache-2.0
#include "engine/worker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "engine/a_worker.hpp"

namespace servecast::engine {
namespace {

using scheduler::Ending;
using scheduler::Slot;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Worker, IsIdleAndNeverWakesWithoutWork) {
  Bench bench({});
  EXPECT_TRUE(bench.worker.idle());
  EXPECT_FALSE(bench.worker.drive({0}));
  EXPECT_EQ(bench.worker.wake(), kNever);
  EXPECT_EQ(bench.worker.passes(), 0U);
}

// engine-sglang.md S14.3-5.
TEST(Worker, AsksToBeLookedAtWhenItsFrontendEndsButNotDuringAPass) {
  Machine machine;
  machine.rank.sglang.emplace();
  machine.rank.sglang->host_loop = true;
  machine.rank.sglang->frontend = {{.workers = 1, .service_ms = 1e-5}};
  Bench bench(machine);
  EXPECT_EQ(bench.worker.next_internal_deadline(), std::nullopt);
  bench.submit(4, 2, {{0}, false});
  EXPECT_TRUE(bench.worker.idle());
  EXPECT_EQ(bench.worker.next_internal_deadline(), Time{10});
  EXPECT_FALSE(bench.worker.drive({9})) << "a request in preparation is no work";
  EXPECT_TRUE(bench.worker.drive({10}));
  EXPECT_EQ(bench.worker.wake(), Time{10}) << "an iteration that has nothing to observe";
  bench.worker.retire({10});
  const Slot late = bench.submit(4, 1, {{10}, false});
  EXPECT_EQ(bench.worker.next_internal_deadline(), Time{20});
  EXPECT_TRUE(bench.worker.drive({10}));
  EXPECT_EQ(bench.worker.wake(), Time{20});
  EXPECT_EQ(bench.worker.next_internal_deadline(), std::nullopt);
  bench.worker.cancel(late, {{15}, true});
  EXPECT_THAT(bench.worker.ended(), ElementsAre(late));
  EXPECT_EQ(bench[late].ending, Ending::Canceled);
  bench.worker.retire({20});
  EXPECT_EQ(bench.worker.next_internal_deadline(), std::nullopt) << "it was canceled";
}

TEST(Worker, APassShowsNothingBeforeItEnds) {
  Bench bench({});
  const Slot slot = bench.submit(4, 1, {{0}, false});
  ASSERT_TRUE(bench.worker.drive({0}));
  bench.worker.retire({9});
  EXPECT_THAT(bench.worker.ended(), IsEmpty());
  EXPECT_EQ(bench.worker.passes(), 0U);
  EXPECT_FALSE(bench.worker.idle());
  bench.worker.retire({10});
  EXPECT_THAT(bench.worker.ended(), ElementsAre(slot));
  EXPECT_EQ(bench.worker.passes(), 1U);
  EXPECT_TRUE(bench.worker.idle());
}

TEST(Worker, ARunEndsWithThePassThatEndsARequest) {
  Bench bench({});
  const Slot slot = start_run(bench, 5);
  EXPECT_EQ(bench.worker.wake(), Time{50});
  bench.worker.retire({50});
  EXPECT_THAT(bench.worker.ended(), ElementsAre(slot));
  EXPECT_EQ(bench[slot].last_token, Time{50});
  EXPECT_EQ(bench[slot].second_token, Time{20});
  EXPECT_EQ(bench[slot].generated, 5U);
  EXPECT_EQ(bench.worker.passes(), 5U);
  EXPECT_EQ(bench.gaps.sums().count, 4U);
  EXPECT_EQ(bench.active(), 0U);
}

TEST(Worker, ARunIsNoLongerThanItsLimit) {
  Machine machine;
  machine.run_passes_max = 2;
  Bench bench(machine);
  start_run(bench, 5);
  EXPECT_EQ(bench.worker.wake(), Time{30});
}

TEST(Worker, TheReferenceModeTakesOnePassAtATime) {
  Machine machine;
  machine.stepping = true;
  Bench bench(machine);
  start_run(bench, 5);
  EXPECT_EQ(bench.worker.wake(), Time{20});
}

TEST(Worker, CommitsWhatHasEndedAndKeepsTheRest) {
  Bench bench({});
  start_run(bench, 5);
  bench.worker.retire({35});
  EXPECT_EQ(bench.worker.passes(), 3U);
  EXPECT_EQ(bench.worker.wake(), Time{50});
  EXPECT_EQ(bench.gaps.sums().count, 2U);
}

// What a run keeps when a request comes (seam-notes W1).

TEST(Worker, ARequestAtABoundaryBeforeTheDrivePhaseTakesPartInTheNextPass) {
  Bench bench({});
  start_run(bench, 9);
  const Slot late = bench.submit(1, 1, {{30}, false});
  EXPECT_TRUE(bench.worker.idle()) << "the pass that would start now has not started";
  EXPECT_EQ(bench.worker.passes(), 3U);
  ASSERT_TRUE(bench.worker.drive({30}));
  EXPECT_EQ(bench[late].first_admit, Time{30});
}

TEST(Worker, ARequestAtABoundaryAfterTheDrivePhaseWaitsForThePassThatHasStarted) {
  Bench bench({});
  start_run(bench, 9);
  const Slot late = bench.submit(1, 1, {{30}, true});
  EXPECT_FALSE(bench.worker.idle());
  EXPECT_EQ(bench.worker.wake(), Time{40});
  bench.worker.retire({40});
  EXPECT_EQ(bench.worker.passes(), 4U);
  ASSERT_TRUE(bench.worker.drive({40}));
  EXPECT_EQ(bench[late].first_admit, Time{40});
}

TEST(Worker, ARequestInTheMiddleOfAPassKeepsThatPassAndDropsTheRest) {
  for (const bool driven : {false, true}) {
    Bench bench({});
    start_run(bench, 9);
    const Slot late = bench.submit(1, 1, {{35}, driven});
    EXPECT_EQ(bench.worker.wake(), Time{40});
    bench.worker.retire({40});
    ASSERT_TRUE(bench.worker.drive({40}));
    EXPECT_EQ(bench[late].first_admit, Time{40});
  }
}

TEST(Worker, ARequestAtTheStartOfARunWaitsForItsFirstPass) {
  Bench bench({});
  start_run(bench, 9);
  const Slot late = bench.submit(1, 1, {{10}, true});
  EXPECT_EQ(bench.worker.wake(), Time{20});
  bench.worker.retire({20});
  ASSERT_TRUE(bench.worker.drive({20}));
  EXPECT_EQ(bench[late].first_admit, Time{20});
}

TEST(Worker, TheLastPassOfARunStillEndsItsRequestWhenOnlyThatPassIsKept) {
  Bench bench({});
  const Slot slot = start_run(bench, 5);
  bench.submit(1, 1, {{45}, false});
  EXPECT_EQ(bench.worker.wake(), Time{50});
  bench.worker.retire({50});
  EXPECT_THAT(bench.worker.ended(), ElementsAre(slot));
}

TEST(Worker, AnEarlierPassThatIsKeptEndsNobody) {
  Bench bench({});
  const Slot slot = start_run(bench, 5);
  bench.submit(4, 1, {{35}, false});
  bench.worker.retire({40});
  EXPECT_THAT(bench.worker.ended(), IsEmpty());
  ASSERT_TRUE(bench.worker.drive({40}));
  bench.worker.retire({60});  // 10 ns of prefill and 10 of decode
  EXPECT_EQ(bench[slot].last_token, Time{60});
}

// seam-notes W2: a request that nobody can treat yet drops nothing.
TEST(Worker, ARequestBehindABlockedHeadDropsNothing) {
  Machine machine;
  machine.rank.blocks = 8;
  Bench bench(machine);
  start_run(bench, 20);
  bench.submit(28, 1, {{15}, false});  // needs 7 blocks, 6 are free
  bench.worker.retire({20});
  ASSERT_TRUE(bench.worker.drive({20}));  // tests the head
  bench.worker.retire({30});
  ASSERT_TRUE(bench.worker.drive({30}));
  const Time wake = bench.worker.wake();
  EXPECT_EQ(wake, Time{200}) << "a waiting queue does not stop a run";
  const Slot behind = bench.submit(1, 1, {{35}, false});
  EXPECT_EQ(bench.worker.wake(), wake);
  EXPECT_EQ(bench[behind].state, scheduler::State::Waiting);
}

TEST(Worker, ARequestWithoutASeatDropsNothing) {
  Machine machine;
  machine.rank.max_sequences = 1;
  Bench bench(machine);
  start_run(bench, 20);
  const Time wake = bench.worker.wake();
  bench.submit(1, 1, {{30}, false});
  EXPECT_EQ(bench.worker.wake(), wake);
}

// Without chunked prefill an eviction by the run can turn the head's wait into a rejection.
TEST(Worker, NothingIsPlannedOverAHeadThatARunCouldReject) {
  Machine machine;
  machine.rank.blocks = 8;
  machine.rank.chunked_prefill = false;
  Bench bench(machine);
  start_run(bench, 20);
  bench.submit(28, 1, {{15}, false});
  for (const std::int64_t now : {20, 30, 40}) {
    bench.worker.retire({now});
    ASSERT_TRUE(bench.worker.drive({now}));
    EXPECT_EQ(bench.worker.wake(), Time{now + 10});
  }
}

// Passes of no duration.

TEST(Worker, APassOfNoDurationEndsAtOnce) {
  Machine machine;
  machine.timer.prefill_ns = machine.timer.decode_ns = 0;
  Bench bench(machine);
  const Slot slot = bench.submit(4, 3, {{7}, false});
  int passes = 0;
  while (bench.worker.idle() && bench.worker.drive({7})) {
    EXPECT_EQ(bench.worker.wake(), Time{7});
    bench.worker.retire({7});
    ++passes;
  }
  EXPECT_EQ(passes, 3);
  EXPECT_THAT(bench.worker.ended(), ElementsAre(slot));
  EXPECT_EQ(bench[slot].last_token, Time{7});
  EXPECT_THAT(bench.gaps.table(), ElementsAre(testing::Pair(0, 2)));
}

TEST(Worker, ARunEndsBeforeAPassOfNoDuration) {
  Machine machine;
  machine.timer.every = 8;
  Bench bench(machine);
  start_run(bench, 9);  // contexts 5, 6, 7, then 8
  EXPECT_EQ(bench.worker.wake(), Time{40});
  bench.worker.retire({40});
  ASSERT_TRUE(bench.worker.drive({40}));
  EXPECT_EQ(bench.worker.wake(), Time{40});
}

TEST(Worker, APassWithoutDurationAndEffectIsNoPass) {  // engine-vllm.md 16.3
  Machine machine;
  machine.rank.max_batched_tokens = 0;
  Bench bench(machine);
  bench.submit(1, 1, {{0}, false});
  EXPECT_FALSE(bench.worker.drive({0}));
  EXPECT_TRUE(bench.worker.idle());
  EXPECT_TRUE(bench.worker.has_work());
  EXPECT_EQ(bench.worker.passes(), 0U);
}

// A rejection is an effect, though it takes no time.
TEST(Worker, APassThatOnlyRejectsIsAPass) {
  Machine machine;
  machine.rank.blocks = 1;
  Bench bench(machine);
  const Slot slot = bench.submit(5, 1, {{3}, false});
  ASSERT_TRUE(bench.worker.drive({3}));
  EXPECT_EQ(bench.worker.wake(), Time{3});
  bench.worker.retire({3});
  EXPECT_THAT(bench.worker.ended(), ElementsAre(slot));
  EXPECT_EQ(bench[slot].ending, Ending::Rejected);
}

TEST(Worker, TellsEachPassThatEndedWhenCaptured) {
  Machine machine;
  machine.stepping = machine.trace = true;
  Bench bench(machine);
  bench.submit(6, 2, {{5}, false});
  ASSERT_TRUE(bench.worker.drive({5}));
  bench.submit(1, 1, {{6}, false});
  EXPECT_THAT(bench.worker.finished(), IsEmpty());
  bench.worker.retire({15});
  ASSERT_EQ(bench.worker.finished().size(), 1U);
  const FinishedPass& pass = bench.worker.finished()[0];
  EXPECT_EQ(pass.pass, 0U);
  EXPECT_EQ(pass.start, Time{5});
  EXPECT_EQ(pass.end, Time{15});
  EXPECT_EQ(pass.time.prefill, Duration{10});
  EXPECT_EQ(pass.time.decode, Duration{0});
  EXPECT_EQ(pass.shape.prefill_isl, 6U);
  ASSERT_EQ(pass.trace.scheduled.size(), 1U);
  EXPECT_EQ(pass.trace.scheduled[0].to, 6U);
  EXPECT_EQ(pass.blocks_active, 2U);
  EXPECT_EQ(pass.blocks_free, 98U);
  EXPECT_EQ(pass.running, 1U);
  EXPECT_EQ(pass.waiting, 0U) << "who came during the pass does not show";
}

// The time cap, and whole scripts in both modes.

// Three requests; one is canceled at `when`; both modes must show the same of it and of the others.
struct CancelOutcome {
  std::vector<Slot> ended;
  std::vector<std::uint32_t> generated;
  std::vector<std::int64_t> first, last;
  std::vector<std::pair<std::int64_t, std::uint64_t>> gaps;
  std::uint32_t active_after = 0, active_end = 0;
  friend bool operator==(const CancelOutcome&, const CancelOutcome&) = default;
};
CancelOutcome cancel_at(bool stepping, Time when, Slot victim) {
  Machine machine;
  machine.stepping = stepping;
  Bench bench(machine);
  for (const std::uint32_t output : {9U, 12U, 5U}) bench.submit(4, output, {{0}, false});
  bool canceled = false;
  CancelOutcome outcome;
  Time now{0};
  for (;;) {
    if (bench.worker.idle() && !bench.worker.drive(now)) break;
    now = bench.worker.wake();
    if (!canceled && now > when) {
      bench.worker.cancel(victim, {when, true});
      outcome.active_after = bench.active();
      canceled = true;
      now = when;
      continue;
    }
    bench.worker.retire(now);
  }
  EXPECT_TRUE(canceled);
  EXPECT_EQ(bench[victim].ending, scheduler::Ending::Canceled);
  outcome.ended = bench.worker.ended();
  for (const Slot slot : {0U, 1U, 2U}) {
    outcome.generated.push_back(bench[slot].generated);
    outcome.first.push_back(bench[slot].first_token.ns);
    outcome.last.push_back(bench[slot].last_token.ns);
  }
  outcome.gaps = bench.gaps.table();
  outcome.active_end = bench.active();
  return outcome;
}

TEST(Worker, ACanceledRequestShowsNothingLaterAndCountsInNoGapInBothModes) {
  for (std::int64_t when = 0; when < 18; ++when) {
    for (const Slot victim : {0U, 1U}) {
      const CancelOutcome plain = cancel_at(true, {when}, victim);
      const CancelOutcome fast = cancel_at(false, {when}, victim);
      EXPECT_TRUE(plain == fast) << "canceled at " << when << ", request " << victim;
      EXPECT_EQ(plain.active_end, 0U);
      EXPECT_LE(plain.last[victim] == kNever.ns ? 0 : plain.last[victim], when);
      std::uint64_t counted = 0;
      for (const auto& [gap, count] : fast.gaps) counted += count;
      EXPECT_EQ(counted, (victim == 0 ? 11U : 8U) + 4U);
    }
  }
}

struct Arrival {
  std::int64_t at;
  bool driven;  // released after the drive phase of its instant
  std::uint32_t prompt, output;
  std::uint32_t rank = 0;
  std::vector<std::uint32_t> ids = {};  // of three tokens each; none: content of its own
};

struct Cancellation {
  std::int64_t at;
  std::size_t arrival;  // whose client goes, if it has come and not ended
};

struct Script {
  std::vector<Arrival> arrivals;
  std::vector<Cancellation> cancellations = {};  // in the order of time
};

// One worker's share of a simulation, as the loop plays it, up to and including `cap`.
void play(Bench& bench, const Script& script, Time cap, std::vector<Slot>& ended) {
  Worker& worker = bench.worker;
  const std::vector<Arrival>& arrivals = script.arrivals;
  const auto take_ended = [&] {
    ended.insert(ended.end(), worker.ended().begin(), worker.ended().end());
    worker.ended().clear();
  };
  std::size_t next = 0, next_cancellation = 0;
  std::vector<Slot> slots;
  const auto release = [&](Time now, bool driven) {
    bool any = false;
    while (next < arrivals.size() && arrivals[next].at == now.ns &&
           arrivals[next].driven == driven) {
      const Arrival& arrival = arrivals[next++];
      const Slot slot = bench.add(arrival.prompt, arrival.output, arrival.rank);
      slots.push_back(slot);
      bench.share(slot, arrival.ids);
      bench.worker.submit(slot, {now, driven});
      any = true;
    }
    return any;
  };
  const auto drive = [&](Time now) {
    while (worker.idle() && worker.drive(now)) {
      if (worker.wake() > now) return;
      worker.retire(now);
      take_ended();
    }
  };
  const auto cancel = [&](Time now) {
    bool any = false;
    const auto& list = script.cancellations;
    for (; next_cancellation < list.size() && list[next_cancellation].at <= now.ns;
         ++next_cancellation) {
      const std::size_t arrival = list[next_cancellation].arrival;
      if (arrival >= slots.size() || std::ranges::find(ended, slots[arrival]) != ended.end())
        continue;
      worker.cancel(slots[arrival], {now, true});
      take_ended();
      any = true;
    }
    return any;
  };
  for (;;) {
    Time now = worker.wake();
    if (next < arrivals.size() && arrivals[next].at < now.ns) now = {arrivals[next].at};
    if (next_cancellation < script.cancellations.size() &&
        script.cancellations[next_cancellation].at < now.ns) {
      now = {script.cancellations[next_cancellation].at};
    }
    if (now == kNever || now > cap) return;
    if (worker.wake() == now) {
      worker.retire(now);
      take_ended();
    }
    release(now, false);
    drive(now);
    if (release(now, true)) drive(now);
    if (cancel(now)) drive(now);
  }
}

void expect_equal(const Rank& fast, const Rank& plain) {
  EXPECT_EQ(fast.passes(), plain.passes());
  EXPECT_EQ(fast.fingerprint(), plain.fingerprint());
  const scheduler::KvCounts a = fast.scheduler().kv(), b = plain.scheduler().kv();
  EXPECT_EQ(a.active, b.active);
  EXPECT_EQ(a.inactive, b.inactive);
  EXPECT_EQ(a.evictions, b.evictions);
  EXPECT_EQ(fast.scheduler().preemptions(), plain.scheduler().preemptions());
}

// Everything that both modes must agree on.
void expect_equal(Bench& fast, Bench& plain, const std::vector<Slot>& ended,
                  const std::vector<Slot>& ended_plain) {
  EXPECT_EQ(ended, ended_plain);
  EXPECT_EQ(fast.worker.passes(), plain.worker.passes());
  EXPECT_EQ(fast.gaps.table(), plain.gaps.table());
  for (std::size_t r = 0; r < fast.worker.ranks().size(); ++r) {
    SCOPED_TRACE("rank " + std::to_string(r));
    expect_equal(fast.worker.ranks()[r], plain.worker.ranks()[r]);
  }
  for (const Slot slot : ended) {
    EXPECT_EQ(fast[slot].ending, plain[slot].ending) << slot;
    EXPECT_EQ(fast[slot].generated, plain[slot].generated) << slot;
    EXPECT_EQ(fast[slot].first_admit, plain[slot].first_admit) << slot;
    EXPECT_EQ(fast[slot].first_token, plain[slot].first_token) << slot;
    EXPECT_EQ(fast[slot].second_token, plain[slot].second_token) << slot;
    EXPECT_EQ(fast[slot].last_token, plain[slot].last_token) << slot;
  }
}

Machine plain_of(Machine machine) {
  machine.stepping = true;
  return machine;
}

// seam-notes W2 and I8: blocks are what they were at the cap, with the pass in flight begun, and
// the gaps of what has not ended do not count.
TEST(Worker, AtACapTheRankIsAsThePassInFlightLeftIt) {
  const Script script{.arrivals = {{0, false, 6, 9}, {0, false, 3, 6}, {33, false, 9, 4}}};
  for (std::int64_t cap = 0; cap <= 160; ++cap) {
    Machine machine;
    machine.rank.blocks = 7;
    Bench fast(machine), plain(plain_of(machine));
    std::vector<Slot> ended, ended_plain;
    play(fast, script, {cap}, ended);
    play(plain, script, {cap}, ended_plain);
    for (Bench* bench : {&fast, &plain}) {
      bench->worker.settle({cap});
      EXPECT_THAT(bench->worker.ended(), IsEmpty())
          << "what ends later than the cap does not count";
      bench->worker.take_back_live();
    }
    expect_equal(fast, plain, ended, ended_plain);
    ASSERT_FALSE(HasFailure()) << "cap " << cap;
  }
}

TEST(Worker, SettleBeginsThePassThatSpansTheCap) {
  Bench bench({});
  start_run(bench, 9);  // 4 tokens of prompt: the fifth, in the pass from 10 to 20, opens a block
  EXPECT_EQ(bench.active(), 1U) << "a plan changes nothing";
  bench.worker.settle({15});
  EXPECT_EQ(bench.active(), 2U);
  EXPECT_EQ(bench.worker.passes(), 1U) << "it has not ended";
  EXPECT_EQ(bench.worker.wake(), Time{20});
}

// Random scripts over small pools, with durations of no length, arrivals at pass boundaries and
// short runs.
TEST(Worker, GivesTheSameResultsInBothModesOverRandomScripts) {
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Random random(seed);
    Machine machine;
    const auto draw = [&](std::uint64_t from, std::uint64_t to) {
      return static_cast<std::uint32_t>(from + random.below(to - from + 1));
    };
    machine.rank.blocks = draw(1, 12);
    machine.rank.block_tokens = draw(2, 5);
    machine.rank.max_sequences = draw(1, 5);
    machine.rank.max_batched_tokens = draw(1, 20);
    machine.rank.prefix_caching = random.below(4) > 0;
    machine.rank.chunked_prefill = random.below(4) > 0;
    if (random.below(4) == 0) machine.rank.preemption_mode = scheduler::PreemptionMode::Fifo;
    if (random.below(4) == 0) machine.rank.max_model_len = draw(4, 30);
    machine.timer.prefill_ns = draw(0, 2) * 5;
    machine.timer.decode_ns = draw(0, 2) * 5;
    machine.timer.every = draw(0, 5);
    machine.timer.every_ns = draw(0, 1) * 3;
    machine.timer.context_unit = draw(0, 1);
    machine.run_passes_max = draw(1, 6);
    if (random.below(2) == 0) {
      machine.ranks = draw(2, 4);
      machine.rank.prefill_schedule_interval = draw(0, 1) * draw(1, 5) + 1;
    }

    Script script;
    std::int64_t at = 0;
    for (std::uint32_t i = draw(1, 12); i > 0; --i) {
      at += draw(0, 1) * draw(0, 12) * 5;
      std::vector<Arrival>& arrivals = script.arrivals;
      const bool after = !arrivals.empty() && arrivals.back().at == at && arrivals.back().driven;
      arrivals.push_back({at, after || random.below(3) == 0, draw(1, 20), draw(0, 15),
                          draw(0, machine.ranks - 1)});
      std::vector<std::uint32_t>& ids = arrivals.back().ids;
      if (random.below(2) == 0) ids.resize((arrivals.back().prompt + 2) / 3);
      for (std::uint32_t& id : ids) id = draw(0, 1) * draw(0, 1);
    }
    if (random.below(3) == 0) {
      const Arrival& last = script.arrivals.back();
      for (std::int64_t when = draw(0, 20); when < last.at + 60; when += draw(1, 40))
        script.cancellations.push_back({when, random.below(script.arrivals.size())});
    }
    const Time cap = random.below(3) == 0 ? Time{draw(0, 200)} : Time{kNever.ns - 1};

    Bench fast(machine), plain(plain_of(machine));
    std::vector<Slot> ended, ended_plain;
    play(fast, script, cap, ended);
    play(plain, script, cap, ended_plain);
    for (Bench* bench : {&fast, &plain}) {
      bench->worker.settle(cap);
      bench->worker.take_back_live();
      for (const Rank& rank : bench->worker.ranks()) rank.scheduler().verify();
    }
    expect_equal(fast, plain, ended, ended_plain);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace servecast::engine
