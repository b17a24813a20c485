// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "catalog/model_card.hpp"
#include "cli/estimate_report.hpp"
#include "cli/prediction.hpp"
#include "cli/static_estimate.hpp"
#include "perf/coefficients.hpp"

namespace servecast::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Case {
  std::string model = "Qwen/Qwen3-8B", system = "h200_sxm", backend = "vllm";
  std::string parallelism = "tensor: 1";
  std::uint32_t input = 1024, output = 64, batch = 1;
  std::string timing = "type: default";
};

config::Config config_of(const Case& c) {
  const std::string text = fmt::format(
      "traffic:\n  source: {{input_tokens: {}, output_tokens: {}}}\n"
      "  load: {{concurrency: {}}}\n  stop: {{requests: {}}}\n"
      "engine:\n  model: {}\n  hardware: {}\n  backend: {}\n"
      "  workers: {{aggregated: {{parallelism: {{{}}}, timing: {{{}}}}}}}\n",
      c.input, c.output, c.batch, c.batch, c.model, c.system, c.backend, c.parallelism, c.timing);
  return config::read({.path = "run.yaml", .text = text, .sets = {}, .seed = {}}).value();
}

double number(const report::Object& summary, const char* key) {
  return report::find(summary, key)->number().value();
}

// bugs.md A47: one configuration through both commands.
void expect_as_replayed(const Case& c) {
  SCOPED_TRACE(fmt::format("{} {} batch {}", c.model, c.backend, c.batch));
  const config::Config config = config_of(c);
  const Estimate found = estimate(config).value();
  const Prepared prepared = prepare(config).value();
  const Prediction prediction = run(prepared, {}).value();
  const report::Object& summary = prediction.report.summary;
  EXPECT_EQ(to_ms(found.times.prefill), number(summary, "mean_ttft_ms"));
  EXPECT_EQ(found.times.tpot_ms(), number(summary, "mean_tpot_ms"));
  EXPECT_EQ(to_ms(found.times.request()), number(summary, "mean_e2e_latency_ms"));
  EXPECT_NEAR(found.output_tokens_per_s() / number(summary, "output_throughput_tok_s"), 1.0, 1e-12);
  EXPECT_NEAR(found.requests_per_s() / number(summary, "request_throughput_rps"), 1.0, 1e-12);
}

TEST(Estimate, OfOneRequestIsWhatAReplayOfItGives) {
  for (const char* backend : {"vllm", "sglang", "trtllm"}) {
    expect_as_replayed({.backend = backend});
    expect_as_replayed({.model = "openai/gpt-oss-20b", .backend = backend, .output = 300});
    expect_as_replayed({.backend = backend, .timing = "type: fixed, prefill_ms: 7, decode_ms: 3"});
    expect_as_replayed({.backend = backend, .timing = "type: polynomial"});
  }
}

TEST(Estimate, OfABatchIsWhatAReplayGivesWherePromptsShareAPass) {
  for (const char* backend : {"vllm", "sglang", "trtllm"})
    expect_as_replayed({.backend = backend, .input = 200, .batch = 16});
  expect_as_replayed({.model = "deepseek-ai/DeepSeek-R1",
                      .system = "b200_sxm",
                      .parallelism = "attention_data: 8, moe_expert: 8",
                      .input = 200,
                      .batch = 64});
}

// Ranks that hold the model, experts dealt to all.
Result<Estimate> on_ranks(const std::string& model, bool has_experts, const char* system,
                          const char* backend, unsigned ranks) {
  return estimate(
      config_of({.model = model,
                 .system = system,
                 .backend = backend,
                 .parallelism = has_experts ? fmt::format("tensor: {0}, moe_expert: {0}", ranks)
                                            : fmt::format("tensor: {}", ranks),
                 .output = 1024}));
}

