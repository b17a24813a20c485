// SPDX-License-Identifier: Apache-2.0
// The pools against engine-sglang.md S23 C43 and against a model that shares a stage's work in
// another way.
#include "scheduler/sglang/frontend_pools.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <vector>

#include "base/random.hpp"

namespace servecast::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr std::int64_t kMs = 1'000'000;

Time ms(double at) {
  return {ns_from_ms(at).value()};
}

using Exits = std::vector<std::pair<Slot, double>>;  // in ms

// Lets everything happen that is still to come.
Exits run_out(FrontendPools& pools) {
  Exits exits;
  std::vector<Slot> slots;
  while (const auto due = pools.next_deadline()) {
    pools.take_exits(*due, slots);
    pools.verify();
    for (const Slot slot : slots) exits.emplace_back(slot, to_ms(*due));
    slots.clear();
  }
  return exits;
}

TEST(FrontendPools, ServeAsManyAsThereAreWorkers) {  // C43
  FrontendPools pools({{.workers = 2, .service_ms = 10}});
  for (const Slot slot : {0U, 1U, 2U}) pools.submit(slot, ms(0));
  EXPECT_THAT(run_out(pools), ElementsAre(Pair(0, 10), Pair(1, 10), Pair(2, 20)));
}

TEST(FrontendPools, RepriceWhatIsServedWhenAnotherStarts) {  // C43
  FrontendPools pools({{.workers = 2, .service_ms = 10, .concurrency_scale = {1, 2}}});
  pools.submit(1, ms(0));
  EXPECT_EQ(pools.next_deadline(), ms(10));
  pools.submit(2, ms(5));
  EXPECT_EQ(pools.next_deadline(), ms(15));
  EXPECT_TRUE(pools.cancel(2, ms(10)));
  EXPECT_EQ(pools.next_deadline(), ms(12.5));
  EXPECT_THAT(run_out(pools), ElementsAre(Pair(1, 12.5)));
}

TEST(FrontendPools, HandFromStageToStage) {  // C43
  FrontendPools pools({{.workers = 1, .service_ms = 4}, {.workers = 1, .service_ms = 10}});
  pools.submit(7, ms(0));
  pools.submit(8, ms(0));
  EXPECT_THAT(run_out(pools), ElementsAre(Pair(7, 14), Pair(8, 24)));
}

TEST(FrontendPools, QueueInOrderOfArrival) {  // C43
  FrontendPools pools({{.workers = 1, .service_ms = 10}});
  pools.submit(1, ms(0));
  pools.submit(2, ms(5));
  std::vector<Slot> exits;
  pools.take_exits(ms(25), exits);
  EXPECT_THAT(exits, ElementsAre(1, 2));
  pools.submit(3, ms(30));
  EXPECT_THAT(run_out(pools), ElementsAre(Pair(3, 40)));
}

TEST(FrontendPools, KeepExitsUntilSomebodyTakesThem) {
  FrontendPools pools({{.workers = 2, .service_ms = 10}});
  pools.submit(1, ms(0));
  pools.submit(2, ms(3));
  pools.submit(3, ms(20));
  EXPECT_EQ(pools.next_deadline(), ms(10)) << "what left first, although more has happened";
  std::vector<Slot> exits;
  pools.take_exits(ms(20), exits);
  EXPECT_THAT(exits, ElementsAre(1, 2));
  EXPECT_EQ(pools.next_deadline(), ms(30));
}

TEST(FrontendPools, ForgetARequestWhereverItIs) {
  FrontendPools pools({{.workers = 1, .service_ms = 10}});
  for (const Slot slot : {1U, 2U, 3U, 4U}) pools.submit(slot, ms(0));
  EXPECT_TRUE(pools.cancel(3, ms(1))) << "in the queue";
  EXPECT_TRUE(pools.cancel(1, ms(4))) << "in service";
  EXPECT_TRUE(pools.cancel(2, ms(14))) << "on its way out";
  EXPECT_FALSE(pools.cancel(2, ms(15)));
  EXPECT_FALSE(pools.cancel(9, ms(15)));
  EXPECT_THAT(pools.slots(), ElementsAre(4));
  EXPECT_THAT(run_out(pools), ElementsAre(Pair(4, 24)));
  EXPECT_THAT(pools.slots(), IsEmpty());
}

