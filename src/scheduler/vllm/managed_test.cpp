// SPDX-License-Identifier: Apache-2.0
// Ranks with another cache than the linear pool, in the reference mode and in the fast mode. The
// caches' own numbers stand in tests/conformance/cases.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "cache/some_groups.hpp"
#include "scheduler/vllm/a_rank.hpp"

namespace servecast::scheduler {
namespace {

class VllmManaged : public testing::TestWithParam<Mode> {
 protected:
  Mode mode() const { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(, VllmManaged, testing::Values(Mode::Stepping, Mode::Fast),
                         [](const testing::TestParamInfo<Mode>& mode) {
                           return name_of(mode.param);
                         });

RankConfig a_state_rank(std::uint32_t blocks, std::uint32_t budget, std::uint32_t match_unit) {
  RankConfig config = a_rank(blocks, budget);
  config.state = {.blocks = 1, .match_unit = match_unit};
  return config;
}

TEST_P(VllmManaged, GoesRequestByRequest) {
  Rank rank(mode(), a_state_rank(16, 100, 4));
  rank.submit({.prompt = 4, .output = 9});
  rank.passes(3);
  EXPECT_EQ(rank.scheduler.cohort_size(), 0U);
  EXPECT_EQ(rank.scheduler.quiet(64).passes, 0U);
  EXPECT_EQ(rank.shape.decode_requests, 1U);
}

TEST_P(VllmManaged, ACanceledRequestLeavesWhatItCached) {
  Rank rank(mode(), a_state_rank(16, 100, 4));
  const Ask ask{.prompt = 9, .output = 9, .ids = {1, 2, 3}};
  const Slot running = rank.submit(ask);
  rank.passes(3);
  EXPECT_EQ(rank.active(), 4U);
  rank.scheduler.cancel(running, rank.now);
  rank.scheduler.verify();
  EXPECT_EQ(rank.active(), 0U);
  EXPECT_EQ(rank.inactive(), 3U);  // two blocks and the state after them
  const Slot again = rank.submit(ask);
  rank.pass();
  EXPECT_EQ(rank[again].reused_first, 8U);
}

// In a slot that was used before, for another prompt of the same length.
TEST_P(VllmManaged, ARequestThatEndsWaitingLeavesNoNames) {
  Rank rank(mode(), a_state_rank(5, 100, 0));
  rank.submit({.prompt = 8, .output = 3});
  rank.pass();
  const Slot waiting = rank.submit({.prompt = 8, .output = 1, .ids = {1, 2}});
  rank.pass();
  rank.scheduler.cancel(waiting, rank.now);
  rank.requests.remove(waiting);
  const Slot other = rank.submit({.prompt = 8, .output = 1, .ids = {3, 4}});
  ASSERT_EQ(other, waiting);
  rank.drain();
  const Slot fresh = rank.submit({.prompt = 9, .output = 1, .ids = {1, 2, 5}});
  rank.pass();
  EXPECT_EQ(rank[fresh].reused_first, 0U);
}

// The first admitted gives way, and what it held besides the blocks it lost comes back a step
// later, so that it is admitted again beside the one that took its blocks.
TEST_P(VllmManaged, PreemptionsThatHelpNobodyComeToAnEnd) {
  RankConfig config = a_rank(9, 4, 6);
  config.preemption_mode = PreemptionMode::Fifo;
  config.state = {.blocks = 2, .match_unit = 1, .boundary = cache::AlignBoundary::KnownFloor};
  Rank rank(mode(), config);
  const Slot first = rank.submit({.prompt = 11, .output = 6});
  const Slot second = rank.submit({.prompt = 10, .output = 6});
  rank.drain();
  EXPECT_EQ(rank[first].ending, Ending::Completed);
  EXPECT_EQ(rank[second].ending, Ending::Completed);
  EXPECT_GT(rank.scheduler.preemptions(), 256U);
}

// engine-vllm.md 20 I14: requests end in every way and at every time; then all blocks are back.
TEST(VllmManagedModes, AgreeAndLeakNothingWhateverIsCanceled) {
  std::uint64_t preemptions = 0, reused = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed, "managed");
    const auto from = [&](std::uint32_t low, std::uint32_t high) {
      return low + static_cast<std::uint32_t>(random.below(high - low + 1));
    };
    RankConfig config = a_state_rank(from(6, 24), from(4, 12), from(0, 2) * 2);
    if (from(0, 3) == 0) config.preemption_mode = PreemptionMode::Fifo;
    Rank plain(Mode::Stepping, config), fast(Mode::Fast, config);
    std::vector<Slot> live;
    for (int step = 0; step < 60; ++step) {
      const std::uint32_t dice = from(0, 9);
      if (dice < 3) {
        const std::uint32_t blocks = from(1, 4);
        Ask ask{.prompt = blocks * 4 - from(0, 3), .output = from(0, 9)};
        for (std::uint32_t b = 0; b < blocks; ++b) ask.ids.push_back(from(0, 1) + 10 * b);
        live.push_back(plain.submit(ask));
        ASSERT_EQ(fast.submit(ask), live.back());
      } else if (dice == 3 && !live.empty()) {
        const std::size_t victim = random.below(live.size());
        plain.scheduler.cancel(live[victim], plain.now);
        fast.scheduler.cancel(live[victim], fast.now);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
      } else {
        plain.pass();
        fast.pass();
        ASSERT_EQ(plain.outcome.ended, fast.outcome.ended) << "seed " << seed;
        for (const Slot slot : plain.outcome.ended) std::erase(live, slot);
      }
      ASSERT_EQ(plain.active(), fast.active()) << "seed " << seed;
      ASSERT_EQ(plain.inactive(), fast.inactive()) << "seed " << seed;
    }
    plain.drain();
    fast.drain();
    EXPECT_EQ(plain.active(), 0U);
    EXPECT_EQ(fast.active(), 0U);
    EXPECT_EQ(plain.sorted_gaps(), fast.sorted_gaps());
    preemptions += plain.scheduler.preemptions();
    reused += plain.scheduler.prefix_hit_tokens();
  }
  EXPECT_GT(preemptions, 100U);
  EXPECT_GT(reused, 1000U);
}

TEST(VllmManagedEvents, OneForEachRunOfFullBlocks) {
  Rank rank(Mode::Stepping, a_state_rank(4, 100, 0));
  rank.submit({.prompt = 8, .output = 1, .ids = {1, 2}});
  rank.pass();
  ASSERT_EQ(rank.events.size(), 1U);
  EXPECT_TRUE(rank.events[0].stored);
  EXPECT_EQ(rank.events[0].blocks.size(), 2U);
  rank.submit({.prompt = 12, .output = 1, .ids = {3, 4, 5}});
  rank.pass();
  ASSERT_EQ(rank.events.size(), 3U);
  EXPECT_FALSE(rank.events[1].stored);
  EXPECT_EQ(rank.events[1].blocks.size(), 2U);
  EXPECT_EQ(rank.events[1].blocks[0].hash, rank.events[0].blocks[1].hash) << "the leaf goes first";
}

// engine-vllm.md 19.5: GLM-5.3-Flash, 64 blocks.
RankConfig a_glm_rank(std::uint32_t checkpoints) {
  const std::vector<cache::KvGroup> groups = cache::glm_groups(checkpoints);
  cache::GroupedSettings settings = cache::a_setting(groups, 2176, 64);
  settings.max_model_len = 16'000;
  RankConfig config = a_rank(0, 8192);
  config.max_model_len = 16'000;
  config.grouped = GroupedCacheSettings{.groups = groups,
                                        .capacity_bytes = settings.capacity_bytes,
                                        .rules = cache::grouped_rules(settings)};
  return config;
}

std::vector<std::uint32_t> ids_of(std::uint32_t tokens, std::uint32_t first_own) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t t = 0; t < tokens; ++t) ids.push_back(t < 9000 ? t : first_own + t);
  return ids;
}

