// SPDX-License-Identifier: Apache-2.0
// Rules that the golden numbers of tests/conformance/tables/operators.yaml do not reach.
#include "perf/ops/sol.hpp"

#include <gtest/gtest.h>

namespace servecast::perf {
namespace {

catalog::SystemCard card(const char* name) {
  return catalog::find_system(name).value();
}

TEST(Sol, NeverDerivesARateThatTheGpuLacks) {
  const Op experts =
      Experts{.hidden = 2048, .inter = 768, .topk = 8, .experts = 128, .quant = Quant::Nvfp4};
  const auto got = sol(experts, {.tokens = 64}, card("h200_sxm"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, Miss::Kind::MissingSystemFlops);
  EXPECT_NE(got.error().message.find("h200_sxm has no fp4"), std::string::npos);
  EXPECT_TRUE(sol(experts, {.tokens = 64}, card("b200_sxm")));
}

TEST(Sol, TakesNothingForNoTokens) {
  const auto got = sol(Gemm{.n = 8, .k = 8}, {}, card("h200_sxm"));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->ms(), 0.0);
}

TEST(Sol, SplitsTokensDownThenUp) {
  EXPECT_EQ(split_tokens(1027, 2, 4), 129);  // 513 over 4 ranks
  EXPECT_EQ(split_tokens(0, 2, 4), 0);
}

TEST(Sol, UsesTheRackThenTheSlowestLink) {
  const auto gb200 = card("gb200");
  EXPECT_EQ(link_rate(gb200, 4), 900e9);
  EXPECT_EQ(link_rate(gb200, 72), 900e9);
  EXPECT_EQ(link_rate(gb200, 73), 100e9);
  EXPECT_EQ(link_rate(card("h200_sxm"), 16), 50e9);
}

TEST(Dispatch, DependsOnTheEngine) {
  Dispatch d{.width = 64, .moe_ep = 8, .attention_dp = 2};
  const auto system = card("b200_sxm");
  EXPECT_EQ(parts_of(d, system)->size(), 2U);  // vLLM: all-reduce and all-gather
  d.engine = catalog::EngineKind::Sglang;
  const auto parts = parts_of(d, system).value();
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(std::get<Nccl>(parts[0]).kind, Collective::ReduceScatter);
  EXPECT_EQ(std::get<Nccl>(parts[0]).ranks, 4);
  EXPECT_EQ(std::get<Nccl>(parts[1]).width, 128);
  d.engine = catalog::EngineKind::TensorRtLlm;
  d.quant = Quant::Nvfp4;
  EXPECT_EQ(std::get<Nccl>(parts_of(d, system)->at(0)).width, 36);  // 128 * 0.28125
}

TEST(Overlap, CountsTheLongerGroup) {
  const OpStep one{.name = "a", .op = Elementwise{.in = 8, .out = 8}, .scale = 1.0};
  OpStep two = one;
  two.scale = 2.0;
  const auto system = card("h200_sxm");
  const OpShape x{.tokens = 100};
  const double alone = sol(one.op, x, system)->ms();
  EXPECT_DOUBLE_EQ(sol(Overlap{{one}, {two}}, x, system)->ms(), 2.0 * alone);
}

}  // namespace
}  // namespace servecast::perf
