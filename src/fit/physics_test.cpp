// SPDX-License-Identifier: Apache-2.0
#include "fit/physics.hpp"

#include <gtest/gtest.h>

#include "fit/a_row.hpp"

namespace servecast::fit {
namespace {

TEST(Physics, ATpotBelowTheReadOfTheWeightsCannotBe) {
  MeasuredRow row = a_row();
  const auto made = case_of(judged(row));
  // 15 GB without the embedding at 3.35 TB/s.
  EXPECT_NEAR(limits_of(row, *made).tpot_ms, 4.48, 0.05);
  EXPECT_EQ(impossible_reason(row, *made), "");
  row.tpot_ms = 4.3;
  EXPECT_EQ(impossible_reason(row, *made),
            "TPOT is below the 4.48 ms that reading the weights takes");
}

TEST(Physics, ARateAboveThePeakCannotBe) {
  MeasuredRow row = a_row();
  row.id = "nvidia_qwen3_32b_nvfp4";
  row.model = "nvidia/Qwen3-32B-NVFP4";
  row.system = "gb200";
  row.engine = "trtllm";
  row.precision = "fp4";
  row.widths.tensor = 2;
  row.input_tokens = 15000;
  row.output_tokens = 500;
  row.concurrency = 416;
  row.ttft_ms = 1000;
  row.tpot_ms = 13.7;
  const auto made = case_of(judged(row));
  ASSERT_TRUE(made) << made.error().reason;
  EXPECT_GT(limits_of(row, *made).flops_share, 2);
  EXPECT_NE(impossible_reason(row, *made).find("peak FLOP rate"), std::string::npos);
}

}  // namespace
}  // namespace servecast::fit