// bugs.md A48.
TEST(Estimate, AnswersEveryModelOnEverySystemOrNamesTheReason) {
  std::size_t answered = 0;
  for (const catalog::ModelCard& model : catalog::models()) {
    for (const char* system : {"h200_sxm", "b200_sxm"}) {
      for (const char* backend : {"vllm", "sglang", "trtllm"}) {
        SCOPED_TRACE(model.name + " " + system + " " + backend);
        bool fits = false;
        Problems problems;
        for (unsigned ranks = 1; ranks <= 16 && !fits; ranks *= 2) {
          const auto found =
              on_ranks(model.name, model.experts() != nullptr, system, backend, ranks);
          fits = found.has_value();
          if (!found) problems = found.error();
          if (!found) continue;
          EXPECT_GT(found->times.tpot_ms(), found->tpot_bound_ms);
          EXPECT_GT(to_ms(found->times.prefill), found->ttft_bound_ms);
          EXPECT_GE(found->requests_max, 1u);
        }
        answered += fits ? 1 : 0;
        // The one reason: Hopper multiplies no nvfp4 experts.
        const bool possible = model.name.find("NVFP4") == std::string::npos &&
                              model.name.find("FP4-v2") == std::string::npos;
        if (possible || std::string(system) == "b200_sxm") {
          EXPECT_TRUE(fits) << (problems.empty() ? "" : problems.front().message);
        } else if (!fits) {
          EXPECT_EQ(problems.front().code, "precision.unsupported");
        }
      }
    }
  }
  EXPECT_GE(answered, 500u);
}

