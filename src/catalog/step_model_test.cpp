// SPDX-License-Identifier: Apache-2.0
#include "catalog/step_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace servecast::catalog {
namespace {

using testing::HasSubstr;

constexpr std::string_view kSmall = R"({
  "source": "a \"test\"", "licence": "none", "intervals": [{"support": "group", "ttft": 0.4, "tpot": 0.2}],
  "groups": ["a b c d"],
  "deviations": [{"coefficient": "collective_ms", "by": ["engine", "kind"], "spread": 0.1}],
  "effects": [
    {"coefficient": "collective_ms", "when": {}, "prior": 0.01, "prior_spread": 0.3},
    {"coefficient": "collective_ms", "when": {"engine": "vllm"}, "prior": 1, "prior_spread": 0.1, "factor": 2, "spread": 0.05, "rows": 7},
    {"coefficient": "link_share", "when": {"engine": "vllm", "kind": "moe"}, "prior": 0.5, "prior_spread": 0.1}
  ]
})";

TEST(StepModel, MultipliesTheEffectsThatApply) {
  const StepModel model = parse_step_model(kSmall, "small.json").value();
  LabelValues labels;
  EXPECT_EQ(model.value(Coefficient::CollectiveLatency, labels), 0.01);
  labels[Label::Engine] = "vllm";
  EXPECT_EQ(model.value(Coefficient::CollectiveLatency, labels), 0.02);
  EXPECT_EQ(model.value(Coefficient::LinkShare, labels), 1.0);
  labels[Label::Kind] = "moe";
  EXPECT_EQ(model.value(Coefficient::LinkShare, labels), 0.5);
}

TEST(StepModel, ReadsWhatItWrites) {
  const StepModel model = parse_step_model(kSmall, "small.json").value();
  const std::string text = to_json(model);
  const auto again = parse_step_model(text, "again.json");
  ASSERT_TRUE(again.has_value()) << again.error().front().message;
  EXPECT_EQ(to_json(*again), text);
  EXPECT_EQ(again->source, "a \"test\"");
  EXPECT_EQ(again->effects[1].rows, 7u);
}

TEST(StepModel, NamesWhatIsWrong) {
  const auto wrong = [](std::string_view from, std::string_view to) {
    std::string text(kSmall);
    text.replace(text.find(from), from.size(), to);
    return parse_step_model(text, "bad.json").error().front().message;
  };
  EXPECT_THAT(wrong("\"vllm\"", "3"), HasSubstr("effects[1].when.engine is 3"));
  EXPECT_THAT(wrong("\"engine\": \"vllm\"}", "\"motor\": \"vllm\"}"), HasSubstr("motor"));
  EXPECT_THAT(wrong("\"prior\": 0.01", "\"prior\": 0"),
              HasSubstr("effects[0].prior must be from 1e-9 to 1e9"));
  EXPECT_THAT(wrong("link_share", "chain_share"), HasSubstr("chain_share"));
  EXPECT_THAT(wrong("\"engine\", \"kind\"]", "\"engine\", \"kin\"]"),
              HasSubstr("deviations[0].by"));
}

TEST(StepModel, ShipsOneThatCoversEveryEngineAndKind) {
  const StepModel& model = shipped_step_model();
  for (const char* engine : {"vllm", "sglang", "trtllm"}) {
    for (const char* kind : {"dense", "windowed_moe", "moe", "linear", "latent", "sparse"}) {
      LabelValues labels;
      labels[Label::Engine] = engine;
      labels[Label::Kind] = kind;
      // Without its bases a product would stay near 1 ms.
      EXPECT_LT(model.value(Coefficient::LaunchPerLayer, labels), 0.4) << engine << ' ' << kind;
      EXPECT_NE(model.value(Coefficient::HostPerPass, labels), 1.0) << engine << ' ' << kind;
    }
  }
}

}  // namespace
}  // namespace servecast::catalog
