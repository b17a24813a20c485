// SPDX-License-Identifier: Apache-2.0
// A worker of several ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "engine/a_worker.hpp"

namespace servecast::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// Several ranks in lockstep (engine-vllm.md 16.1).

Machine a_group(std::uint32_t ranks) {
  Machine machine;
  machine.ranks = ranks;
  return machine;
}

// C25: a prompt alone takes 7 ns, beside a decode 12.
TEST(Group, EndsAPassWithItsSlowestRankAndTellsInRankOrder) {
  Machine machine = a_group(3);
  machine.stepping = machine.trace = true;
  machine.timer.prefill_ns = 7;
  machine.timer.decode_ns = 5;
  Bench bench(machine);
  const Slot decoder = bench.submit(4, 2, {{0}, false}, 1);
  ASSERT_TRUE(bench.worker.drive({0}));
  EXPECT_EQ(bench.worker.wake(), Time{7});
  bench.worker.retire({7});
  const Slot on_1 = bench.submit(4, 1, {{7}, false}, 1);
  const Slot on_0 = bench.submit(4, 1, {{7}, false}, 0);
  bench.worker.finished().clear();
  ASSERT_TRUE(bench.worker.drive({7}));
  EXPECT_EQ(bench.worker.wake(), Time{19});
  bench.worker.retire({18});
  EXPECT_THAT(bench.worker.ended(), IsEmpty());
  bench.worker.retire({19});
  EXPECT_THAT(bench.worker.ended(), ElementsAre(on_0, decoder, on_1));
  EXPECT_EQ(bench[on_0].first_token, Time{19}) << "its own part ended at 14";

  const std::vector<FinishedPass>& parts = bench.worker.finished();
  ASSERT_EQ(parts.size(), 3U);
  for (std::uint32_t r = 0; r < 3; ++r) {
    EXPECT_EQ(parts[r].pass, 1U);
    EXPECT_EQ(parts[r].rank, r);
    EXPECT_EQ(parts[r].start, Time{7});
    EXPECT_EQ(parts[r].end, Time{19}) << "an idle rank crosses the boundary too";
  }
  EXPECT_EQ(parts[0].time.prefill, Duration{7});
  EXPECT_EQ(parts[0].time.decode, Duration{0});
  EXPECT_EQ(parts[1].time.prefill + parts[1].time.decode, Duration{12});
  EXPECT_EQ(parts[2].time.prefill + parts[2].time.decode, Duration{0});
  EXPECT_THAT(parts[2].trace.scheduled, IsEmpty());
}

TEST(GroupDeathTest, HasNoRankBeyondItsLast) {
  Bench bench(a_group(3));
  EXPECT_DEATH(bench.submit(4, 1, {{0}, false}, 3), "rank < ranks_.size");
}

TEST(Group, AnIdleRankThatGetsWorkDuringAPassWaitsForItsEnd) {
  Bench bench(a_group(2));
  start_run(bench, 9);  // on rank 0, from 10 to 90
  const Slot late = bench.submit(4, 2, {{35}, true}, 1);
  EXPECT_EQ(bench.worker.wake(), Time{40}) << "the pass in flight stays, the rest is dropped";
  bench.worker.retire({40});
  EXPECT_EQ(bench.worker.ranks()[1].passes(), 0U);
  ASSERT_TRUE(bench.worker.drive({40}));
  EXPECT_EQ(bench[late].first_admit, Time{40});
  EXPECT_EQ(bench.worker.wake(), Time{50});
  bench.worker.retire({50});
  EXPECT_EQ(bench[late].first_token, Time{50});
  EXPECT_EQ(bench.worker.passes(), 5U);
  EXPECT_EQ(bench.worker.ranks()[1].passes(), 1U);
}

TEST(Group, ARunLastsUntilTheFirstEndingAndEachPassAsLongAsItsLongest) {
  Machine machine = a_group(3);  // the third stays idle
  machine.timer.context_unit = 1;
  Bench bench(machine);
  const Slot short_one = bench.submit(4, 4, {{0}, false}, 0);
  bench.submit(8, 9, {{0}, false}, 1);
  ASSERT_TRUE(bench.worker.drive({0}));
  bench.worker.retire({10});
  ASSERT_TRUE(bench.worker.drive({10}));
  // Contexts of 9, 10 and 11 tokens on rank 1, of four less on rank 0.
  EXPECT_EQ(bench.worker.wake(), Time{10 + 19 + 20 + 21});
  bench.worker.retire({70});
  EXPECT_THAT(bench.worker.ended(), ElementsAre(short_one));
  EXPECT_EQ(bench.worker.passes(), 4U);
  EXPECT_THAT(bench.gaps.table(), ElementsAre(Pair(19, 2), Pair(20, 2), Pair(21, 2)));
  ASSERT_TRUE(bench.worker.drive({70}));
  EXPECT_EQ(bench.worker.wake(), Time{70 + 22 + 23 + 24 + 25 + 26}) << "rank 1 goes on alone";
}

