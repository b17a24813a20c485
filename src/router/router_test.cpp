// SPDX-License-Identifier: Apache-2.0
#include "router/router.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace servecast::router {
namespace {

std::vector<std::uint32_t> placements(Router& router, int count, std::uint64_t tokens = 1) {
  std::vector<std::uint32_t> workers;
  for (int i = 0; i < count; ++i) workers.push_back(router.place(tokens));
  return workers;
}

TEST(RoundRobin, GoesAroundTheWorkersWhateverTheyCarry) {
  Router router({.policy = Policy::RoundRobin}, 3);
  EXPECT_EQ(placements(router, 7, 1000), (std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2, 0}));
  router.ended(0, 1000);
  EXPECT_EQ(router.place(1), 1U);
  EXPECT_FALSE(router.watches_load());
}

TEST(RandomPolicy, ReachesEveryWorkerEquallyOften) {
  Router router({.policy = Policy::Random}, 8);
  std::vector<int> count(8);
  for (const std::uint32_t worker : placements(router, 8000)) ++count[worker];
  for (const int times : count) EXPECT_NEAR(times, 1000, 150);
  EXPECT_FALSE(router.watches_load());
}

TEST(LeastLoaded, CountsRequestsOrTokensAsAsked) {
  Router requests({.policy = Policy::LeastLoaded, .metric = Metric::Requests}, 2);
  Router tokens({.policy = Policy::LeastLoaded, .metric = Metric::Tokens}, 2);
  for (Router* router : {&requests, &tokens}) {
    EXPECT_EQ(router->place(100), 0U);
    EXPECT_EQ(router->place(10), 1U);
  }
  EXPECT_EQ(requests.place(1), 0U);  // one each: the lowest id
  EXPECT_EQ(tokens.place(1), 1U);    // 100 against 10
  tokens.ended(0, 100);
  EXPECT_EQ(tokens.place(1), 0U);
  EXPECT_TRUE(tokens.watches_load());
}

TEST(LeastLoaded, BreaksTiesAsAsked) {
  Router lowest({.policy = Policy::LeastLoaded, .tie = Tie::LowestId}, 3);
  Router around({.policy = Policy::LeastLoaded, .tie = Tie::RoundRobin}, 3);
  for (int i = 0; i < 4; ++i) {  // every request ends before the next comes: always a tie of three
    const std::uint32_t first = lowest.place(1), next = around.place(1);
    EXPECT_EQ(first, 0U);
    EXPECT_EQ(next, static_cast<std::uint32_t>(i % 3));
    lowest.ended(first, 1);
    around.ended(next, 1);
  }
}

TEST(LeastLoaded, ARandomTieReachesEveryLeastLoadedWorkerAndNoOther) {
  Router router({.policy = Policy::LeastLoaded, .tie = Tie::Random}, 6);
  std::vector<std::uint32_t> first = placements(router, 6);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5}));
  for (const std::uint32_t worker : {1U, 2U, 5U}) router.ended(worker, 1);
  std::vector<int> count(6);
  for (int i = 0; i < 3000; ++i) {
    const std::uint32_t worker = router.place(1);
    ++count[worker];
    router.ended(worker, 1);
  }
  for (const std::uint32_t worker : {0U, 3U, 4U}) EXPECT_EQ(count[worker], 0);
  for (const std::uint32_t worker : {1U, 2U, 5U}) EXPECT_NEAR(count[worker], 1000, 150);
}

// What the tree answers, found by looking at every worker.
class Scan {
 public:
  Scan(const Spec& spec, std::uint32_t workers) : spec_(spec), loads_(workers) {}

  bool accepts(std::uint32_t chosen) const {
    const std::uint64_t least = *std::min_element(loads_.begin(), loads_.end());
    const auto workers = static_cast<std::uint32_t>(loads_.size());
    switch (spec_.tie) {
      case Tie::LowestId:
        return chosen == std::find(loads_.begin(), loads_.end(), least) - loads_.begin();
      case Tie::RoundRobin:
        for (std::uint32_t i = 0; i < workers; ++i) {
          const std::uint32_t worker = (cursor_ + i) % workers;
          if (loads_[worker] == least) return chosen == worker;
        }
        return false;
      case Tie::Random:
        return loads_[chosen] == least;
    }
    return false;
  }
  void place(std::uint32_t worker, std::uint64_t tokens) {
    loads_[worker] += spec_.metric == Metric::Tokens ? tokens : 1;
    cursor_ = worker + 1;
  }
  void ended(std::uint32_t worker, std::uint64_t tokens) {
    loads_[worker] -= spec_.metric == Metric::Tokens ? tokens : 1;
  }
  std::uint64_t load(std::uint32_t worker) const { return loads_[worker]; }

 private:
  Spec spec_;
  std::vector<std::uint64_t> loads_;
  std::uint32_t cursor_ = 0;
};

struct Placed {
  std::uint32_t worker;
  std::uint64_t tokens;
};

