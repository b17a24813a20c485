// SPDX-License-Identifier: Apache-2.0
#include "cli/prediction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace servecast::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Prepared prepared(const std::string& engine) {
  const std::string text =
      "traffic: {source: {input_tokens: 64, output_tokens: 8}, stop: {requests: 3}}\n"
      "engine:\n  model: Qwen/Qwen3-8B\n  hardware: h200_sxm\n" +
      engine;
  return prepare(config::read({.path = "run.yaml", .text = text, .sets = {}, .seed = {}}).value())
      .value();
}

std::string prediction_of(const Prepared& prepared) {
  return report::prediction_json(run(prepared, {})->report);
}

// Results of both fidelities must not be taken for each other (decisions.md 31).
TEST(Prediction, TellsTheFidelityOfAnSglangDeployment) {
  const Prepared exact = prepared(
      "  backend: sglang\n  workers: {aggregated: {sglang: {fidelity: exact, page_size: 4}}}\n");
  EXPECT_THAT(prediction_of(exact), HasSubstr("\"fidelity\": \"exact\""));
  EXPECT_THAT(plan_line(exact), HasSubstr("KV blocks of 4 tokens each, SGLang exact;"));
  const Prepared compat =
      prepared("  backend: sglang\n  workers: {aggregated: {kv_cache: {block_size: 4}}}\n");
  EXPECT_THAT(prediction_of(compat), HasSubstr("\"fidelity\": \"compat\""));
  const Prepared vllm = prepared("  workers: {aggregated: {}}\n");
  EXPECT_THAT(prediction_of(vllm), Not(HasSubstr("fidelity")));
  EXPECT_THAT(plan_line(vllm), Not(HasSubstr("SGLang")));
}

TEST(Prediction, CountsTheTokensOfABlockInWords) {
  EXPECT_THAT(plan_line(prepared("  backend: sglang\n  workers: {aggregated: {}}\n")),
              HasSubstr("KV blocks of 1 token each"));
}

}  // namespace
}  // namespace servecast::cli
