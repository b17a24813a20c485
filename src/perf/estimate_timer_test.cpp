// SPDX-License-Identifier: Apache-2.0
#include "perf/estimate_timer.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace servecast::perf {
namespace {

catalog::SystemCard b200() {
  return catalog::find_system("b200_sxm").value();
}

OpLists lists(std::int64_t window = 0) {
  ModelFacts facts;
  facts.layers = 32;
  facts.hidden = 4096;
  facts.vocab = 128256;
  facts.heads = 32;
  facts.kv_heads = 8;
  facts.head_dim = 128;
  facts.inter = 14336;
  facts.window = window;
  facts.windowed_layers = window > 0 ? 16 : 0;
  return op_lists(facts, {}, {}, {}).value();
}

std::shared_ptr<const EstimateTimer> bound_timer(std::int64_t window = 0,
                                                 const SpeedRatios& ratios = {}) {
  EstimateSpec spec;
  spec.system = b200();
  spec.lists = lists(window);
  spec.mode = DataMode::Sol;
  return estimate_timer(std::move(spec), ratios).value();
}

StepShape prompts(std::uint32_t requests, std::uint64_t isl, std::uint64_t prefix) {
  StepShape shape;
  shape.prefill_requests = requests;
  shape.prefill_isl = requests * isl;
  shape.prefill_prefix = requests * prefix;
  shape.prefill_attention = requests * (isl - prefix) * (isl + prefix);
  return shape;
}

TEST(EstimateTimer, RunEqualsSinglePassesToTheNanosecond) {
  const auto timer = bound_timer(128, {.step = 1.3, .decode = 0.7});
  for (const std::uint32_t requests : {1U, 7U, 256U, 9000U}) {
    for (const std::uint64_t start : {1ULL, 1000ULL, 8190ULL, 131070ULL}) {
      std::vector<Duration> run(40);
      const std::uint64_t context = start * requests + requests / 2;
      timer->decode_run({.requests = requests, .context = context, .capacity_tokens = 1}, run);
      for (std::size_t i = 0; i < run.size(); ++i) {
        const StepShape one{.decode_requests = requests, .decode_context = context + i * requests};
        EXPECT_EQ(run[i], timer->time(one).decode) << requests << " " << start << " " << i;
      }
    }
  }
}

TEST(EstimateTimer, AgreesWithTheEstimatorItself) {
  const Estimator estimator(b200(), {.mode = DataMode::Sol});
  const auto timer = bound_timer();
  const OpLists list = lists();
  const auto direct = [&](const OpList& ops, const OpShape& shape) {
    return estimator.time(ops, shape)->ms;
  };
  const double decode = direct(list.generation, {.tokens = 64, .batch = 64, .length = 3000});
  EXPECT_NEAR(to_ms(timer->time({.decode_requests = 64, .decode_context = 64 * 3000}).decode),
              decode, decode * 1e-4);
  for (const std::uint64_t prefix : {0ULL, 1024ULL, 3072ULL}) {
    const double prefill =
        direct(list.context, {.tokens = static_cast<std::int64_t>(2 * (4096 - prefix)),
                              .batch = 2,
                              .length = static_cast<double>(4096 - prefix),
                              .prefix = static_cast<double>(prefix)});
    EXPECT_NEAR(to_ms(timer->time(prompts(2, 4096, prefix)).prefill), prefill, prefill * 1e-3)
        << prefix;
  }
}

TEST(EstimateTimer, PricesAMixOfLengthsByItsPairs) {
  const auto timer = bound_timer();
  StepShape mixed = prompts(2, 8192, 0);
  mixed.prefill_attention = 15000ULL * 15000 + 1384ULL * 1384;
  EXPECT_GT(timer->time(mixed).prefill, timer->time(prompts(2, 8192, 0)).prefill);
}

TEST(EstimateTimer, FusesPromptsAndDecodes) {
  const auto timer = bound_timer();
  StepShape both = prompts(1, 512, 0);
  both.decode_requests = 64;
  both.decode_context = 64 * 1000;
  const StepTime alone = timer->time(prompts(1, 512, 0));
  const StepTime decode = timer->time({.decode_requests = 64, .decode_context = 64 * 1000});
  const StepTime fused = timer->time(both);
  EXPECT_EQ(fused.decode, decode.decode);
  EXPECT_LT(fused.sum(), alone.sum() + decode.sum());  // weights are read once
  EXPECT_GT(fused.sum(), alone.sum());
}

TEST(EstimateTimer, ReadsLessUnderAWindow) {
  const auto all = bound_timer();
  const auto windowed = bound_timer(128);
  const StepShape decode{.decode_requests = 64, .decode_context = 64 * 20000};
  EXPECT_LT(windowed->time(decode).sum(), all->time(decode).sum());
  const StepShape prefill = prompts(1, 32768, 24576);
  EXPECT_LT(windowed->time(prefill).sum(), all->time(prefill).sum());
}

TEST(EstimateTimer, SaysWhatEachOperatorContributes) {
  const auto timer = bound_timer();
  const StepShape shape = prompts(1, 1024, 0);
  double sum = 0.0;
  for (const OpShare& share : timer->shares(shape)) {
    EXPECT_EQ(share.time.ms == 0.0 || share.time.source == TimeSource::Sol, true) << share.name;
    sum += share.time.ms;
  }
  EXPECT_NEAR(sum, to_ms(timer->time(shape).sum()), sum * 1e-3);
}

TEST(EstimateTimer, NeedsTablesUnlessBoundsAreAskedFor) {
  EstimateSpec spec;
  spec.system = b200();
  spec.lists = lists();
  const auto refused = estimate_timer(std::move(spec));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().front().code, "timing.no_data");
}

TEST(EstimateTimer, NamesAPrecisionThatTheGpuLacks) {
  ModelFacts facts;
  facts.layers = 2;
  facts.hidden = facts.inter = 1024;
  facts.vocab = 1000;
  facts.heads = facts.kv_heads = 8;
  facts.head_dim = 128;
  EstimateSpec spec;
  spec.system = catalog::find_system("h100_sxm").value();
  spec.lists = op_lists(facts, {}, {.gemm = Quant::Nvfp4}, {}).value();
  spec.mode = DataMode::Sol;
  const auto refused = estimate_timer(std::move(spec));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().front().message.find("no fp4"), std::string::npos);
}

TEST(Knots, CoverEveryLengthOnce) {
  EXPECT_EQ(knot(0), 1.0);
  EXPECT_EQ(knot(1), 1.125);
  EXPECT_EQ(knot(8), 2.0);
  for (double x = 1.0; x < 6e7; x *= 1.01) {
    const std::size_t piece = piece_of(x);
    EXPECT_LE(knot(piece), x);
    EXPECT_GT(knot(piece + 1), x);
  }
  EXPECT_EQ(piece_of(0.5), 0U);
  EXPECT_LT(piece_of(67108863.0) + 1, kKnots);
}

}  // namespace
}  // namespace servecast::perf