TEST(FrontendPools, TakeNoTimeWithoutServiceTime) {
  FrontendPools pools({{.workers = 1, .service_ms = 0}, {.workers = 2, .service_ms = 0}});
  pools.submit(1, ms(5));
  pools.submit(2, ms(5));
  EXPECT_EQ(pools.next_deadline(), ms(5));
  std::vector<Slot> exits;
  pools.take_exits(ms(5), exits);
  EXPECT_THAT(exits, ElementsAre(1, 2));
}

// Three services of a third of a nanosecond in a row end after one, not after none or three.
TEST(FrontendPools, RoundTheExitAndNotTheStages) {
  const FrontendStage third{.service_ms = 1e-6 / 3};
  FrontendPools pools(std::vector<FrontendStage>(3, third));
  pools.submit(1, ms(7));
  EXPECT_EQ(pools.next_deadline(), ms(7)) << "the first stage ends a third later";
  std::vector<Slot> exits;
  pools.take_exits(ms(7), exits);
  EXPECT_THAT(exits, IsEmpty());
  EXPECT_EQ(pools.next_deadline(), ms(7) + Duration{1});
  FrontendPools half({{.workers = 1, .service_ms = 0.5e-6}});
  half.submit(1, ms(0));
  EXPECT_EQ(half.next_deadline(), Time{1}) << "half away from zero";
}

// 63 years in double milliseconds have steps of 0.2 microseconds.
TEST(FrontendPools, KeepTheirPrecisionLateInARun) {
  FrontendPools pools({{.workers = 1, .service_ms = 1e-6}});
  const Time late{2'000'000'000'000'000'001};
  pools.submit(1, ms(0));
  EXPECT_EQ(run_out(pools).size(), 1U);
  pools.submit(2, late);
  EXPECT_EQ(pools.next_deadline(), late + Duration{1});
}

TEST(FrontendPools, SayWhenAnEndIsPastTheEndOfTime) {
  FrontendPools pools({{.workers = 1, .service_ms = 4e12}});
  pools.submit(1, ms(1e12));
  EXPECT_EQ(pools.next_deadline(), kNever);
  EXPECT_FALSE(FrontendPools({{.workers = 1, .service_ms = 1}}).next_deadline());
}

// Each stage has a clock of work, which runs at the speed of one request; whoever starts at w ends
// at w + 1. Nothing is rounded but the exits.
class WorkClocks {
 public:
  explicit WorkClocks(std::vector<FrontendStage> stages) : pools_(std::move(stages)) {
    work_.resize(pools_.size());
    active_.resize(pools_.size());
    queue_.resize(pools_.size());
  }
  void run_to(double at) {
    for (double next = next_end(); std::round(next) <= at; next = next_end()) {
      move(next);
      std::vector<std::vector<Slot>> arrivals(pools_.size() + 1);
      for (std::size_t s = 0; s < pools_.size(); ++s) {
        std::deque<Active>& active = active_[s];
        for (; !active.empty() && active.front().end - work_[s] < 1e-9; active.pop_front())
          arrivals[s + 1].push_back(active.front().slot);
      }
      for (std::size_t s = 1; s < pools_.size(); ++s)
        queue_[s].insert(queue_[s].end(), arrivals[s].begin(), arrivals[s].end());
      for (const Slot slot : arrivals.back()) exits.emplace_back(slot, std::round(next));
      start();
    }
    move(at);
  }
  void submit(Slot slot, double at) {
    run_to(at);
    queue_[0].push_back(slot);
    start();
  }
  bool cancel(Slot slot, double at) {
    run_to(at);
    std::size_t found = std::erase_if(exits, [&](const auto& e) { return e.first == slot; });
    for (auto& queue : queue_) found += std::erase(queue, slot);
    for (auto& active : active_)
      found += std::erase_if(active, [&](const Active& a) { return a.slot == slot; });
    start();
    return found > 0;
  }

  std::vector<std::pair<Slot, double>> exits;