TEST(Estimate, RefusesWhatDoesNotFit) {  // bugs.md A43
  const auto model = estimate(config_of({.model = "meta-llama/Llama-3.1-405B"}));
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().front().code, "memory.does_not_fit");
  const auto batch = estimate(config_of({.input = 30'000, .batch = 100}));
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().front().code, "memory.batch_does_not_fit");
  // 470 blocks each; the 12226 blocks are all that is left of the GPU.
  EXPECT_THAT(batch.error().front().message,
              HasSubstr("needs 443554087000 bytes of KV cache, available are"));
  EXPECT_THAT(batch.error().front().message, HasSubstr("which hold 26 requests"));
}

TEST(Estimate, RefusesWhatIsNoBatchOfEqualRequests) {
  const auto code = [](const std::string& length, const std::vector<std::string>& sets) {
    const std::string text = fmt::format(
        "traffic: {{source: {{{}, output_tokens: 9}}, stop: {{requests: 3}}}}\n"
        "engine: {{model: Qwen/Qwen3-8B, hardware: h200_sxm, workers: {{aggregated: {{}}}}}}\n",
        length);
    const auto found = estimate(
        config::read({.path = "run.yaml", .text = text, .sets = sets, .seed = {}}).value());
    return found ? "" : found.error().front().code;
  };
  EXPECT_EQ(code("input_tokens: 9", {}), "");
  EXPECT_EQ(code("input_tokens: 9", {"traffic.load={type: poisson, requests_per_second: 2}"}),
            "estimate.traffic");
  EXPECT_EQ(code("input_distribution: {type: uniform, min: 1, max: 9}", {}), "estimate.traffic");
  EXPECT_EQ(code("input_tokens: 9", {"engine.nextn=2", "engine.nextn_accepted=1"}),
            "estimate.speculation");
}

// A step model that has seen this placement and tells how far it is off.
std::shared_ptr<const catalog::StepModel> measured_model(const std::string& group) {
  auto model = std::make_shared<catalog::StepModel>(catalog::shipped_step_model());
  model->groups = {group};
  model->intervals = {{"group", 0.1, 0.05}, {"engine", 0.4, 0.3}};
  return model;
}

TEST(Estimate, TellsSupportAndIntervalOfTheStepModel) {
  config::Config config = config_of({});
  const perf::Placement placement = config::deploy(config).value().placement;
  config.engine.timing.step_model = measured_model(perf::group_of(placement));
  const Estimate near = estimate(config).value();
  EXPECT_EQ(near.evidence->support, fit::Support::Group);
  EXPECT_EQ(near.evidence->interval->ttft, 0.1);
  const std::string table = estimate_table(near, Detail::Brief);
  EXPECT_THAT(table,
              HasSubstr(fmt::format("{:.2f} to {:.2f}", to_ms(near.times.prefill) * std::exp(-0.1),
                                    to_ms(near.times.prefill) * std::exp(0.1))));
  config.engine.timing.step_model = measured_model("x/1x1 h200_sxm vllm bf16/none");
  const Estimate far = estimate(config).value();
  EXPECT_EQ(far.evidence->support, fit::Support::Engine);
  EXPECT_EQ(far.evidence->interval->tpot, 0.3);
  config.engine.timing.step_model = measured_model("x/1x1 h200_sxm sglang bf16/none");
  const Estimate none = estimate(config).value();
  EXPECT_EQ(none.evidence->support, fit::Support::None);
  EXPECT_FALSE(none.evidence->interval);
}

// The parts are those of the model that the passes are timed by, also of one in a file.
TEST(Estimate, DividesPassesByTheStepModelOfAFile) {
  catalog::StepModel model = catalog::shipped_step_model();
  for (catalog::Effect& effect : model.effects) {
    if (effect.coefficient == catalog::Coefficient::HostPerPass) effect.factor = 50.0;
  }
  const std::string path = testing::TempDir() + "estimate-step-model.json";
  std::ofstream(path) << to_json(model);
  const Estimate found =
      estimate(config_of({.timing = "type: default, step_model: " + path})).value();
  const perf::PartTime& host = found.decode->parts.front();
  EXPECT_EQ(host.name, perf::PartName::HostAndLaunches);
  EXPECT_GT(to_ms(host.time), 50.0);
  EXPECT_LT(to_ms(host.time), 54.0);
}

TEST(Estimate, ListsEffectsWhoseProductIsTheCoefficient) {
  const Estimate found = estimate(config_of({.model = "Qwen/Qwen3-30B-A3B"})).value();
  ASSERT_EQ(found.evidence->coefficients.size(), 14u);
  for (const Applied& applied : found.evidence->coefficients) {
    double product = 1.0;
    for (const catalog::Effect& effect : applied.effects) product *= effect.factor;
    EXPECT_TRUE(applied.value == product || (applied.value == 1.0 && product > 1.0))
        << to_string(applied.coefficient);
  }
  EXPECT_THAT(estimate_json(found, Detail::Full), HasSubstr("\"launch_ms_per_layer\""));
  EXPECT_THAT(estimate_json(found, Detail::Brief), Not(HasSubstr("\"launch_ms_per_layer\"")));
}

TEST(Estimate, HasNoTpotForOneTokenAndNoPartsWithoutOperators) {
  const Estimate one = estimate(config_of({.output = 1})).value();
  EXPECT_FALSE(one.decode);
  EXPECT_THAT(estimate_json(one, Detail::Brief), HasSubstr("\"tpot\": null"));
  EXPECT_THAT(estimate_json(one, Detail::Brief),
              HasSubstr("\"output_throughput_tok_s_per_user\": null"));
  const Estimate fixed =
      estimate(config_of({.timing = "type: fixed, prefill_ms: 70, decode_ms: 30"})).value();
  EXPECT_TRUE(fixed.prefill.parts.empty());
  EXPECT_FALSE(fixed.evidence);
  EXPECT_GT(fixed.prefill.bound_ms, 0.0);
}

TEST(Estimate, WarnsWhereARunMakesOtherPasses) {
  EXPECT_TRUE(estimate(config_of({})).value().warnings.empty());
  const Estimate large = estimate(config_of({.batch = 300})).value();
  ASSERT_EQ(large.warnings.size(), 2u);
  EXPECT_THAT(large.warnings[0], HasSubstr("307200 prompt tokens"));
  EXPECT_THAT(large.warnings[1], HasSubstr("at most 256 at a time"));
}

}  // namespace
}  // namespace servecast::cli
