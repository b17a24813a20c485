// SPDX-License-Identifier: Apache-2.0
#include "perf/breakdown.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/random.hpp"
#include "perf/a_placement.hpp"
#include "perf/memory.hpp"
#include "perf/static_batch.hpp"
#include "perf/timers.hpp"

namespace servecast::perf {
namespace {

using catalog::EngineKind;

// Any card on any system by any engine, on ranks that it can have.
Placement random_placement(Random& random) {
  constexpr EngineKind kEngines[] = {EngineKind::Vllm, EngineKind::Sglang, EngineKind::TensorRtLlm};
  for (;;) {
    const auto& models = catalog::models();
    const auto& systems = catalog::systems();
    Placement placement =
        a_placement(models[random.below(models.size())].name,
                    systems[random.below(systems.size())].name, 1u << random.below(5));
    placement.engine = kEngines[random.below(3)];
    Parallelism& p = placement.parallelism;
    p.pipeline = random.below(4) == 0 ? 2 : 1;
    if (placement.model.experts() != nullptr && random.below(3) == 0)
      std::swap(p.tensor, p.attention_data);
    if (placement.model.experts() != nullptr && random.below(2) == 0)
      std::swap(p.moe_tensor, p.moe_expert);
    if (check(placement).empty()) return placement;
  }
}

StepShape random_shape(Random& random) {
  StepShape shape;
  for (std::uint64_t n = random.below(5); n > 0; --n) {
    const std::uint64_t past = random.below(3) == 0 ? random.below(50'000) : 0;
    const std::uint64_t fresh = 1 + (random.below(8192) >> random.below(12));
    shape.prefill_requests += 1;
    shape.prefill_isl += past + fresh;
    shape.prefill_prefix += past;
    shape.prefill_attention += fresh * (2 * past + fresh);
  }
  shape.decode_requests = static_cast<std::uint32_t>(random.below(512) >> random.below(9));
  shape.decode_context = shape.decode_requests * (1 + (random.below(100'000) >> random.below(12)));
  shape.decode_tokens_each = random.below(4) == 0 ? 3 : 1;
  return shape;
}

Coefficients coefficients_of(const Placement& placement) {
  return {catalog::shipped_step_model(), labels_of(placement)};
}

std::int64_t sum_ns(const Breakdown& breakdown) {
  return std::accumulate(breakdown.parts.begin(), breakdown.parts.end(), std::int64_t{0},
                         [](std::int64_t sum, const PartTime& part) { return sum + part.time.ns; });
}

double total(const PartSums& sums) {
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

TEST(Breakdown, SumsToThePassOfTheTimer) {
  Random random(1, "breakdown");
  for (int round = 0; round < 400; ++round) {
    const Placement placement = random_placement(random);
    const PassCost cost = pass_cost_of(placement, coefficients_of(placement));
    const PassCost peak = peak_cost_of(placement);
    const Timer timer = analytic_timer(placement).value();
    const StepShape shape = random_shape(random);
    const Duration pass = timer->time(shape).sum();
    // Two roundings to nanoseconds, of decode and of the whole.
    ASSERT_NEAR(total(part_sums(cost, shape)), parts_of(cost, shape).total_ms,
                1e-9 * to_ms(pass) + 1e-12);
    const Breakdown breakdown = breakdown_of(cost, peak, shape, pass);
    ASSERT_EQ(sum_ns(breakdown), pass.ns);
    for (const PartTime& part : breakdown.parts) {
      ASSERT_GE(part.time.ns, 0);
      const double ms = part_sums(cost, shape)[static_cast<std::size_t>(part.name)];
      ASSERT_NEAR(to_ms(part.time), ms, 2e-6) << to_string(part.name);
    }
  }
}

TEST(Breakdown, NoPartIsFasterThanItsBound) {
  Random random(2, "breakdown");
  for (int round = 0; round < 1000; ++round) {
    const Placement placement = random_placement(random);
    const PassCost cost = pass_cost_of(placement, coefficients_of(placement));
    const PassCost peak = peak_cost_of(placement);
    const StepShape shape = random_shape(random);
    const PartSums sums = part_sums(cost, shape);
    const PartSums bounds = part_bounds(peak, shape);
    for (std::size_t i = 0; i < sums.size(); ++i)
      ASSERT_LE(bounds[i], sums[i] * (1 + 1e-12))
          << placement.model.name << " " << to_string(static_cast<PartName>(i));
    // In whole nanoseconds.
    ASSERT_LE(bound_ms(peak, shape),
              to_ms(analytic_timer(placement).value()->time(shape).sum()) + 1e-6);
  }
}

TEST(Breakdown, BoundsAreBytesAndOperationsAtPeakRates) {
  const Placement placement = a_placement("Llama-3.1-8B", "h200_sxm");
  const PartSums decode =
      part_bounds(peak_cost_of(placement), {.decode_requests = 1, .decode_context = 1000});
  const double rate = double(placement.system.memory_bytes_per_s);
  const auto at = [](const PartSums& sums, PartName name) {
    return sums[static_cast<std::size_t>(name)];
  };
  // 32 layers of 218,103,808 weights of 2 bytes; 131,072 bytes of KV a token; Q and output.
  EXPECT_NEAR(at(decode, PartName::DenseWeights), 32 * 218'103'808.0 * 2 / rate * 1e3, 1e-9);
  EXPECT_NEAR(at(decode, PartName::DecodeAttention),
              (131'072.0 * 1000 + 32 * 4.0 * 4096) / rate * 1e3, 1e-9);
  EXPECT_NEAR(at(decode, PartName::Head), 128'256.0 * 4096 * 2 / rate * 1e3, 1e-9);
  EXPECT_EQ(at(decode, PartName::HostAndLaunches), 0.0);
  EXPECT_EQ(at(decode, PartName::Sequences), 0.0);
  const PartSums prefill =
      part_bounds(peak_cost_of(placement),
                  {.prefill_requests = 1, .prefill_isl = 8000, .prefill_attention = 64'000'000});
  const double flops = double(placement.system.flops_per_s.bf16.value());
  EXPECT_NEAR(at(prefill, PartName::DenseWeights), 32 * 218'103'808.0 * 2 * 8000 / flops * 1e3,
              1e-9);
  EXPECT_EQ(at(prefill, PartName::PrefillLaunches), 0.0);
}

TEST(Breakdown, DividesByRatiosLikeTheTimer) {
  const Placement placement = a_placement("Qwen3-30B-A3B", "h100_sxm", 2);
  const PassCost cost = pass_cost_of(placement, coefficients_of(placement));
  const StepShape shape{.decode_requests = 8, .decode_context = 8000};
  const Duration whole = analytic_timer(placement).value()->time(shape).sum();
  const Duration half = analytic_timer(placement, {.step = 2.0}).value()->time(shape).sum();
  const PassCost peak = peak_cost_of(placement);
  const Breakdown a = breakdown_of(cost, peak, shape, whole);
  const Breakdown b = breakdown_of(cost, peak, shape, half);
  ASSERT_EQ(a.parts.size(), b.parts.size());
  EXPECT_EQ(sum_ns(b), half.ns);
  for (std::size_t i = 0; i < a.parts.size(); ++i)
    EXPECT_NEAR(double(a.parts[i].time.ns), 2.0 * double(b.parts[i].time.ns), 3.0);
}

TEST(StaticBatch, IsTheSumOfItsPasses) {
  const Placement placement = a_placement("gpt-oss-20b", "h100_sxm");
  const Timer timer = analytic_timer(placement).value();
  const StaticBatch batch{.input_tokens = 100, .output_tokens = 150, .requests = 7};
  const StaticTimes times = static_times(*timer, batch);
  EXPECT_EQ(times.decode_passes, 149u);
  EXPECT_EQ(times.prefill, timer->time(prefill_shape(batch)).sum());
  Duration decode;
  for (std::uint32_t pass = 0; pass < 149; ++pass)
    decode = decode + timer->time(decode_shape(batch, pass)).sum();
  EXPECT_EQ(times.decode, decode);
  EXPECT_EQ(times.request(), times.prefill + decode);
  EXPECT_NEAR(times.tpot_ms(), to_ms(decode) / 149, 5e-10);
}

TEST(StaticBatch, HasNoTpotWithOneToken) {
  const Timer timer = fixed_timer({.prefill_ms = 3, .decode_ms = 2}).value();
  const StaticTimes times = static_times(*timer, {.input_tokens = 5});
  EXPECT_EQ(times.tpot_ms(), 0.0);
  EXPECT_EQ(times.request().ns, 3'000'000);
}

TEST(StaticBatch, NeverGetsFasterWithMoreTokensOrRequests) {
  Random random(3, "static batch");
  for (int round = 0; round < 100; ++round) {
    const Timer timer = analytic_timer(random_placement(random)).value();
    const auto any = [&](std::uint64_t limit) {
      return static_cast<std::uint32_t>(1 + (random.below(limit) >> random.below(8)));
    };
    const StaticBatch batch{
        .input_tokens = any(8192), .output_tokens = 1 + any(64), .requests = any(256)};
    const StaticTimes before = static_times(*timer, batch);
    StaticBatch longer = batch, more = batch, further = batch;
    longer.input_tokens += any(1000);
    more.requests += any(64);
    further.output_tokens += any(64);
    for (const StaticBatch& grown : {longer, more}) {
      ASSERT_GE(static_times(*timer, grown).prefill, before.prefill);
      ASSERT_GE(static_times(*timer, grown).decode, before.decode);
    }
    ASSERT_GE(static_times(*timer, further).tpot_ms(), before.tpot_ms());
  }
}

TEST(Placement, WeightsOfARankFallWithTensorRanks) {
  for (const catalog::ModelCard& model : catalog::models()) {
    std::uint64_t before = UINT64_MAX;
    for (const std::uint32_t ranks : {1u, 2u, 4u, 8u}) {
      const Placement placement = a_placement(model.name, "gb300", ranks);
      if (!check(placement).empty()) continue;
      EXPECT_LT(weight_bytes(placement), before) << model.name << " on " << ranks;
      before = weight_bytes(placement);
    }
  }
}

}  // namespace
}  // namespace servecast::perf
