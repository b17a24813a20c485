// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cohort.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.hpp"

namespace servecast::scheduler {
namespace {

TEST(Cohort, SumsTheTokensThatItsMembersKnow) {
  Cohort cohort(4);
  cohort.join(0, 5, 3, 0);
  cohort.join(1, 9, 3, 1);
  EXPECT_EQ(cohort.size(), 2U);
  EXPECT_EQ(cohort.context(), 14U);
  cohort.advance(2);
  EXPECT_EQ(cohort.context(), 18U);
}

// Block of 4: who knows 5 tokens computes the fifth now, which needs a second block; who knows 8
// computes the eighth, for which there is room.
TEST(Cohort, AMemberNeedsABlockWhenTheTokenToBeComputedOpensOne) {
  Cohort cohort(4);
  cohort.join(0, 5, 9, 0);
  cohort.join(1, 8, 9, 1);
  EXPECT_EQ(cohort.crossings(), 1U);
  EXPECT_EQ(cohort.crossings(1), 1U);
  EXPECT_EQ(cohort.crossings(2), 0U);
  EXPECT_EQ(cohort.crossings(4), 1U);
  EXPECT_EQ(cohort.crossings_total(2), 2U);
  EXPECT_EQ(cohort.crossings_total(4), 2U);
  EXPECT_EQ(cohort.crossings_total(9), 5U);
}

TEST(Cohort, ThoseWhoEndTogetherComeInRunningOrder) {
  Cohort cohort(4);
  cohort.join(7, 5, 2, 30);
  cohort.join(8, 5, 2, 10);
  cohort.join(9, 5, 1, 20);
  EXPECT_EQ(cohort.passes_to_due(), 0U);
  EXPECT_EQ(cohort.next_due(), 9U);
  cohort.leave_due(5);
  EXPECT_EQ(cohort.next_due(), kNoSlot);
  EXPECT_EQ(cohort.passes_to_due(), 1U);
  cohort.advance(1);
  EXPECT_EQ(cohort.next_due(), 8U);
  cohort.leave_due(6);
  EXPECT_EQ(cohort.next_due(), 7U);
  cohort.leave_due(6);
  EXPECT_EQ(cohort.size(), 0U);
  EXPECT_EQ(cohort.context(), 0U);
}

TEST(Cohort, IsEmptyAfterClearAndGoesOnCountingSteps) {
  Cohort cohort(2);
  cohort.join(0, 5, 9, 0);
  cohort.advance(3);
  cohort.clear();
  EXPECT_EQ(cohort.size(), 0U);
  EXPECT_EQ(cohort.context(), 0U);
  EXPECT_EQ(cohort.crossings_total(2), 0U);
  EXPECT_EQ(cohort.step(), 3U);
  cohort.join(1, 4, 2, 1);
  EXPECT_EQ(cohort.passes_to_due(), 1U);
  EXPECT_EQ(cohort.crossings(1), 1U);
}

struct Member {
  Slot slot;
  std::uint32_t known;
  std::uint32_t remaining;
  std::uint64_t order;
};

std::uint32_t naive_crossings(const std::vector<Member>& members, std::uint32_t block,
                              std::uint64_t ahead) {
  return static_cast<std::uint32_t>(
      std::count_if(members.begin(), members.end(),
                    [&](const Member& m) { return (m.known + ahead - 1) % block == 0; }));
}

TEST(Cohort, AgreesWithAListOfItsMembersOverRandomPasses) {
  for (const std::uint32_t block : {2U, 3U, 16U}) {
    Random random(block);
    Cohort cohort(block);
    std::vector<Member> members;
    std::uint64_t order = 0;
    for (int pass = 0; pass < 5000; ++pass) {
      for (std::uint64_t joins = random.below(3); joins > 0; --joins) {
        const Member member{static_cast<Slot>(order),
                            static_cast<std::uint32_t>(1 + random.below(40)),
                            static_cast<std::uint32_t>(1 + random.below(30)),
                            // not the order of joining: a request may come back
                            random.below(2) << 32 | order};
        ++order;
        cohort.join(member.slot, member.known, member.remaining, member.order);
        members.push_back(member);
      }

      std::uint64_t context = 0, total = 0;
      std::uint32_t soonest = UINT32_MAX;
      for (const Member& m : members) {
        context += m.known;
        soonest = std::min(soonest, m.remaining);
      }
      ASSERT_EQ(cohort.size(), members.size());
      ASSERT_EQ(cohort.context(), context);
      for (std::uint64_t ahead = 0; ahead <= 2 * block; ++ahead) {
        ASSERT_EQ(cohort.crossings_total(ahead), total);
        ASSERT_EQ(cohort.crossings(ahead), naive_crossings(members, block, ahead));
        total += naive_crossings(members, block, ahead);
      }
      if (members.empty()) {
        ASSERT_EQ(cohort.next_due(), kNoSlot);
        cohort.advance(1);
        continue;
      }
      ASSERT_EQ(cohort.passes_to_due(), soonest - 1);

      if (random.below(50) == 0) {
        cohort.clear();
        members.clear();
        continue;
      }
      std::uint32_t passes = 1;
      if (soonest > 1 && random.below(2) == 0) {  // several passes at once, none of which ends one
        passes = static_cast<std::uint32_t>(1 + random.below(soonest - 1));
        ASSERT_EQ(cohort.next_due(), kNoSlot);
      } else {
        std::sort(members.begin(), members.end(),
                  [](const Member& a, const Member& b) { return a.order < b.order; });
        std::vector<Member> stay;
        for (const Member& m : members) {
          if (m.remaining > 1) {
            stay.push_back(m);
            continue;
          }
          ASSERT_EQ(cohort.next_due(), m.slot);
          cohort.leave_due(m.known);
        }
        ASSERT_EQ(cohort.next_due(), kNoSlot);
        members.swap(stay);
      }
      cohort.advance(passes);
      for (Member& m : members) {
        m.known += passes;
        m.remaining -= passes;
      }
    }
  }
}

}  // namespace
}  // namespace servecast::scheduler
