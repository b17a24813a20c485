// SPDX-License-Identifier: Apache-2.0
#include "config/places.hpp"

#include <gtest/gtest.h>

namespace servecast::config {
namespace {

Config config_of(std::vector<std::string> sets) {
  const std::string text =
      "engine: {mode: aggregated, model: Qwen/Qwen3-8B, hardware: l4, backend: vllm, workers: "
      "{aggregated: {}}}\n"
      "traffic:\n"
      "  load: {concurrency: 3}\n"
      "  stop: {requests: 7}\n";
  Result<Config> config = read({.path = "run.yaml", .text = text, .sets = std::move(sets)});
  EXPECT_TRUE(config) << to_text(config.error().front());
  return *std::move(config);
}

std::string placed_text(const std::string& message, const Config& config) {
  return to_text(placed({{"code", message, {}, ""}}, config).front());
}

TEST(Places, AProblemGetsThePlaceOfTheFieldItBeginsWith) {
  const Config config = config_of({});
  EXPECT_EQ(placed_text("traffic.stop.requests is 7: bad", config),
            "run.yaml:4:20: traffic.stop.requests is 7: bad");
  EXPECT_EQ(placed_text("traffic.load: bad", config), "run.yaml:3:23: traffic.load: bad");
}

TEST(Places, AFieldLeftOutHasThePlaceOfTheBlockAround) {
  EXPECT_EQ(placed_text("traffic.source.input_tokens is 1: bad", config_of({})),
            "run.yaml:3:23: traffic.source.input_tokens is 1: bad");
}

TEST(Places, AnOverrideIsNamed) {
  EXPECT_EQ(placed_text("traffic.stop.requests is 8: bad", config_of({"traffic.stop.requests=8"})),
            "--set: traffic.stop.requests is 8: bad");
}

TEST(Places, APlaceThatIsKnownStays) {
  const Problems problems =
      placed({{"code", "traffic.stop.requests", {"a.jsonl", 5, 0}, ""}}, config_of({}));
  EXPECT_EQ(problems.front().place, (Place{"a.jsonl", 5, 0}));
}

}  // namespace
}  // namespace servecast::config