TEST(Group, KeepsAPoolForEachRank) {
  Machine machine = a_group(2);
  machine.rank.blocks = 2;
  Bench bench(machine);
  for (const std::uint32_t rank : {0U, 1U}) bench.submit(8, 1, {{0}, false}, rank);
  ASSERT_TRUE(bench.worker.drive({0}));
  EXPECT_EQ(bench.worker.wake(), Time{10});
  bench.worker.retire({10});
  EXPECT_EQ(bench.worker.ended().size(), 2U);
}

// The prefill interval (engine-vllm.md 5.1.4, 19.8): C26.

Machine a_throttled_group(std::uint32_t ranks, std::uint32_t interval) {
  Machine machine = a_group(ranks);
  machine.rank.prefill_schedule_interval = interval;
  return machine;
}

// When a prompt is admitted that comes during pass 0 of a decoder on rank 0; passes take 10 ns.
Time admitted_at(Machine machine, std::uint32_t rank, std::uint32_t prompt = 100) {
  Bench bench(machine);
  bench.submit(4, 20, {{0}, false}, 0);
  EXPECT_TRUE(bench.worker.drive({0}));
  const Slot late = bench.submit(prompt, 2, {{5}, true}, rank);
  for (Time now{10}; bench[late].first_admit == kNever && now < Time{1000};
       now = now + Duration{10}) {
    bench.worker.retire(now);
    if (bench.worker.idle()) {
      EXPECT_TRUE(bench.worker.drive(now));
    }
  }
  return bench[late].first_admit;
}

TEST(PrefillInterval, LetsAPromptWaitForItsStepWhereSomebodyDecodes) {
  for (const bool stepping : {true, false}) {
    Machine machine = a_throttled_group(2, 4);
    machine.stepping = stepping;
    EXPECT_EQ(admitted_at(machine, 0), Time{40});
    EXPECT_EQ(admitted_at(machine, 1), Time{10}) << "nobody decodes on this rank";
    EXPECT_EQ(admitted_at(machine, 0, 1), Time{10}) << "one token is no more than a decode";
    machine.ranks = 1;
    EXPECT_EQ(admitted_at(machine, 0), Time{10}) << "a lone rank holds up nobody";
  }
}

TEST(PrefillInterval, PlansUpToTheStepThatLetsThePromptIn) {
  Bench bench(a_throttled_group(2, 4));
  bench.submit(4, 20, {{0}, false}, 0);
  ASSERT_TRUE(bench.worker.drive({0}));
  bench.submit(100, 2, {{5}, true}, 0);
  bench.worker.retire({10});
  ASSERT_TRUE(bench.worker.drive({10}));  // tests the head
  bench.worker.retire({20});
  ASSERT_TRUE(bench.worker.drive({20}));
  EXPECT_EQ(bench.worker.wake(), Time{40}) << "passes 2 and 3; pass 4 may prefill";
}

TEST(PrefillInterval, StartsANewWaveWhenAllRanksAreDrained) {
  Bench bench(a_throttled_group(2, 4));
  const Slot first = bench.submit(4, 2, {{0}, false}, 0);
  ASSERT_TRUE(bench.worker.drive({0}));
  bench.worker.retire({10});
  ASSERT_TRUE(bench.worker.drive({10}));
  bench.worker.cancel(first, {15, true});
  bench.worker.retire({20});  // steps 0 and 1
  ASSERT_TRUE(bench.worker.idle());
  bench.submit(4, 20, {{20}, false}, 1);
  ASSERT_TRUE(bench.worker.drive({20}));
  const Slot late = bench.submit(100, 2, {{25}, true}, 1);
  for (Time now{30}; now <= Time{60}; now = now + Duration{10}) {
    EXPECT_EQ(bench[late].first_admit, kNever) << now.ns;
    bench.worker.retire(now);
    if (bench.worker.idle()) {
      ASSERT_TRUE(bench.worker.drive(now));
    }
  }
  EXPECT_EQ(bench[late].first_admit, Time{60}) << "step 4 of the new wave";
}

}  // namespace
}  // namespace servecast::engine
