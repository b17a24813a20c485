// SPDX-License-Identifier: Apache-2.0
#include "kernel/order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace servecast::kernel {
namespace {

TEST(EventKey, RunsPassesThenReadyWorkersThenTransfersAtOneTime) {  // replay.md 32 case 14
  std::vector<std::pair<EventKey, std::string>> events{
      {{.time = {10}, .phase = Phase::Transfer, .sequence = 0}, "transfer"},
      {{.time = {10},
        .phase = Phase::WorkerReady,
        .stage = Stage::Decode,
        .worker = 3,
        .sequence = 1},
       "worker ready w3"},
      {{.time = {10}, .stage = Stage::Decode, .worker = 4, .sequence = 2}, "decode pass w4"},
      {{.time = {10}, .stage = Stage::Prefill, .worker = 2, .sequence = 3}, "prefill pass w2"}};
  std::sort(events.begin(), events.end());
  std::vector<std::string> names;
  for (const auto& [key, name] : events) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"prefill pass w2", "decode pass w4", "worker ready w3",
                                             "transfer"}));
}

// Each key differs from the one before in one part alone, and every later part points the other
// way.
TEST(EventKey, ComparesTimePhaseStageWorkerPassAndPostingInThisOrder) {
  const std::vector<EventKey> keys{
      {{1}, Phase::Scaling, Stage::Decode, 9, 9, 9},
      {{2}, Phase::PassComplete, Stage::Decode, 9, 9, 9},
      {{2}, Phase::WorkerReady, Stage::Decode, 9, 9, 9},
      {{2}, Phase::Transfer, Stage::Decode, 9, 9, 9},
      {{2}, Phase::Telemetry, Stage::Decode, 9, 9, 9},
      {{2}, Phase::Scaling, Stage::Aggregated, 9, 9, 9},
      {{2}, Phase::Scaling, Stage::Prefill, 9, 9, 9},
      {{2}, Phase::Scaling, Stage::Decode, 0, 9, 9},
      {{2}, Phase::Scaling, Stage::Decode, 1, 0, 9},
      {{2}, Phase::Scaling, Stage::Decode, 1, 1, 0},
      {{2}, Phase::Scaling, Stage::Decode, 1, 1, 1},
  };
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t j = 0; j < keys.size(); ++j)
      EXPECT_EQ(keys[i] < keys[j], i < j) << i << ' ' << j;
  }
}

}  // namespace
}  // namespace servecast::kernel
