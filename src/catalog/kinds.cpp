// SPDX-License-Identifier: Apache-2.0
#include "catalog/kinds.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.hpp"

namespace servecast::catalog {
namespace {

constexpr std::array<std::pair<Precision, std::string_view>, 12> kPrecisions{{
    {Precision::Bfloat16, "bfloat16"},
    {Precision::Fp8, "fp8"},
    {Precision::Fp8Static, "fp8_static"},
    {Precision::Fp8Block, "fp8_block"},
    {Precision::Mxfp8, "mxfp8"},
    {Precision::Int8, "int8_wo"},
    {Precision::Int4, "int4_wo"},
    {Precision::Int4Fp8, "w4afp8"},
    {Precision::Nvfp4, "nvfp4"},
    {Precision::Nvfp4Weights, "w4a16_nvfp4"},
    {Precision::Mxfp4, "mxfp4"},
    {Precision::Mxfp4Mxfp8, "w4a8_mxfp4_mxfp8"},
}};

constexpr std::array<std::pair<Family, std::string_view>, 17> kFamilies{{
    {Family::Gpt, "gpt"},
    {Family::Llama, "llama"},
    {Family::Moe, "moe"},
    {Family::DeepSeek, "deepseek"},
    {Family::DeepSeekV32, "deepseek_v32"},
    {Family::DeepSeekV4, "deepseek_v4"},
    {Family::KimiK25, "kimi_k25"},
    {Family::KimiK3, "kimi_k3"},
    {Family::NemotronNas, "nemotron_nas"},
    {Family::NemotronH, "nemotron_h"},
    {Family::MiniMaxM3, "minimax_m3"},
    {Family::Step3p7, "step3p7"},
    {Family::HybridMoe, "hybrid_moe"},
    {Family::Qwen35, "qwen35"},
    {Family::Gemma4, "gemma4"},
    {Family::Qwen3Vl, "qwen3_vl"},
    {Family::Qwen3VlMoe, "qwen3_vl_moe"},
}};

// Class names as config.json writes them.
constexpr std::array<std::pair<std::string_view, Family>, 36> kArchitectures{{
    {"DeciLMForCausalLM", Family::NemotronNas},
    {"DeepseekForCausalLM", Family::DeepSeek},
    {"DeepseekV2ForCausalLM", Family::DeepSeek},
    {"DeepseekV32ForCausalLM", Family::DeepSeekV32},
    {"DeepseekV3ForCausalLM", Family::DeepSeek},
    {"DeepseekV4ForCausalLM", Family::DeepSeekV4},
    {"GPT2LMHeadModel", Family::Gpt},
    {"Gemma4ForCausalLM", Family::Gemma4},
    {"Gemma4ForConditionalGeneration", Family::Gemma4},
    {"GlmMoeDsaForCausalLM", Family::DeepSeekV32},
    {"GptOssForCausalLM", Family::Moe},
    {"KimiK25ForConditionalGeneration", Family::KimiK25},
    {"KimiK3ForConditionalGeneration", Family::KimiK3},
    {"Llama4ForConditionalGeneration", Family::HybridMoe},
    {"LlamaForCausalLM", Family::Llama},
    {"MiMoForCausalLM", Family::Llama},
    {"MiMoV2FlashForCausalLM", Family::HybridMoe},
    {"MiniMaxM2ForCausalLM", Family::Moe},
    {"MiniMaxM3ForCausalLM", Family::MiniMaxM3},
    {"MiniMaxM3SparseForCausalLM", Family::MiniMaxM3},
    {"MiniMaxM3SparseForConditionalGeneration", Family::MiniMaxM3},
    {"MistralForCausalLM", Family::Llama},
    {"MixtralForCausalLM", Family::Moe},
    {"NemotronForCausalLM", Family::NemotronNas},
    {"NemotronHForCausalLM", Family::NemotronH},
    {"Qwen2ForCausalLM", Family::Llama},
    {"Qwen2MoeForCausalLM", Family::Moe},
    {"Qwen3ForCausalLM", Family::Llama},
    {"Qwen3MoeForCausalLM", Family::Moe},
    {"Qwen3VLForConditionalGeneration", Family::Qwen3Vl},
    {"Qwen3VLMoeForConditionalGeneration", Family::Qwen3VlMoe},
    {"Qwen3_5ForConditionalGeneration", Family::Qwen35},
    {"Qwen3_5MoeForConditionalGeneration", Family::Qwen35},
    {"Step3p5ForCausalLM", Family::Step3p7},
    {"Step3p7FlashForCausalLM", Family::Step3p7},
    {"Step3p7ForConditionalGeneration", Family::Step3p7},
}};

}  // namespace

std::string_view to_string(Precision precision) {
  for (const auto& [value, name] : kPrecisions) {
    if (value == precision) return name;
  }
  check_failed("precision is one of its enumerators", __FILE__, __LINE__);
}

std::optional<Precision> precision_from(std::string_view name) {
  for (const auto& [value, known] : kPrecisions) {
    if (name == known) return value;
  }
  return std::nullopt;
}

const std::vector<std::string>& precision_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const auto& [value, name] : kPrecisions) names.emplace_back(name);
    return names;
  }();
  return kNames;
}

std::string_view to_string(EngineKind engine) {
  switch (engine) {
    case EngineKind::Vllm:
      return "vllm";
    case EngineKind::Sglang:
      return "sglang";
    case EngineKind::TensorRtLlm:
      return "trtllm";
  }
  check_failed("engine is one of its enumerators", __FILE__, __LINE__);
}

std::optional<EngineKind> engine_from(std::string_view name) {
  for (const EngineKind e : {EngineKind::Vllm, EngineKind::Sglang, EngineKind::TensorRtLlm}) {
    if (name == to_string(e)) return e;
  }
  return std::nullopt;
}

std::string_view to_string(Family family) {
  for (const auto& [value, name] : kFamilies) {
    if (value == family) return name;
  }
  check_failed("family is one of its enumerators", __FILE__, __LINE__);
}

std::optional<Family> family_of(std::string_view architecture) {
  for (const auto& [name, family] : kArchitectures) {
    if (name == architecture) return family;
  }
  return std::nullopt;
}

const std::vector<std::string>& known_architectures() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const auto& [name, family] : kArchitectures) names.emplace_back(name);
    return names;
  }();
  return kNames;
}

}  // namespace servecast::catalog
