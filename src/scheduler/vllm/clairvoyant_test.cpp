// SPDX-License-Identifier: Apache-2.0
// A rank that evicts by the demands of all requests (engine-vllm.md 15) and says whom it admitted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/vllm/a_rank.hpp"

namespace servecast::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(VllmClairvoyant, TellsWhomThePassAdmitted) {
  const cache::Demands demands;
  Rank rank(Mode::Stepping, a_rank(8, 6), &demands);
  rank.submit({.prompt = 4, .output = 3});
  rank.submit({.prompt = 8, .output = 2});
  rank.pass();
  EXPECT_THAT(rank.outcome.admitted, ElementsAre(0, 1)) << "the second one in part";
  rank.drain();
  EXPECT_THAT(rank.outcome.admitted, IsEmpty());
}

// Two bursts of four tokens need four blocks of the three, so the second request leaves the pass
// that admitted it: it still asks for its prompt.
TEST(VllmClairvoyant, AnAdmissionUndoneInTheSamePassIsNone) {
  RankConfig config = a_rank(3, 32);
  config.speculation = Speculation{.rates = {1, 1, 1}, .needs_last_block = false};
  const cache::Demands demands;
  Rank rank(Mode::Stepping, config, &demands);
  rank.submit({.prompt = 4, .output = 8});
  const Slot second = rank.submit({.prompt = 4, .output = 8});
  rank.pass();
  EXPECT_EQ(rank[second].admissions, 1U);
  EXPECT_EQ(rank[second].preemptions, 1U);
  EXPECT_THAT(rank.outcome.admitted, ElementsAre(0));
  while (rank[second].state == State::Preempted) rank.pass();
  EXPECT_THAT(rank.outcome.admitted, ElementsAre(1));
}

TEST(VllmClairvoyant, TellsNothingWithoutDemands) {
  Rank rank(Mode::Stepping, a_rank(8, 16));
  rank.submit({.prompt = 4});
  rank.pass();
  EXPECT_THAT(rank.outcome.admitted, IsEmpty());
}

}  // namespace
}  // namespace servecast::scheduler
