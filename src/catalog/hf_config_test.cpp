// SPDX-License-Identifier: Apache-2.0
#include "catalog/hf_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace servecast::catalog {
namespace {

using testing::HasSubstr;

// A small Llama with more keys.
std::string llama(const std::string& more = "",
                  const std::string& architecture = "LlamaForCausalLM") {
  return R"({"architectures": [")" + architecture +
         R"("], "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2,
    "num_hidden_layers": 4, "intermediate_size": 128, "vocab_size": 100,
    "max_position_embeddings": 1000)" +
         more + "}";
}

ModelCard card_of(const std::string& json, std::optional<std::string_view> quant = std::nullopt) {
  const auto card = read_hf_config(json, "a/b", quant);
  if (card) return *card;
  ADD_FAILURE() << to_text(card.error().front());
  return {};
}

std::string problem_of(const std::string& json) {
  const auto card = read_hf_config(json, "a/b");
  if (card) return "accepted";
  return card.error().front().code + " " + to_text(card.error().front());
}

TEST(HfConfig, TakesTheHeadWidthFromTheFileOrFromHiddenAndHeads) {  // bugs.md A19
  EXPECT_EQ(card_of(llama()).mixer<GroupedAttention>()->head_dim, 8u);
  EXPECT_EQ(card_of(llama(R"(, "head_dim": 16)")).mixer<GroupedAttention>()->head_dim, 16u);
  EXPECT_EQ(card_of(llama(R"(, "attention_head_dim": 24)")).mixer<GroupedAttention>()->head_dim,
            24u);
}

TEST(HfConfig, IgnoresUnknownKeysAndReadsNanAsNull) {
  const ModelCard card = card_of(llama(
      R"(, "x": NaN, "y": [0.0, Infinity, -Infinity], "z": "NaN \"Infinity", "head_dim": NaN)"));
  EXPECT_EQ(card.mixer<GroupedAttention>()->head_dim, 8u);
  EXPECT_EQ(card.layers(), 4u);
}

TEST(HfConfig, UnwrapsTheTextConfigOfMultimodalModels) {
  const ModelCard card = card_of(R"({"architectures": ["Qwen3VLForConditionalGeneration"],
    "tie_word_embeddings": true,
    "vision_config": {"depth": 2, "hidden_size": 32, "num_heads": 4, "intermediate_size": 64,
                      "patch_size": 16, "spatial_merge_size": 2, "out_hidden_size": 64,
                      "deepstack_visual_indexes": [0, 1]},
    "text_config": {"hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 4,
      "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 1000}})");
  EXPECT_EQ(card.hidden, 64u);
  EXPECT_TRUE(card.embeddings_tied);
  EXPECT_TRUE(card.mixer<GroupedAttention>()->qk_norm);
  ASSERT_TRUE(card.vision);
  EXPECT_EQ(card.vision->merge, 2u);
  EXPECT_EQ(card.vision->deepstack, 2u);
}

TEST(HfConfig, NamesAnUnknownArchitectureAndTheKnownOnes) {  // bugs.md A46
  const std::string text = problem_of(llama("", "LamaForCausalLM"));
  EXPECT_THAT(text, HasSubstr("model.architecture architecture LamaForCausalLM"));
  EXPECT_THAT(text, HasSubstr("DeepseekV32ForCausalLM"));
  EXPECT_THAT(text, HasSubstr("did you mean LlamaForCausalLM?"));
  EXPECT_THAT(problem_of(llama("", "FooForCausalLM")), HasSubstr("engine.model_like"));
  EXPECT_THAT(problem_of("{}"), HasSubstr("names no architecture"));
  EXPECT_THAT(problem_of("[]"), HasSubstr("model.syntax"));
}

TEST(HfConfig, NamesAnUnknownQuantisationAndTheKnownOnes) {  // bugs.md A46
  const std::string text =
      problem_of(llama(R"(, "quantization_config": {"quant_method": "foo8"})"));
  EXPECT_THAT(text, HasSubstr("model.quantization unsupported quantization algorithm foo8"));
  EXPECT_THAT(text, HasSubstr("fp8_block"));
  EXPECT_THAT(problem_of(llama(R"(, "quantization_config": {"quant_method": "mixed_precision"})")),
              HasSubstr("mixed_precision without a map"));
  EXPECT_THAT(
      problem_of(llama(
          R"(, "quantization_config": {"quant_algo": "FP8", "kv_cache_quant_algo": "INT3"})")),
      HasSubstr("unsupported precision int3 of the KV cache"));
}

TEST(HfConfig, NamesMissingAndContradictingFacts) {
  EXPECT_THAT(problem_of(R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64,
                             "vocab_size": 10, "max_position_embeddings": 10})"),
              HasSubstr("model.config config.json: num_hidden_layers is missing"));
  EXPECT_THAT(problem_of(llama(R"(, "layer_types": ["full_attention"])")),
              HasSubstr("layer_types has 1 items; the model has 4 layers"));
  EXPECT_THAT(problem_of(llama(R"(, "sliding_window": 8, "layer_types": ["full_attention",
                               "full_attention", "full_attention", "other"])")),
              HasSubstr("layer_types has other; known are"));
  EXPECT_THAT(problem_of(R"({"architectures": ["NemotronHForCausalLM"], "hidden_size": 64,
      "vocab_size": 10, "max_position_embeddings": 10, "num_hidden_layers": 2,
      "mamba_num_heads": 4, "mamba_head_dim": 4, "n_groups": 1, "ssm_state_size": 4,
      "conv_kernel": 4, "num_attention_heads": 4, "hybrid_override_pattern": "MX"})"),
              HasSubstr("hybrid_override_pattern has 'X'; known are M, E"));
  EXPECT_THAT(problem_of(R"({"architectures": ["DeepseekV4ForCausalLM"], "hidden_size": 64,
      "vocab_size": 10, "max_position_embeddings": 10, "num_hidden_layers": 2, "head_dim": 8,
      "num_attention_heads": 4, "q_lora_rank": 8, "o_groups": 2, "o_lora_rank": 8,
      "sliding_window": 8, "index_n_heads": 2, "index_head_dim": 8, "index_topk": 4,
      "intermediate_size": 32, "compress_ratios": [4, 16]})"),
              HasSubstr("compress_ratios has 16; known are 0, 4, 128"));
  EXPECT_THAT(problem_of(llama(R"(, "hidden_size": -1)")), HasSubstr("whole number"));
}

