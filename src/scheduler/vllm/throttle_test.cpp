// SPDX-License-Identifier: Apache-2.0
// The prefill interval of a rank in a group (engine-vllm.md 5.1.4, 5.2, 5.3).
#include <gtest/gtest.h>

#include <vector>

#include "scheduler/vllm/a_rank.hpp"

namespace servecast::scheduler {
namespace {

class Throttle : public testing::TestWithParam<Mode> {
 protected:
  static RankConfig every(std::uint32_t interval, std::uint32_t blocks, std::uint32_t budget) {
    RankConfig config = a_rank(blocks, budget);
    config.prefill_schedule_interval = interval;
    return config;
  }
  // The next pass of the wave.
  void pass(Rank& rank) {
    rank.scheduler.set_wave_step(step_++);
    rank.pass();
  }
  void pass_until_step(Rank& rank, std::uint64_t step) {
    while (step_ < step) pass(rank);
  }
  static bool admitted(const Rank& rank, Slot slot) { return rank[slot].admissions > 0; }

  std::uint64_t step_ = 0;
};

INSTANTIATE_TEST_SUITE_P(, Throttle, testing::Values(Mode::Stepping, Mode::Fast),
                         [](const testing::TestParamInfo<Mode>& mode) {
                           return name_of(mode.param);
                         });

TEST_P(Throttle, APromptWaitsForItsStepWhileSomebodyDecodes) {
  Rank rank(GetParam(), every(4, 100, 100));
  rank.submit({.prompt = 4, .output = 20});
  pass(rank);
  const Slot late = rank.submit({.prompt = 8, .output = 2});
  pass_until_step(rank, 4);
  EXPECT_FALSE(admitted(rank, late));
  EXPECT_EQ(rank.shape.decode_requests, 1U) << "decodes go on";
  pass(rank);
  EXPECT_TRUE(admitted(rank, late));
}

TEST_P(Throttle, WhereNobodyDecodesNothingIsHeldBack) {
  Rank rank(GetParam(), every(4, 100, 6));
  pass(rank);
  const Slot slot = rank.submit({.prompt = 20, .output = 2});
  for (const std::uint64_t computed : {6U, 12U, 18U}) {
    pass(rank);
    EXPECT_EQ(rank[slot].computed, computed);
  }
}

TEST_P(Throttle, APromptThatNeedsOneTokenIsNoMoreThanADecode) {
  Rank rank(GetParam(), every(4, 100, 100));
  rank.submit({.prompt = 5, .output = 20, .ids = {1, 2}});
  pass(rank);
  const Slot one = rank.submit({.prompt = 1, .output = 2});
  const Slot all_but_one = rank.submit({.prompt = 5, .output = 2, .ids = {1, 3}, .trace_block = 4});
  const Slot two = rank.submit({.prompt = 6, .output = 2, .ids = {1, 4}, .trace_block = 4});
  pass(rank);
  EXPECT_TRUE(admitted(rank, one));
  EXPECT_TRUE(admitted(rank, all_but_one));
  EXPECT_FALSE(admitted(rank, two));
}

TEST_P(Throttle, AChunkedPromptIsHeldBackTooAndDecodesGoOn) {
  Rank rank(GetParam(), every(4, 100, 10));
  const Slot decoder = rank.submit({.prompt = 4, .output = 30});
  pass(rank);
  const Slot slot = rank.submit({.prompt = 20, .output = 2});
  pass_until_step(rank, 5);
  EXPECT_EQ(rank[slot].computed, 9U);
  pass_until_step(rank, 8);
  EXPECT_EQ(rank[slot].computed, 9U) << "steps 5, 6 and 7";
  EXPECT_EQ(rank.shape.prefill_requests, 0U);
  EXPECT_EQ(rank.scheduler.token_times(decoder, rank.scheduler.passes()).size(), 8U);
  pass_until_step(rank, 9);
  EXPECT_EQ(rank[slot].computed, 18U);
}

// While the chunked one is held back the next prompt may pass it, if it costs no more than a
// decode.
TEST_P(Throttle, AOneTokenPromptOvertakesTheOneHeldBack) {
  Rank rank(GetParam(), every(4, 100, 3));
  const Slot decoder = rank.submit({.prompt = 3, .output = 30});
  pass(rank);
  pass_until_step(rank, 4);
  const Slot slot = rank.submit({.prompt = 9, .output = 2});
  pass(rank);  // 2 of 9
  const Slot one = rank.submit({.prompt = 1, .output = 5});
  pass(rank);
  EXPECT_TRUE(admitted(rank, one));
  EXPECT_EQ(rank[slot].computed, 2U);
  // Three run now, and step 8 gives the last of them nothing.
  pass_until_step(rank, 9);
  EXPECT_EQ(rank[slot].computed, 4U);
  EXPECT_EQ(rank.scheduler.token_times(one, rank.scheduler.passes()).size(), 3U);
  rank.drain();
  EXPECT_EQ(rank[decoder].generated, 30U);
  EXPECT_EQ(rank[slot].generated, 2U);
  EXPECT_EQ(rank[one].generated, 5U);
}

// C26, its last sentence: whoever could not be served at the step may come with the next.
TEST_P(Throttle, AStepThatLeftSomebodyWaitingOpensTheNext) {
  RankConfig config = every(4, 100, 100);
  config.max_sequences = 2;
  Rank rank(GetParam(), config);
  rank.submit({.prompt = 4, .output = 30});
  const Slot ends = rank.submit({.prompt = 4, .output = 6});
  pass(rank);
  const Slot first = rank.submit({.prompt = 8, .output = 1});
  pass_until_step(rank, 5);
  EXPECT_FALSE(admitted(rank, first)) << "no seat";
  pass(rank);  // step 5 gives `ends` its last token
  EXPECT_EQ(rank[ends].ending, Ending::Completed);
  pass(rank);
  EXPECT_TRUE(admitted(rank, first)) << "step 6";
  const Slot second = rank.submit({.prompt = 8, .output = 1});
  pass_until_step(rank, 8);
  EXPECT_FALSE(admitted(rank, second)) << "step 6 left nobody waiting, so step 7 is throttled";
  pass(rank);
  EXPECT_TRUE(admitted(rank, second));
}

TEST_P(Throttle, HoldsBackNoRejection) {
  Rank rank(GetParam(), every(4, 6, 100));
  rank.submit({.prompt = 4, .output = 12});
  pass(rank);
  const Slot large = rank.submit({.prompt = 28, .output = 1});
  pass(rank);
  EXPECT_EQ(rank[large].ending, Ending::Rejected);
}

// A pass that preempts admits nobody, so it says nothing about the queue: its victim waits for a
// step although the next pass had room for it.
TEST_P(Throttle, APassThatPreemptsDoesNotOpenTheNext) {
  Rank rank(GetParam(), every(4, 7, 100));
  const Slot ends = rank.submit({.prompt = 5, .output = 5});
  rank.submit({.prompt = 5, .output = 20});
  const Slot victim = rank.submit({.prompt = 5, .output = 8});
  pass_until_step(rank, 5);  // in step 4 each needs a third block
  ASSERT_EQ(rank[victim].preemptions, 1U);
  ASSERT_EQ(rank[ends].ending, Ending::Completed);
  pass_until_step(rank, 8);
  EXPECT_EQ(rank[victim].admissions, 1U);
  pass(rank);
  EXPECT_EQ(rank[victim].admissions, 2U);
}

TEST_P(Throttle, StarvesNobodyOverAThousandPasses) {  // bugs.md A03
  Rank rank(GetParam(), every(4, 9, 12));
  std::vector<Slot> slots;
  for (int i = 0; i < 1000; ++i) {
    if (i % 10 == 0) slots.push_back(rank.submit({.prompt = 6, .output = 16}));
    pass(rank);
  }
  EXPECT_GT(rank.scheduler.preemptions(), 0U) << "the pool is too large to show anything";
  for (; rank.scheduler.has_work(); pass(rank)) ASSERT_LT(step_, 3000U);
  for (const Slot slot : slots) EXPECT_EQ(rank[slot].generated, 16U);
}

// Several passes at once leave the flag as one by one would.

TEST(ThrottleRuns, EndBeforeTheStepThatLetsTheHeadIn) {
  RankConfig config = a_rank(100, 100);
  config.prefill_schedule_interval = 4;
  Rank rank(Mode::Fast, config);
  rank.submit({.prompt = 4, .output = 20});
  rank.pass();
  rank.submit({.prompt = 8, .output = 2});
  rank.scheduler.set_wave_step(1);
  rank.pass();
  for (const std::uint64_t step : {2U, 3U, 4U, 7U}) {
    rank.scheduler.set_wave_step(step);
    EXPECT_EQ(rank.scheduler.quiet(64).passes, step % 4 == 0 ? 0 : 4 - step % 4) << step;
  }
}

// Two seats, both taken; one is free after step `seat_free`. The prompt comes before step `comes`,
// and the steps from the one after that up to the last token of the seat's holder run at once.
std::uint64_t admitted_in_step(std::uint64_t comes, std::uint64_t seat_free) {
  RankConfig config = a_rank(100, 100);
  config.prefill_schedule_interval = 8;
  config.max_sequences = 2;
  Rank rank(Mode::Fast, config);
  rank.submit({.prompt = 4, .output = 60});
  rank.submit({.prompt = 4, .output = static_cast<std::uint32_t>(seat_free) + 1});
  const auto pass = [&](std::uint64_t step) {
    rank.scheduler.set_wave_step(step);
    rank.pass();
  };
  for (std::uint64_t step = 0; step < comes; ++step) pass(step);
  const Slot late = rank.submit({.prompt = 8, .output = 2});
  pass(comes);
  rank.scheduler.set_wave_step(comes + 1);
  EXPECT_EQ(rank.scheduler.quiet(64).passes, seat_free - comes - 1);
  std::vector<Time> ends;
  for (std::uint64_t step = comes + 1; step < seat_free; ++step) {
    rank.now = rank.now + Duration{kPassNs};
    ends.push_back(rank.now);
  }
  rank.scheduler.advance(ends);
  std::uint64_t step = seat_free;
  for (; rank[late].admissions == 0; ++step) pass(step);
  return step - 1;
}

TEST(ThrottleRuns, NoteWhoWaitsInTheStepsThatMayAdmit) {
  EXPECT_EQ(admitted_in_step(1, 12), 13U) << "steps 2 to 11 hold step 8, which left it waiting";
  EXPECT_EQ(admitted_in_step(9, 13), 16U) << "steps 9 to 13 are throttled, so 14 and 15 are";
  EXPECT_EQ(admitted_in_step(8, 10), 11U) << "step 8 itself left it waiting";
  EXPECT_EQ(admitted_in_step(9, 17), 18U);
}

}  // namespace
}  // namespace servecast::scheduler
