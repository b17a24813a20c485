// SPDX-License-Identifier: Apache-2.0
#include "fit/identify.hpp"

#include <gtest/gtest.h>

#include "fit/a_row.hpp"

namespace servecast::fit {
namespace {

using catalog::EngineKind;
using catalog::Precision;

std::string model_name(std::string_view written) {
  const auto card = model_of(written);
  return card ? card->name : card.error();
}

TEST(Identify, ModelNamesMayCarryFormatReleaseAndAnotherPublisher) {
  EXPECT_EQ(model_name("deepseek-ai/DeepSeek-R1-0528"), "deepseek-ai/DeepSeek-R1");
  EXPECT_EQ(model_name("nvidia/DeepSeek-R1-0528-FP4-V2"), "nvidia/DeepSeek-R1-0528-FP4-v2");
  EXPECT_EQ(model_name("Qwen/Qwen3-8B-FP8-dynamic"), "Qwen/Qwen3-8B");
  EXPECT_EQ(model_name("nvidia/Llama-3.1-8B-Instruct-FP8"), "nvidia/Llama-3.1-8B-Instruct-FP8");
  EXPECT_EQ(model_name("gpt-oss-120b"), "openai/gpt-oss-120b");
  EXPECT_EQ(model_name("llama3_1-70b-fp8_dyn"), "meta-llama/Llama-3.1-70B");
  EXPECT_EQ(model_name("llama2-70b-99.9"), "meta-llama/Llama-2-70b-hf");
  EXPECT_EQ(model_name("mixtral-8x7b"), "mistralai/Mixtral-8x7B-v0.1");
  EXPECT_EQ(model_name("no/such-model"), "no card of model no/such-model");
}

TEST(Identify, GpuNamesMayCarryMemoryAndMaker) {
  for (const auto& [written, name] :
       {std::pair{"h200", "h200_sxm"},
        {"H200-SXM-141GB", "h200_sxm"},
        {"b200_sxm", "b200_sxm"},
        {"RTX PRO 6000 Blackwell Server Edition", "rtx_pro_6000_server"},
        {"MI300X-NPS1-SPX-192GB-750W", "mi300x"},
        {"Virtualized NVIDIA H200-SXM-141GB", "h200_sxm"},
        {"GB200", "gb200"}}) {
    const auto card = system_of(written);
    ASSERT_TRUE(card) << written;
    EXPECT_EQ(card->name, name);
  }
  EXPECT_EQ(system_of("h100-80gb-pcap").error(), "no card of system h100-80gb-pcap");
  EXPECT_EQ(system_of("").error(), "no system is named");
}

perf::Precisions precisions(const char* model, const char* precision, EngineKind engine,
                            std::uint32_t moe_tensor = 1, const char* system = "h200") {
  MeasuredRow row = a_row();
  row.precision = precision;
  return *precisions_of(row, *model_of(model), *system_of(system), engine,
                        {.moe_tensor = moe_tensor});
}

TEST(Identify, Fp4IsWhatTheModelIsPublishedIn) {
  const perf::Precisions oss = precisions("gpt-oss-120b", "fp4", EngineKind::Vllm);
  EXPECT_EQ(oss.attention, Precision::Bfloat16);
  EXPECT_EQ(oss.experts, Precision::Mxfp4);
  EXPECT_EQ(oss.kv_cache, Precision::Bfloat16);
  const perf::Precisions r1 = precisions("DeepSeek-R1", "fp4", EngineKind::TensorRtLlm);
  EXPECT_EQ(r1.dense, Precision::Bfloat16);
  EXPECT_EQ(r1.experts, Precision::Nvfp4);
  EXPECT_EQ(r1.kv_cache, Precision::Fp8);
  EXPECT_EQ(precisions("Llama-3.1-70B", "fp4", EngineKind::Vllm).dense, Precision::Nvfp4);
}

TEST(Identify, Fp8HasBlocksWhereTheCheckpointHas) {
  EXPECT_EQ(precisions("DeepSeek-R1", "fp8", EngineKind::Vllm, 8).experts, Precision::Fp8Block);
  // 2048 / 32 = 64 is no whole block.
  EXPECT_EQ(precisions("DeepSeek-R1", "fp8", EngineKind::Vllm, 32).experts, Precision::Fp8);
  EXPECT_EQ(precisions("Llama-3.1-8B", "fp8", EngineKind::Vllm).dense, Precision::Fp8);
}

TEST(Identify, Llama4HasFp8InItsRoutedExpertsOnly) {
  const perf::Precisions maverick =
      precisions("Llama-4-Maverick-17B-128E-Instruct", "fp8", EngineKind::TensorRtLlm);
  EXPECT_EQ(maverick.experts, Precision::Fp8);
  EXPECT_EQ(maverick.shared_experts, Precision::Bfloat16);
  EXPECT_EQ(maverick.attention, Precision::Bfloat16);
}

TEST(Identify, SglangKeepsABfloat16CacheWithFp8Weights) {
  EXPECT_EQ(precisions("DeepSeek-R1", "fp8", EngineKind::Sglang).kv_cache, Precision::Bfloat16);
  EXPECT_EQ(precisions("DeepSeek-R1", "fp8", EngineKind::Vllm).kv_cache, Precision::Fp8);
}

TEST(Identify, MixturesKeepABfloat16CacheOnHopperOnly) {
  EXPECT_EQ(precisions("Qwen3-30B-A3B", "fp8", EngineKind::Vllm).kv_cache, Precision::Bfloat16);
  EXPECT_EQ(precisions("Qwen3-30B-A3B", "fp8", EngineKind::Vllm, 1, "b200").kv_cache,
            Precision::Fp8);
  EXPECT_EQ(precisions("DeepSeek-R1", "fp8", EngineKind::Sglang, 1, "b200").kv_cache,
            Precision::Fp8);
  EXPECT_EQ(precisions("Llama-3.1-8B", "fp8", EngineKind::Vllm).kv_cache, Precision::Fp8);
}

TEST(Identify, ABlankPrecisionIsTheCheckpointsOwnAndAnUnknownOneIsRefused) {
  EXPECT_EQ(precisions("Qwen3-32B", "", EngineKind::Vllm).dense, Precision::Bfloat16);
  MeasuredRow row = a_row();
  row.precision = "int3";
  EXPECT_EQ(
      precisions_of(row, *model_of("Qwen3-32B"), *system_of("h200"), EngineKind::Vllm, {}).error(),
      "unknown precision int3");
}

}  // namespace
}  // namespace servecast::fit
