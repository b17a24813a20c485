// SPDX-License-Identifier: Apache-2.0
// Every model of the catalog, by its published size, and by whether it can be sized and timed.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "perf/a_placement.hpp"
#include "perf/matrices.hpp"
#include "perf/memory.hpp"
#include "perf/timers.hpp"

namespace servecast::perf {
namespace {

// Totals that publishers state, without draft layers and vision towers; billions.
TEST(Parameters, AreNearThePublishedTotals) {
  const std::vector<std::pair<std::string, double>> totals{
      {"meta-llama/Llama-3.1-8B", 8.03},
      {"meta-llama/Llama-3.1-70B", 70.55},
      {"meta-llama/Llama-3.1-405B", 405.85},
      {"meta-llama/Llama-2-7b-hf", 6.738},
      {"meta-llama/Llama-2-70b-hf", 68.977},
      {"codellama/CodeLlama-34b-Instruct-hf", 33.74},
      {"01-ai/Yi-34B", 34.39},
      {"mistralai/Mistral-Nemo-Instruct-2407", 12.25},
      {"mistralai/Mixtral-8x7B-v0.1", 46.70},
      {"mistralai/Mixtral-8x22B-v0.1", 140.6},
      {"Qwen/Qwen2.5-7B-Instruct", 7.616},
      {"Qwen/Qwen3-0.6B", 0.596},
      {"Qwen/Qwen3-8B", 8.19},
      {"Qwen/Qwen3-14B", 14.77},
      {"Qwen/Qwen3-32B", 32.76},
      {"Qwen/Qwen3-30B-A3B", 30.53},
      {"Qwen/Qwen3-235B-A22B", 235.1},
      {"Qwen/Qwen3-Coder-480B-A35B-Instruct", 480.2},
      {"Qwen/Qwen3.5-397B-A17B", 396.3},
      {"Qwen/Qwen3.5-122B-A10B", 122.1},
      {"Qwen/Qwen3.5-35B-A3B", 34.7},
      {"Qwen/Qwen3.5-27B", 26.9},
      {"openai/gpt-oss-120b", 116.8},
      {"openai/gpt-oss-20b", 20.9},
      {"deepseek-ai/DeepSeek-V2-Lite", 15.7},
      {"deepseek-ai/DeepSeek-V3", 671.0},
      {"deepseek-ai/DeepSeek-V3.2", 671.9},
      {"deepseek-ai/DeepSeek-V4-Flash", 284.0},
      {"moonshotai/Kimi-K2-Instruct", 1026.0},
      {"zai-org/GLM-5", 744.0},
      {"MiniMaxAI/MiniMax-M2.5", 229.0},
      {"XiaomiMiMo/MiMo-V2-Flash", 309.0},
      {"stepfun-ai/Step-3.7-Flash", 196.0},
      {"meta-llama/Llama-4-Scout-17B-16E-Instruct", 107.8},
      {"meta-llama/Llama-4-Maverick-17B-128E-Instruct", 400.7},
      {"google/gemma-4-26B-A4B", 25.2},
      {"nvidia/Gemma-4-31B-IT-NVFP4", 30.7},
      {"nvidia/Llama-3_3-Nemotron-Super-49B-v1", 49.87},
      {"nvidia/Nemotron-H-56B-Base-8K", 56.4},
      {"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31.58},
      {"nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 120.6},
      {"nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", 550.0}};
  for (const auto& [name, billions] : totals) {
    const auto found = static_cast<double>(parameters_of(catalog::find_model(name).value()));
    EXPECT_NEAR(found / 1e9 / billions, 1.0, 0.015) << name << " " << found / 1e9;
  }
  // Published in one decimal: 1.6 T.
  EXPECT_NEAR(double(parameters_of(catalog::find_model("DeepSeek-V4-Pro").value())), 1.6e12, 5e10);
}

// Ranks that hold any model, and divide its heads: 8 but for the small ones.
Placement fitting(const catalog::ModelCard& model) {
  for (const std::uint32_t ranks : {1u, 2u, 4u, 8u, 16u}) {
    Placement placement = a_placement(model.name, "gb300", ranks);
    if (model.experts() != nullptr) {
      placement.parallelism.moe_tensor = 1;
      placement.parallelism.moe_expert = ranks;
    }
    if (check(placement).empty() && kv_capacity(placement, {})) return placement;
  }
  ADD_FAILURE() << model.name << " fits nowhere";
  return a_placement(model.name, "gb300");
}

TEST(Models, CanAllBeSizedAndTimed) {
  const std::vector<catalog::ModelCard>& models = catalog::models();
  EXPECT_GE(models.size(), 93u);
  for (const catalog::ModelCard& model : models) {
    SCOPED_TRACE(model.name);
    const Placement placement = fitting(model);
    const auto timer = analytic_timer(placement);
    ASSERT_TRUE(timer);
    const auto decode = [&](std::uint64_t context) {
      return (*timer)->time({.decode_requests = 8, .decode_context = 8 * context}).decode.ns;
    };
    EXPECT_GT(decode(1000), 0);
    EXPECT_LT(decode(1000), 1'000'000'000);
    EXPECT_GE(decode(50'000), decode(1000));
    const auto prefill = [&](std::uint64_t tokens) {
      return (*timer)
          ->time(
              {.prefill_requests = 1, .prefill_isl = tokens, .prefill_attention = tokens * tokens})
          .prefill.ns;
    };
    EXPECT_GT(prefill(8000), prefill(1000));
    EXPECT_GT(kv_token_bytes(placement), 0u);
    EXPECT_LE(kv_sequence_bytes(placement, 1000), kv_sequence_bytes(placement, 2000));
  }
}

}  // namespace
}  // namespace servecast::perf