// Places and ends requests at random, so that about `in_flight` are placed; `check` sees each
// choice before it counts.
template <class Check>
void drive(Router& router, Scan& scan, std::size_t in_flight, int steps, Check check) {
  Random random(9);
  std::vector<Placed> placed;
  for (int i = 0; i < steps; ++i) {
    if (random.below(2 * in_flight) < placed.size()) {
      const std::size_t at = random.below(placed.size());
      router.ended(placed[at].worker, placed[at].tokens);
      scan.ended(placed[at].worker, placed[at].tokens);
      placed[at] = placed.back();
      placed.pop_back();
      continue;
    }
    const std::uint64_t tokens = random.below(4);  // few sizes make many ties, 0 changes nothing
    const std::uint32_t worker = router.place(tokens);
    check(worker);
    if (testing::Test::HasFatalFailure()) return;
    scan.place(worker, tokens);
    placed.push_back({worker, tokens});
  }
}

TEST(LeastLoaded, AgreesWithAScanOfAllWorkersForEveryMetricAndTie) {
  for (const std::uint32_t workers : {1U, 2U, 3U, 5U, 8U, 13U, 64U}) {
    for (const Metric metric : {Metric::Requests, Metric::Tokens}) {
      for (const Tie tie : {Tie::LowestId, Tie::RoundRobin, Tie::Random}) {
        const Spec spec{.policy = Policy::LeastLoaded, .metric = metric, .tie = tie};
        Router router(spec, workers);
        Scan scan(spec, workers);
        drive(router, scan, 2 * workers, 4000, [&](std::uint32_t worker) {
          ASSERT_LT(worker, workers);
          ASSERT_TRUE(scan.accepts(worker))
              << workers << " workers, tie " << static_cast<int>(tie) << ", chose " << worker;
        });
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(LeastLoaded, AgreesWithAScanOfTwoThousandWorkers) {
  for (const Tie tie : {Tie::LowestId, Tie::RoundRobin, Tie::Random}) {
    const Spec spec{.policy = Policy::LeastLoaded, .metric = Metric::Tokens, .tie = tie};
    Router router(spec, 2048);
    Scan scan(spec, 2048);
    drive(router, scan, 6000, 10000, [&](std::uint32_t worker) {
      ASSERT_LT(worker, 2048U);
      ASSERT_TRUE(scan.accepts(worker)) << worker;
    });
  }
}

TEST(PowerOfTwo, NeverTakesTheOneMostLoadedWorker) {
  const Spec spec{.policy = Policy::PowerOfTwo, .metric = Metric::Tokens};
  Router router(spec, 5);
  Scan scan(spec, 5);
  drive(router, scan, 20, 10000, [&](std::uint32_t worker) {
    ASSERT_LT(worker, 5U);
    int as_loaded = 0;  // others that may have been the second draw
    for (std::uint32_t other = 0; other < 5; ++other) {
      as_loaded += other != worker && scan.load(other) >= scan.load(worker) ? 1 : 0;
    }
    ASSERT_GT(as_loaded, 0);
  });
}

TEST(PowerOfTwo, TakesTheLowerIdOfEqualLoads) {
  Router router({.policy = Policy::PowerOfTwo}, 3);
  std::vector<int> count(3);
  for (int i = 0; i < 3000; ++i) {
    const std::uint32_t worker = router.place(1);
    ++count[worker];
    router.ended(worker, 1);
  }
  // The pairs 01, 02 and 12 are equally likely.
  EXPECT_NEAR(count[0], 2000, 150);
  EXPECT_NEAR(count[1], 1000, 150);
  EXPECT_EQ(count[2], 0);
}

TEST(PowerOfTwo, IsLeastLoadedForTwoWorkersAndCertainForOne) {
  Router two({.policy = Policy::PowerOfTwo, .metric = Metric::Tokens}, 2);
  EXPECT_EQ(two.place(10), 0U);
  EXPECT_EQ(two.place(3), 1U);
  EXPECT_EQ(two.place(3), 1U);
  EXPECT_EQ(two.place(5), 1U);
  EXPECT_EQ(two.place(1), 0U);
  Router one({.policy = Policy::PowerOfTwo}, 1);
  EXPECT_EQ(placements(one, 3), (std::vector<std::uint32_t>{0, 0, 0}));
}

TEST(Router, RepeatsItselfForOneSeedAndNotForAnother) {
  for (const Spec& spec : {Spec{.policy = Policy::Random},
                           Spec{.policy = Policy::PowerOfTwo, .metric = Metric::Tokens},
                           Spec{.policy = Policy::LeastLoaded, .tie = Tie::Random}}) {
    Spec other = spec;
    other.seed = spec.seed + 1;
    Router a(spec, 16), b(spec, 16), c(other, 16);
    const std::vector<std::uint32_t> first = placements(a, 64);
    EXPECT_EQ(first, placements(b, 64));
    EXPECT_NE(first, placements(c, 64));
  }
}

}  // namespace
}  // namespace servecast::router