 private:
  struct Active {
    Slot slot;
    double end;  // on the stage's clock of work
  };
  double latency(std::size_t s) const {
    const FrontendStage& pool = pools_[s];
    const double scale =
        pool.concurrency_scale.empty() ? 1 : pool.concurrency_scale[active_[s].size() - 1];
    return pool.service_ms * 1e6 * scale;
  }
  double next_end() const {
    double next = std::numeric_limits<double>::infinity();
    for (std::size_t s = 0; s < pools_.size(); ++s) {
      if (active_[s].empty()) continue;
      next = std::min(next, now_ + std::max(0.0, active_[s].front().end - work_[s]) * latency(s));
    }
    return next;
  }
  void move(double at) {
    if (at <= now_) return;
    for (std::size_t s = 0; s < pools_.size(); ++s) {
      if (!active_[s].empty()) work_[s] += (at - now_) / latency(s);
    }
    now_ = at;
  }
  void start() {
    for (std::size_t s = 0; s < pools_.size(); ++s) {
      while (!queue_[s].empty() && active_[s].size() < pools_[s].workers) {
        active_[s].push_back({queue_[s].front(), work_[s] + 1});
        queue_[s].pop_front();
      }
    }
  }

  std::vector<FrontendStage> pools_;
  std::vector<double> work_;
  std::vector<std::deque<Active>> active_;
  std::vector<std::deque<Slot>> queue_;
  double now_ = 0;
};

std::vector<FrontendStage> random_stages(Random& dice) {
  std::vector<FrontendStage> stages(1 + dice.below(3));
  for (FrontendStage& stage : stages) {
    stage.workers = static_cast<std::uint32_t>(1 + dice.below(4));
    stage.service_ms =
        dice.below(2) == 0 ? static_cast<double>(1 + dice.below(4)) : 0.1 + 3 * dice.unit();
    if (dice.below(2) == 0) continue;
    for (std::uint32_t w = 0; w < stage.workers; ++w)
      stage.concurrency_scale.push_back(0.5 + 2 * dice.unit());
  }
  return stages;
}

TEST(FrontendPools, AgreeWithClocksOfWork) {
  constexpr int kRounds = 400, kCalls = 120;
  std::uint64_t left = 0, canceled = 0;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Random dice(seed);
    const std::vector<FrontendStage> stages = random_stages(dice);
    FrontendPools pools(stages);
    WorkClocks model(stages);
    std::map<Slot, Time> exits;
    std::vector<Slot> taken;
    std::int64_t now = 0;
    // Exits are seen one deadline at a time, so that each is known by its own time.
    const auto watch_until = [&](Time until) {
      for (auto due = pools.next_deadline(); due && *due <= until; due = pools.next_deadline()) {
        pools.take_exits(*due, taken);
        pools.verify();
        for (const Slot slot : taken) exits.emplace(slot, *due);
        taken.clear();
      }
    };
    for (Slot call = 0; call < kCalls; ++call) {
      if (dice.below(3) > 0) now += static_cast<std::int64_t>(dice.below(2 * kMs));
      watch_until({now});
      if (call > 3 && dice.below(8) == 0) {
        const auto victim = static_cast<Slot>(dice.below(call));
        const bool had_left = exits.contains(victim);
        const bool found = pools.cancel(victim, {now});
        canceled += found;
        EXPECT_EQ(model.cancel(victim, static_cast<double>(now)), found || had_left);
        exits.erase(victim);
      } else {
        pools.submit(call, {now});
        model.submit(call, static_cast<double>(now));
      }
    }
    watch_until({kNever.ns - 1});
    model.run_to(1e15);
    ASSERT_EQ(model.exits.size(), exits.size()) << "seed " << seed;
    for (const auto& [slot, at] : model.exits) {
      ASSERT_TRUE(exits.contains(slot)) << "seed " << seed << " slot " << slot;
      ASSERT_NEAR(static_cast<double>(exits[slot].ns), at, 1)
          << "seed " << seed << " slot " << slot;
    }
    left += exits.size();
  }
  EXPECT_GT(left, 10'000U);
  EXPECT_GT(canceled, 500U);
}

}  // namespace
}  // namespace servecast::scheduler
