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
  for (int i = 0; i < count; ++i) workers.push_back(router.place(tokens).worker);
  return workers;
}

TEST(RoundRobin, GoesAroundTheWorkersWhateverTheyCarry) {
  Router router({.policy = Policy::RoundRobin}, {.workers = 3});
  EXPECT_EQ(placements(router, 7, 1000), (std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2, 0}));
  router.ended({0}, 1000);
  EXPECT_EQ(router.place(1), (Target{1}));
  EXPECT_FALSE(router.watches_load());
}

// replay.md 16.2: the workers by turns, and on each its ranks by turns.
TEST(RoundRobin, GoesAroundTheRanksOfEachWorker) {
  Router router({.policy = Policy::RoundRobin}, {.workers = 2, .ranks = 3});
  std::vector<Target> targets;
  for (int i = 0; i < 8; ++i) targets.push_back(router.place(1));
  EXPECT_EQ(targets,
            (std::vector<Target>{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}, {0, 0}, {1, 0}}));
}

TEST(RandomPolicy, ReachesEveryRankOfEveryWorkerEquallyOften) {
  Router router({.policy = Policy::Random}, {.workers = 2, .ranks = 4});
  std::vector<int> count(8);
  for (int i = 0; i < 8000; ++i) {
    const Target target = router.place(1);
    ++count[target.worker * 4 + target.rank];
  }
  for (const int times : count) EXPECT_NEAR(times, 1000, 150);
}

TEST(RandomPolicy, ReachesEveryWorkerEquallyOften) {
  Router router({.policy = Policy::Random}, {.workers = 8});
  std::vector<int> count(8);
  for (const std::uint32_t worker : placements(router, 8000)) ++count[worker];
  for (const int times : count) EXPECT_NEAR(times, 1000, 150);
  EXPECT_FALSE(router.watches_load());
}

TEST(LeastLoaded, CountsRequestsOrTokensAsAsked) {
  Router requests({.policy = Policy::LeastLoaded, .metric = Metric::Requests}, {.workers = 2});
  Router tokens({.policy = Policy::LeastLoaded, .metric = Metric::Tokens}, {.workers = 2});
  for (Router* router : {&requests, &tokens}) {
    EXPECT_EQ(router->place(100), (Target{0}));
    EXPECT_EQ(router->place(10), (Target{1}));
  }
  EXPECT_EQ(requests.place(1), (Target{0}));  // one each: the lowest id
  EXPECT_EQ(tokens.place(1), (Target{1}));    // 100 against 10
  tokens.ended({0}, 100);
  EXPECT_EQ(tokens.place(1), (Target{0}));
  EXPECT_TRUE(tokens.watches_load());
}

TEST(LeastLoaded, BreaksTiesAsAsked) {
  Router lowest({.policy = Policy::LeastLoaded, .tie = Tie::LowestId}, {.workers = 3});
  Router around({.policy = Policy::LeastLoaded, .tie = Tie::RoundRobin}, {.workers = 3});
  for (int i = 0; i < 4; ++i) {  // every request ends before the next comes: always a tie of three
    const Target first = lowest.place(1), next = around.place(1);
    EXPECT_EQ(first.worker, 0U);
    EXPECT_EQ(next.worker, static_cast<std::uint32_t>(i % 3));
    lowest.ended(first, 1);
    around.ended(next, 1);
  }
}

TEST(LeastLoaded, ARandomTieReachesEveryLeastLoadedWorkerAndNoOther) {
  Router router({.policy = Policy::LeastLoaded, .tie = Tie::Random}, {.workers = 6});
  std::vector<std::uint32_t> first = placements(router, 6);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5}));
  for (const std::uint32_t worker : {1U, 2U, 5U}) router.ended({worker}, 1);
  std::vector<int> count(6);
  for (int i = 0; i < 3000; ++i) {
    const Target target = router.place(1);
    ++count[target.worker];
    router.ended(target, 1);
  }
  for (const std::uint32_t worker : {0U, 3U, 4U}) EXPECT_EQ(count[worker], 0);
  for (const std::uint32_t worker : {1U, 2U, 5U}) EXPECT_NEAR(count[worker], 1000, 150);
}

// What the tree answers, found by looking at every target.
class Scan {
 public:
  Scan(const Spec& spec, const Topology& topology)
      : spec_(spec), ranks_(topology.ranks), loads_(topology.workers * topology.ranks) {}

  // All targets in order; `chosen` is one of them.
  std::uint32_t index(const Target& chosen) const { return chosen.worker * ranks_ + chosen.rank; }
  bool exists(const Target& chosen) const {
    return chosen.rank < ranks_ && index(chosen) < loads_.size();
  }
  bool accepts(const Target& chosen) const {
    const std::uint64_t least = *std::min_element(loads_.begin(), loads_.end());
    const auto targets = static_cast<std::uint32_t>(loads_.size());
    switch (spec_.tie) {
      case Tie::LowestId:
        return index(chosen) == std::find(loads_.begin(), loads_.end(), least) - loads_.begin();
      case Tie::RoundRobin:
        for (std::uint32_t i = 0; i < targets; ++i) {
          const std::uint32_t target = (cursor_ + i) % targets;
          if (loads_[target] == least) return index(chosen) == target;
        }
        return false;
      case Tie::Random:
        return load(chosen) == least;
    }
    return false;
  }
  void place(const Target& target, std::uint64_t tokens) {
    loads_[index(target)] += spec_.metric == Metric::Tokens ? tokens : 1;
    cursor_ = index(target) + 1;
  }
  void ended(const Target& target, std::uint64_t tokens) {
    loads_[index(target)] -= spec_.metric == Metric::Tokens ? tokens : 1;
  }
  std::uint64_t load(const Target& target) const { return loads_[index(target)]; }