TEST(HfConfig, FindsTheLayersThatHaveExperts) {
  const std::string experts = R"(, "num_experts": 8, "num_experts_per_tok": 2,
                                  "moe_intermediate_size": 32)";
  const auto pattern = [&](const std::string& more) {
    const ModelCard card = card_of(llama(experts + more, "Qwen3MoeForCausalLM"));
    std::string text;
    for (std::uint32_t i = 0; i < card.layers(); ++i)
      text +=
          std::holds_alternative<Experts>(card.groups[card.group_of(i)].feed_forward) ? 'E' : 'd';
    return text;
  };
  EXPECT_EQ(pattern(""), "EEEE");
  EXPECT_EQ(pattern(R"(, "first_k_dense_replace": 1)"), "dEEE");
  EXPECT_EQ(pattern(R"(, "moe_layer_freq": 2)"), "EdEd");
  EXPECT_EQ(pattern(R"(, "moe_layer_freq": [0, 0, 1, 1])"), "ddEE");
  EXPECT_EQ(pattern(R"(, "decoder_sparse_step": 2)"), "dEdE");
  EXPECT_EQ(pattern(R"(, "mlp_only_layers": [1, 2])"), "EddE");
  EXPECT_EQ(pattern(R"(, "moe_layers_enum": "1,3")"), "dEdE");
}

// perfmodel.md annex A, first table.
TEST(HfConfig, InfersThePrecisionFromTheAlgorithm) {
  const std::string experts =
      R"(, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "quantization_config": )";
  const auto found = [&](const std::string& quantization) {
    const WeightPrecision p =
        card_of(llama(experts + quantization, "Qwen3MoeForCausalLM")).precision;
    return std::string(to_string(p.attention)) + " " + std::string(to_string(p.experts)) + " " +
           std::string(to_string(p.kv_cache)) + (p.attention_math_fp8 ? " fp8" : "");
  };
  EXPECT_EQ(found("null"), "bfloat16 bfloat16 bfloat16");
  EXPECT_EQ(found(R"({"quant_method": "fp8"})"), "fp8_static fp8 fp8 fp8");
  EXPECT_EQ(found(R"({"quant_method": "fp8", "activation_scheme": "dynamic"})"), "fp8 fp8 fp8 fp8");
  EXPECT_EQ(found(R"({"quant_method": "fp8", "weight_block_size": [64, 64]})"),
            "fp8_block fp8_block fp8 fp8");
  EXPECT_EQ(found(R"({"quant_algo": " NVFP4 ", "quant_method": "modelopt"})"),
            "nvfp4 nvfp4 fp8 fp8");
  EXPECT_EQ(found(R"({"quant_algo": "W4A16_MXFP4"})"), "bfloat16 mxfp4 bfloat16");
  EXPECT_EQ(found(R"({"quant_method": "w4afp8"})"), "fp8_block w4afp8 bfloat16");
  EXPECT_EQ(found(R"({"quant_method": "gptq", "bits": 8})"), "int8_wo int8_wo bfloat16");
  EXPECT_EQ(found(R"({"quant_method": "awq", "bits": 4})"), "int4_wo int4_wo bfloat16");
  const auto tensors = [&](const std::string& weights, const std::string& more = "") {
    return found(
        R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": )" +
        weights + "}}" + more + "}");
  };
  EXPECT_EQ(tensors(R"({"num_bits": 4, "type": "int"})"), "int4_wo int4_wo bfloat16");
  EXPECT_EQ(tensors(R"({"num_bits": 8, "type": "int"})"), "int8_wo int8_wo bfloat16");
  EXPECT_EQ(tensors(R"({"num_bits": 8, "type": "float"})"), "fp8 fp8 bfloat16");
  EXPECT_EQ(tensors(R"({"num_bits": 8, "type": "float", "strategy": "block"})"),
            "fp8_block fp8_block bfloat16");
  EXPECT_EQ(tensors(R"({"num_bits": 4, "type": "float"})"), "mxfp4 mxfp4 bfloat16");
  EXPECT_EQ(tensors(R"({"num_bits": 4, "type": "int"})", R"(, "ignore": ["re:.*self_attn.*"])"),
            "bfloat16 int4_wo bfloat16");
  EXPECT_EQ(tensors(R"({"num_bits": 8, "type": "float"})",
                    R"(, "kv_cache_scheme": {"type": "float", "num_bits": 8})"),
            "fp8 fp8 fp8 fp8");
}

