// SPDX-License-Identifier: Apache-2.0
#include "perf/operators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "perf/a_placement.hpp"
#include "perf/coefficients.hpp"
#include "perf/cost_lines.hpp"

namespace servecast::perf {
namespace {

using catalog::Precision;

constexpr Rates kH200{4.8e12, 989e12};
constexpr Rates kB200Fp4{7.7e12, 9000e12};

double ms(const Work& work, double tokens, const Rates& rates = kH200) {
  const Line line = line_of(work, rates, 1.0);
  return std::max(line.fixed_ms + line.per_token_ms * tokens, line.math_per_token_ms * tokens);
}
void expect_near(double value, double golden) {
  EXPECT_NEAR(value / golden, 1.0, 1e-9) << golden;
}

// Golden values: perfmodel.md cases 1-3.
TEST(Operators, MatrixIsBoundByMathOrMemory) {
  expect_near(ms(matrix_work({4096, 4096, Precision::Bfloat16}), 4096), 0.1389675970394338);
  expect_near(ms(matrix_work({4096, 4096, Precision::Bfloat16}), 8), 0.0070178133333333);
  expect_near(ms(matrix_work({8192, 8192, Precision::Nvfp4}), 16, kB200Fp4), 0.004921583376623377);
}

TEST(Operators, ElementwiseMovesItsElements) {  // case 4
  expect_near(ms(elementwise_work(8192, 8192), 4096), 134'217'728 / 4.8e12 * 1000);
}

TEST(Operators, GroupedAttentionReadsKvAndMultiplies) {  // cases 5-7
  const catalog::GroupedAttention attention{
      .heads = 32, .kv_heads = 8, .head_dim = 128, .head_dim_value = 128};
  const AttentionWork work = attention_work(attention, 1, 2.0);
  expect_near(4096.0 * 4096 * work.prefill_flops_per_pair / 989e12 * 1000, 0.1389675970394338);
  expect_near((4096.0 * 4096 - 3072.0 * 3072) * work.prefill_flops_per_pair / 989e12 * 1000,
              0.06079832370475228);
  expect_near(4096 * (work.prefill_bytes_per_new + work.prefill_bytes_per_context) / 4.8e12 * 1000,
              0.017476266666666667);
  expect_near(32 * 4096.0 * work.decode_flops_per_context / 989e12 * 1000, 0.002171368703741153);
  expect_near((32 * 4096.0 * work.decode_bytes_per_context + 32 * work.decode_bytes_per_request) /
                  4.8e12 * 1000,
              0.11195733333333334);
}

TEST(Operators, LatentAttentionWorksInTheLatentSpace) {  // case 8
  const auto r1 = a_placement("DeepSeek-R1", "h200_sxm");
  const auto& attention = *r1.model.mixer<catalog::LatentAttention>();
  const AttentionWork rank = attention_work(attention, 8, 2.0);  // 16 heads
  expect_near(4096.0 * 4096 * rank.prefill_flops_per_pair / 989e12 * 1000, 0.08685474814964611);
  expect_near(4096 * (rank.prefill_bytes_per_new + rank.prefill_bytes_per_context) / 4.8e12 * 1000,
              0.017476266666666667);
  const AttentionWork whole = attention_work(attention, 1, 2.0);
  expect_near(32 * 4096.0 * whole.decode_flops_per_context / 989e12 * 1000, 0.036913267963599596);
  expect_near(32 * (whole.decode_bytes_per_request + 4095.0 * whole.decode_bytes_per_context) /
                  4.8e12 * 1000,
              0.03330645333333333);
}

TEST(Operators, ExpertsReadTheirWeightsOnce) {  // case 9
  Placement placement = a_placement("Qwen3-30B-A3B", "h200_sxm", 4);
  placement.parallelism.moe_tensor = 1;
  placement.parallelism.moe_expert = 4;
  const ExpertWork work = expert_work(placement, {.experts = 32, .width = 768, .hidden = 2048});
  EXPECT_EQ(work.all.bytes, 301'989'888.0);
  expect_near(ms(work.all, 64), 0.06325589333333333);
  EXPECT_NEAR(work.all.flops_per_token * 64 / 989e12 * 1000, 0.0012213949, 5e-11);
  expect_near(ms(work.all, 4096), 0.08475989333333333);
  EXPECT_EQ(work.share_missed, 1.0 - 8.0 / 128.0);
}

TEST(Operators, MoreTokensVisitMoreExperts) {
  EXPECT_EQ(share_touched(0.9375, 0), 0.0);
  EXPECT_DOUBLE_EQ(share_touched(0.9375, 1), 0.0625);
  EXPECT_NEAR(share_touched(0.9375, 37), 1.0 - std::pow(0.9375, 37), 1e-15);
  EXPECT_EQ(share_touched(0.9375, 1'000'000'000'000), 1.0);
  EXPECT_EQ(share_touched(0.0, 5), 1.0);  // every token visits every expert
}

TEST(Operators, CollectivesMoveTheirRingShares) {  // case 10
  const catalog::SystemCard h200 = catalog::find_system("h200_sxm").value();
  const double link = link_bytes_per_s(h200, 8);
  EXPECT_EQ(link, 450e9);
  expect_near(all_reduce_bytes(8'388'608 * 2.0, 8) / link * 1000, 0.06524472888888889);
  expect_near(gather_bytes(4'194'304 * 2.0, 2) / link * 1000, 0.009320675555555556);
  expect_near(gather_bytes(4'194'304 * 2.0, 8) / link * 1000, 0.01631118222222222);
  EXPECT_EQ(all_reduce_bytes(1e9, 1), 0.0);
}

TEST(Operators, LinksSlowDownOutsideTheNodeAndTheRack) {
  EXPECT_EQ(link_bytes_per_s(catalog::find_system("h200_sxm").value(), 16), 50e9);
  const catalog::SystemCard gb200 = catalog::find_system("gb200").value();
  EXPECT_EQ(link_bytes_per_s(gb200, 4), 900e9);
  EXPECT_EQ(link_bytes_per_s(gb200, 72), 900e9);
  EXPECT_EQ(link_bytes_per_s(gb200, 73), 100e9);
}

TEST(Coefficients, StayWithinThePhysical) {
  for (const catalog::ModelCard& model : catalog::models()) {
    for (const catalog::SystemCard& system : catalog::systems()) {
      for (const auto engine : {catalog::EngineKind::Vllm, catalog::EngineKind::Sglang,
                                catalog::EngineKind::TensorRtLlm}) {
        Placement placement{
            .model = model, .system = system, .engine = engine, .precisions = precisions_of(model)};
        using enum catalog::Coefficient;
        const Coefficients c(catalog::shipped_step_model(), labels_of(placement));
        for (const auto share : {LinearMemory, LinearFlops, ExpertMemory, ExpertFlops, KvMemory,
                                 PrefillFlops, LinkShare}) {
          ASSERT_GT(c[share], 0.02) << to_string(share);
          ASSERT_LE(c[share], 1.0) << to_string(share);
        }
        for (const auto ms :
             {HostPerPass, LaunchPerLayer, PerSequence, CollectiveLatency, PrefillLaunchPerLayer}) {
          ASSERT_GT(c[ms], 0.001) << to_string(ms);
          ASSERT_LT(c[ms], 5.0) << to_string(ms);
        }
      }
    }
  }
}

TEST(Coefficients, CollectivesGrowByAQuarterADoubling) {
  EXPECT_EQ(collective_growth(2), 1.0);
  EXPECT_EQ(collective_growth(4), 1.25);
  EXPECT_EQ(collective_growth(8), 1.5);
  EXPECT_EQ(collective_growth(6), 1.375);
}

}  // namespace
}  // namespace servecast::perf
