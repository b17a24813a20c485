// SPDX-License-Identifier: Apache-2.0
#include "fit/widths.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace servecast::fit {
namespace {

using Four = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

FiledWidths filed(std::uint32_t tensor, std::uint32_t data, std::uint32_t moe_tensor,
                  std::uint32_t moe_expert) {
  FiledWidths widths;
  widths.tensor = tensor;
  widths.attention_data = data;
  widths.moe_tensor = moe_tensor;
  widths.moe_expert = moe_expert;
  return widths;
}

Four four(const RealWidths& real) {
  const perf::Parallelism& p = real.parallelism;
  return {p.tensor, p.attention_data, p.moe_tensor, p.moe_expert};
}

TEST(Widths, AProductOfTensorIsItsRoot) {
  const RealWidths real = real_widths(filed(64, 1, 8, 8), true);
  EXPECT_EQ(four(real), (Four{8, 1, 1, 8}));
  EXPECT_EQ(real.repaired, "product of tensor");
  EXPECT_EQ(real.impossible, "");
}

TEST(Widths, AProductOfAttentionDataIsItsRoot) {
  EXPECT_EQ(four(real_widths(filed(1, 16, 4, 4), true)), (Four{1, 4, 1, 4}));
}

TEST(Widths, BothAxesFiledMeansAttentionDataOnly) {
  EXPECT_EQ(four(real_widths(filed(4, 4, 1, 16), true)), (Four{4, 1, 1, 4}));
  EXPECT_EQ(four(real_widths(filed(2, 2, 1, 2), true)), (Four{1, 2, 1, 2}));
}

TEST(Widths, WhatIsRightStays) {
  for (const Four& widths :
       {Four{8, 1, 8, 1}, Four{8, 1, 2, 4}, Four{1, 8, 1, 8}, Four{4, 1, 2, 2}}) {
    const auto& [tensor, data, moe_tensor, moe_expert] = widths;
    const RealWidths real = real_widths(filed(tensor, data, moe_tensor, moe_expert), true);
    EXPECT_EQ(four(real), widths);
    EXPECT_EQ(real.repaired, "");
    EXPECT_EQ(real.impossible, "");
  }
}

TEST(Widths, WhatNoRuleExplainsIsImpossible) {
  EXPECT_EQ(real_widths(filed(2, 1, 4, 1), true).impossible,
            "moe_tensor 4 * moe_expert 1 is not tensor 2 * attention_data 1");
}

TEST(Widths, ZeroAndBlankAreOneAndDenseModelsHaveNoExpertWidths) {
  EXPECT_EQ(four(real_widths({}, true)), (Four{1, 1, 1, 1}));
  EXPECT_EQ(four(real_widths(filed(2, 0, 0, 0), false)), (Four{2, 1, 1, 1}));
  EXPECT_EQ(four(real_widths(filed(4, 1, 4, 1), false)), (Four{4, 1, 1, 1}));
}

}  // namespace
}  // namespace servecast::fit