 private:
  Spec spec_;
  std::uint32_t ranks_;
  std::vector<std::uint64_t> loads_;
  std::uint32_t cursor_ = 0;
};

struct Placed {
  Target target;
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
      router.ended(placed[at].target, placed[at].tokens);
      scan.ended(placed[at].target, placed[at].tokens);
      placed[at] = placed.back();
      placed.pop_back();
      continue;
    }
    const std::uint64_t tokens = random.below(4);  // few sizes make many ties, 0 changes nothing
    const Target target = router.place(tokens);
    ASSERT_TRUE(scan.exists(target));
    check(target);
    if (testing::Test::HasFatalFailure()) return;
    scan.place(target, tokens);
    placed.push_back({target, tokens});
  }
}

TEST(LeastLoaded, AgreesWithAScanOfAllTargetsForEveryMetricAndTie) {
  for (const Topology& topology :
       {Topology{1, 1}, Topology{2, 1}, Topology{3, 1}, Topology{1, 5}, Topology{2, 4},
        Topology{5, 3}, Topology{13, 1}, Topology{64, 1}, Topology{8, 8}}) {
    for (const Metric metric : {Metric::Requests, Metric::Tokens}) {
      for (const Tie tie : {Tie::LowestId, Tie::RoundRobin, Tie::Random}) {
        const Spec spec{.policy = Policy::LeastLoaded, .metric = metric, .tie = tie};
        Router router(spec, topology);
        Scan scan(spec, topology);
        drive(router, scan, 2 * topology.workers * topology.ranks, 4000, [&](const Target& target) {
          ASSERT_TRUE(scan.accepts(target))
              << topology.workers << " workers of " << topology.ranks << " ranks, tie "
              << static_cast<int>(tie) << ", chose " << target.worker << ", " << target.rank;
        });
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(LeastLoaded, AgreesWithAScanOfTwoThousandWorkers) {
  for (const Tie tie : {Tie::LowestId, Tie::RoundRobin, Tie::Random}) {
    const Spec spec{.policy = Policy::LeastLoaded, .metric = Metric::Tokens, .tie = tie};
    Router router(spec, {.workers = 2048});
    Scan scan(spec, {.workers = 2048});
    drive(router, scan, 6000, 10000,
          [&](const Target& target) { ASSERT_TRUE(scan.accepts(target)) << target.worker; });
  }
}

TEST(PowerOfTwo, NeverTakesTheOneMostLoadedWorker) {
  const Spec spec{.policy = Policy::PowerOfTwo, .metric = Metric::Tokens};
  const Topology topology{.workers = 3, .ranks = 2};
  Router router(spec, topology);
  Scan scan(spec, topology);
  drive(router, scan, 20, 10000, [&](const Target& target) {
    int as_loaded = 0;  // others that may have been the second draw
    for (std::uint32_t i = 0; i < 6; ++i) {
      const Target other{i / 2, i % 2};
      as_loaded += other != target && scan.load(other) >= scan.load(target) ? 1 : 0;
    }
    ASSERT_GT(as_loaded, 0);
  });
}

TEST(PowerOfTwo, TakesTheLowerIdOfEqualLoads) {
  Router router({.policy = Policy::PowerOfTwo}, {.workers = 3});
  std::vector<int> count(3);
  for (int i = 0; i < 3000; ++i) {
    const Target target = router.place(1);
    ++count[target.worker];
    router.ended(target, 1);
  }
  // The pairs 01, 02 and 12 are equally likely.
  EXPECT_NEAR(count[0], 2000, 150);
  EXPECT_NEAR(count[1], 1000, 150);
  EXPECT_EQ(count[2], 0);
}

TEST(PowerOfTwo, IsLeastLoadedForTwoWorkersAndCertainForOne) {
  Router two({.policy = Policy::PowerOfTwo, .metric = Metric::Tokens}, {.workers = 2});
  EXPECT_EQ(two.place(10), (Target{0}));
  EXPECT_EQ(two.place(3), (Target{1}));
  EXPECT_EQ(two.place(3), (Target{1}));
  EXPECT_EQ(two.place(5), (Target{1}));
  EXPECT_EQ(two.place(1), (Target{0}));
  Router one({.policy = Policy::PowerOfTwo}, {.workers = 1});
  EXPECT_EQ(placements(one, 3), (std::vector<std::uint32_t>{0, 0, 0}));
}

TEST(Router, RepeatsItselfForOneSeedAndNotForAnother) {
  for (const Spec& spec : {Spec{.policy = Policy::Random},
                           Spec{.policy = Policy::PowerOfTwo, .metric = Metric::Tokens},
                           Spec{.policy = Policy::LeastLoaded, .tie = Tie::Random}}) {
    Spec other = spec;
    other.seed = spec.seed + 1;
    Router a(spec, {.workers = 16}), b(spec, {.workers = 16}), c(other, {.workers = 16});
    const std::vector<std::uint32_t> first = placements(a, 64);
    EXPECT_EQ(first, placements(b, 64));
    EXPECT_NE(first, placements(c, 64));
  }
}

}  // namespace
}  // namespace servecast::router