TEST(HfConfig, LeavesOutWhatPatternsExclude) {
  const std::string head = R"(, "num_experts": 8, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "mlp_only_layers": [0],
    "quantization_config": {"quant_algo": "NVFP4", "ignore": [)";
  const auto found = [&](const std::string& patterns) {
    const WeightPrecision p =
        card_of(llama(head + patterns + "]}", "Qwen2MoeForCausalLM")).precision;
    std::string text;
    for (const Precision value : {p.attention, p.dense, p.shared_experts, p.experts})
      text += value == Precision::Nvfp4 ? '4' : '-';
    return text;
  };
  EXPECT_EQ(found(""), "4444");
  EXPECT_EQ(found(R"("lm_head", "model.layers.*.mlp.gate", "model.layers.0.input_layernorm")"),
            "4444");
  EXPECT_EQ(found(R"("*self_attn*")"), "-444");
  EXPECT_EQ(found(R"("model.layers.0.self_attn*")"), "4444");  // one of four layers
  EXPECT_EQ(found(R"("model.layers.0.self_attn*", "model.layers.1.self_attn*",
                     "model.layers.2.self_attn*")"),
            "-444");
  EXPECT_EQ(found(R"("model.layers.0*")"), "4-44");  // the only dense layer
  EXPECT_EQ(found(R"("*.mlp.shared_expert.*")"), "44-4");
  EXPECT_EQ(found(R"("model.layers.1.mlp.shared_expert_gate")"), "4444");
  EXPECT_EQ(found(R"("*.mlp.experts.*")"), "444-");
}

TEST(HfConfig, TakesTheAlgorithmFromHfQuantConfigFirst) {
  const std::string json = llama(R"(, "quantization_config": {"quant_method": "fp8"})");
  const WeightPrecision p = card_of(json, R"({"quantization": {"quant_algo": "NVFP4",
      "kv_cache_quant_algo": "FP8", "exclude_modules": ["*self_attn*"]}})")
                                .precision;
  EXPECT_EQ(p.attention, Precision::Bfloat16);
  EXPECT_EQ(p.dense, Precision::Nvfp4);
  EXPECT_EQ(p.kv_cache, Precision::Fp8);
}

TEST(HfConfig, ReadsTheMapOfMixedPrecision) {
  const WeightPrecision p = card_of(llama(R"(, "quantization_config": {
      "quant_algo": "MIXED_PRECISION", "quantized_layers": {
        "model.layers.0.self_attn.o_proj": {"quant_algo": "FP8"},
        "model.layers.0.mlp.up_proj": {"quant_algo": "W4A16_NVFP4"},
        "model.layers.1.mlp.up_proj": {"quant_algo": "W4A16_NVFP4"},
        "model.layers.2.mlp.up_proj": {"quant_algo": "FP8"},
        "lm_head": {"quant_algo": "W4A16_NVFP4"}}})"))
                                .precision;
  EXPECT_EQ(p.attention, Precision::Fp8Static);
  EXPECT_EQ(p.dense, Precision::Nvfp4Weights);
  EXPECT_EQ(p.head, Precision::Nvfp4Weights);
}

}  // namespace
}  // namespace servecast::catalog