TEST(VllmGrouped, HoldsTheStateItStartsFromUntilTheStepEnds) {
  const struct {
    std::uint32_t checkpoints, during, after, to;
  } cases[] = {{0, 14, 10, 10'880}, {1, 19, 15, 13'000}};
  for (const auto& c : cases) {
    Rank rank(Mode::Stepping, a_glm_rank(c.checkpoints));
    rank.submit({.prompt = 9000, .output = 1, .ids = ids_of(9000, 0), .trace_block = 1});
    rank.drain();
    EXPECT_EQ(rank.active(), 0U);
    EXPECT_EQ(rank.inactive(), 8U) << "4 of attention, 4 states";
    const KvCounts idle = rank.scheduler.kv();
    EXPECT_EQ(idle.used_bytes, 0U);
    EXPECT_EQ(idle.cached_bytes, 8 * cache::kPage);
    EXPECT_EQ(idle.capacity_bytes, 64 * cache::kPage);

    const Slot second = rank.submit(
        {.prompt = 13'000, .output = 2, .ids = ids_of(13'000, 1 << 20), .trace_block = 1});
    rank.scheduler.schedule(rank.now, Admit::Yes);
    EXPECT_EQ(rank.active(), c.during);
    EXPECT_EQ(rank[second].computed, c.to);
    rank.scheduler.complete(rank.now, rank.outcome);
    EXPECT_EQ(rank.active(), c.after);
    rank.drain();
    EXPECT_EQ(rank.active(), 0U);
  }
}

TEST(VllmGrouped, CountsALookupOncePerAdmission) {
  Rank rank(Mode::Fast, a_glm_rank(0));
  rank.submit({.prompt = 9000, .output = 1, .ids = ids_of(9000, 0), .trace_block = 1});
  rank.drain();
  rank.submit({.prompt = 9000, .output = 1, .ids = ids_of(9000, 0), .trace_block = 1});
  rank.drain();
  EXPECT_EQ(rank.scheduler.prefix_queried_tokens(), 18'000U);
  EXPECT_EQ(rank.scheduler.prefix_hit_tokens(), 8704U);
}

}  // namespace
}  // namespace servecast::scheduler
