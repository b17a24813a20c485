// SPDX-License-Identifier: Apache-2.0
#include "cache/demands.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.hpp"

namespace servecast::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Names = std::vector<std::uint64_t>;

TEST(Demands, NamesTheNextDemandThatIsNotRetired) {  // engine-vllm.md C49
  Demands demands;
  demands.add(Names{10, 20});
  demands.add(Names{10});
  demands.add(Names{10, 20});
  demands.retire(1);
  EXPECT_EQ(demands.next(10), 0U);
  EXPECT_THAT(demands.changes(), IsEmpty()) << "somebody asks for it before";
  demands.retire(0);
  EXPECT_EQ(demands.next(10), 2U);
  EXPECT_EQ(demands.next(20), 2U);
  demands.retire(2);
  EXPECT_EQ(demands.next(10), Demands::kNever);
  EXPECT_EQ(demands.next(20), Demands::kNever);
  EXPECT_THAT(demands.changes(), ElementsAre(10, 20, 10, 20));
}

TEST(Demands, KnowNothingOfOtherNames) {
  Demands demands;
  EXPECT_EQ(demands.next(10), Demands::kNever);
  demands.add(Names{10});
  EXPECT_EQ(demands.next(20), Demands::kNever);
}

TEST(Demands, CountANameThatStandsTwiceOnce) {
  Demands demands;
  EXPECT_EQ(demands.add(Names{10, 10, 20, 10}), 0U);
  EXPECT_EQ(demands.add(Names{10}), 1U);
  demands.retire(0);
  EXPECT_THAT(demands.changes(), ElementsAre(10, 20));
  EXPECT_EQ(demands.next(10), 1U);
}

TEST(Demands, RetireOnce) {
  Demands demands;
  demands.add(Names{10});
  demands.add(Names{10});
  demands.retire(0);
  demands.retire(0);
  EXPECT_EQ(demands.next(10), 1U);
  EXPECT_THAT(demands.changes(), ElementsAre(10));
}

TEST(Demands, ADemandMayAskForNothing) {
  Demands demands;
  EXPECT_EQ(demands.add({}), 0U);
  EXPECT_EQ(demands.add(Names{10}), 1U);
  demands.retire(0);
  EXPECT_EQ(demands.next(10), 1U);
}

// Looks through all demands for each answer.
TEST(Demands, AgreeWithASearchThroughAllOfThem) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    Demands demands;
    std::vector<Names> all;
    for (std::uint64_t d = random.below(30) + 1; d > 0; --d) {
      Names& names = all.emplace_back();
      for (std::uint64_t n = random.below(6); n > 0; --n) names.push_back(random.below(8) << 40);
      demands.add(names);
    }
    const auto next = [&](std::uint64_t name) {
      for (std::uint32_t d = 0; d < all.size(); ++d) {
        if (std::count(all[d].begin(), all[d].end(), name) > 0) return d;
      }
      return Demands::kNever;
    };
    for (int step = 0; step < 60; ++step) {
      const auto retired = static_cast<std::uint32_t>(random.below(all.size()));
      std::vector<std::uint32_t> before;
      for (std::uint64_t n = 0; n < 8; ++n) before.push_back(next(n << 40));
      const std::size_t seen = demands.changes().size();
      demands.retire(retired);
      all[retired].clear();
      Names changed(demands.changes().begin() + static_cast<std::ptrdiff_t>(seen),
                    demands.changes().end());
      for (std::uint64_t n = 0; n < 8; ++n) {
        const std::uint64_t name = n << 40;
        ASSERT_EQ(demands.next(name), next(name)) << "seed " << seed;
        ASSERT_EQ(std::count(changed.begin(), changed.end(), name), before[n] != next(name) ? 1 : 0)
            << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace servecast::cache
