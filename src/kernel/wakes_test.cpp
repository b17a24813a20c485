// SPDX-License-Identifier: Apache-2.0
#include "kernel/wakes.hpp"

#include <gtest/gtest.h>

#include <compare>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "kernel/order.hpp"

namespace servecast::kernel {
namespace {

TEST(Wakes, AreNeverWhenThereIsNone) {
  const Wakes wakes(3);
  EXPECT_TRUE(wakes.empty());
  EXPECT_EQ(wakes.time(), kNever);
}

TEST(Wakes, ComeByTimeAndThenByWorker) {
  Wakes wakes(4);
  wakes.set(3, {10});
  wakes.set(1, {20});
  wakes.set(2, {10});
  wakes.set(0, {30});
  std::vector<std::pair<std::int64_t, std::uint32_t>> order;
  while (!wakes.empty()) {
    const Time time = wakes.time();
    order.emplace_back(time.ns, wakes.pop());
  }
  const std::vector<std::pair<std::int64_t, std::uint32_t>> expected{
      {10, 2}, {10, 3}, {20, 1}, {30, 0}};
  EXPECT_EQ(order, expected);
}

TEST(Wakes, MoveWhenTheyAreSetAgain) {
  Wakes wakes(2);
  wakes.set(0, {10});
  wakes.set(1, {20});
  wakes.set(0, {30});  // later
  EXPECT_EQ(wakes.time(), Time{20});
  wakes.set(0, {5});  // earlier
  EXPECT_EQ(wakes.pop(), 0U);
  EXPECT_EQ(wakes.pop(), 1U);
  EXPECT_TRUE(wakes.empty());
}

TEST(Wakes, ANeverRemovesTheWakeAndForgivesOneThatIsNotThere) {
  Wakes wakes(2);
  wakes.set(1, kNever);
  EXPECT_TRUE(wakes.empty());
  wakes.set(0, {10});
  wakes.set(1, {20});
  wakes.set(0, kNever);
  EXPECT_EQ(wakes.time(), Time{20});
  EXPECT_EQ(wakes.pop(), 1U);
  EXPECT_TRUE(wakes.empty());
}

TEST(Wakes, AWorkerComesBackAfterItsWakeWasTaken) {
  Wakes wakes(1);
  wakes.set(0, {10});
  EXPECT_EQ(wakes.pop(), 0U);
  wakes.set(0, {7});
  EXPECT_EQ(wakes.time(), Time{7});
  EXPECT_EQ(wakes.pop(), 0U);
}

// Few distinct times, so that ties are frequent; the numbers of workers are those around the edges
// of a level of a heap with four children.
TEST(Wakes, AgreeWithAnOrderedSetOverRandomOperations) {
  for (const std::uint32_t workers : {1U, 2U, 4U, 5U, 6U, 20U, 21U, 22U, 300U}) {
    Random random(workers);
    Wakes wakes(workers);
    std::set<std::pair<Time, std::uint32_t>> model;
    std::map<std::uint32_t, Time> when;
    for (int i = 0; i < 20000; ++i) {
      const auto worker = static_cast<std::uint32_t>(random.below(workers));
      const std::uint64_t what = random.below(10);
      if (what == 0 && !model.empty()) {
        ASSERT_EQ(wakes.pop(), model.begin()->second);
        when.erase(model.begin()->second);
        model.erase(model.begin());
      } else {
        if (const auto found = when.find(worker); found != when.end()) {
          model.erase({found->second, worker});
          when.erase(found);
        }
        const Time time = what == 1 ? kNever : Time{static_cast<std::int64_t>(random.below(50))};
        wakes.set(worker, time);
        if (time != kNever) {
          model.emplace(time, worker);
          when[worker] = time;
        }
      }
      ASSERT_EQ(wakes.empty(), model.empty());
      ASSERT_EQ(wakes.time(), model.empty() ? kNever : model.begin()->first);
    }
    while (!model.empty()) {
      ASSERT_EQ(wakes.pop(), model.begin()->second);
      model.erase(model.begin());
    }
    EXPECT_TRUE(wakes.empty());
  }
}

TEST(Wakes, OrderPassCompletionsAsEventKeysDo) {
  Random random(5);
  Wakes wakes(64);
  std::set<EventKey> events;
  for (std::uint32_t worker = 0; worker < 64; ++worker) {
    const Time time{static_cast<std::int64_t>(random.below(8))};
    wakes.set(worker, time);
    // Posted in reverse: the order of posting counts only after the worker.
    events.insert({.time = time, .worker = worker, .sequence = 64 - worker});
  }
  for (const EventKey& event : events) {
    ASSERT_EQ(wakes.time(), event.time);
    ASSERT_EQ(wakes.pop(), event.worker);
  }
}

}  // namespace
}  // namespace servecast::kernel
