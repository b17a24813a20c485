// SPDX-License-Identifier: Apache-2.0
#include "catalog/model_card.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "catalog/embedded.hpp"
#include "catalog/names.hpp"

namespace servecast::catalog {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string used(std::string_view name) {
  const auto card = find_model(name);
  return card ? card->name : card.error().front().code;
}

// A valid card with one text replaced.
std::string card_with(std::string_view from, std::string_view to) {
  std::string json = R"({
    "name": "a/b", "architecture": "GptOssForCausalLM", "hidden": 64, "vocab": 100,
    "context_max": 1000, "embeddings_tied": false,
    "layers": [
      {"count": 2,
       "mixer": {"kind": "grouped", "heads": 8, "kv_heads": 2, "head_dim": 16, "window": 32},
       "feed_forward": {"kind": "experts", "count": 8, "per_token": 2, "width": 48}},
      {"count": 1,
       "mixer": {"kind": "latent", "heads": 8, "kv_rank": 16, "head_dim_nope": 4,
                 "head_dim_rope": 3, "head_dim_value": 5,
                 "index": {"heads": 6, "head_dim": 7, "tokens": 9}}}],
    "order": "aba", "precision": {"experts": "mxfp4"}, "source": "s", "licence": "l"})";
  const std::size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return json.replace(at, from.size(), to);
}

Problem problem_of(const std::string& json) {
  const auto card = parse_model_card(json, "b.json");
  if (card) {
    ADD_FAILURE() << "accepted " << json;
    return {};
  }
  return card.error().front();
}

TEST(ModelCard, EveryCardOfTheProgramLoads) {
  std::set<std::string> names;
  for (const EmbeddedCard& embedded : embedded_models()) {
    const auto card = parse_model_card(embedded.json, embedded.file);
    ASSERT_TRUE(card) << to_text(card.error().front());
    EXPECT_TRUE(names.insert(card->name).second) << card->name << " stands twice";
  }
  for (const char* name : {"meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B", "Qwen/Qwen3-8B",
                           "Qwen/Qwen3-32B", "Qwen/Qwen3-30B-A3B", "openai/gpt-oss-120b",
                           "deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-V3.2"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(ModelCard, HeadWidthIsTheFilesOwnValue) {  // bugs.md A19: 5120 / 64 would be 80
  EXPECT_EQ(find_model("Qwen3-32B")->mixer<GroupedAttention>()->head_dim, 128u);
}

TEST(ModelCard, HoldsTheFactsOfAMixtureWithLatentAttention) {
  const ModelCard card = find_model("deepseek-ai/DeepSeek-R1").value();
  EXPECT_EQ(card.layers(), 61u);
  EXPECT_EQ(card.context_max, 163840u);
  EXPECT_EQ(card.family, Family::DeepSeek);
  EXPECT_EQ(card.draft_layers, 1u);
  EXPECT_EQ(card.mixer<LatentAttention>()->kv_rank, 512u);
  EXPECT_EQ(card.experts()->count, 256u);
  EXPECT_EQ(card.experts()->shared_width, 2048u);
  EXPECT_EQ(std::get<Dense>(card.groups[card.group_of(2)].feed_forward).width, 18432u);
  EXPECT_TRUE(std::holds_alternative<Experts>(card.groups[card.group_of(3)].feed_forward));
  EXPECT_EQ(card.precision.experts, Precision::Fp8Block);
  EXPECT_EQ(card.precision.block, 128u);
}

TEST(ModelCard, HoldsTheFactsOfAMixtureWithWindows) {
  const ModelCard card = find_model("gpt-oss-120b").value();
  EXPECT_EQ(card.order, "abababababababababababababababababab");
  EXPECT_EQ(card.groups[0].count, 18u);
  EXPECT_EQ(std::get<GroupedAttention>(card.groups[0].mixer).window, 128u);
  EXPECT_EQ(std::get<GroupedAttention>(card.groups[1].mixer).window, 0u);
  EXPECT_EQ(card.precision.attention, Precision::Bfloat16);
  EXPECT_EQ(card.precision.experts, Precision::Mxfp4);
}

TEST(ModelCard, WritesWhatItReads) {
  for (const EmbeddedCard& embedded : embedded_models()) {
    const auto card = parse_model_card(embedded.json, embedded.file);
    ASSERT_TRUE(card);
    EXPECT_EQ(to_json(*card), embedded.json) << embedded.file;
  }
}

TEST(FindModel, KnowsTheNamesOfMeasurements) {
  const std::vector<std::pair<std::string, std::string>> names{
      {"deepseek-ai/DeepSeek-R1-0528", "deepseek-ai/DeepSeek-R1"},
      {"nvidia/DeepSeek-R1-NVFP4", "nvidia/DeepSeek-R1-NVFP4"},
      {"nvidia/DeepSeek-R1-0528-FP4", "nvidia/DeepSeek-R1-NVFP4"},
      {"nvidia/DeepSeek-R1-0528-FP4-V2", "nvidia/DeepSeek-R1-0528-FP4-v2"},
      {"nvidia/DeepSeek-V3.1-NVFP4", "nvidia/DeepSeek-V3.1-NVFP4"},
      {"nvidia/Qwen3-32B-NVFP4", "nvidia/Qwen3-32B-NVFP4"},
      {"nvidia/Llama-3.1-8B-Instruct-FP8", "nvidia/Llama-3.1-8B-Instruct-FP8"},
      {"zhipuai/GLM-5", "zai-org/GLM-5"},
      {"zai-org/GLM-5", "zai-org/GLM-5"},
      {"openai/gpt-oss-120b", "openai/gpt-oss-120b"},
      {"gpt-oss-120b", "openai/gpt-oss-120b"},
      {"Qwen/Qwen3-235B-A22B-FP8", "Qwen/Qwen3-235B-A22B-FP8"},
      {"meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.1-70B"},
      {"meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B"},
      {"Kimi-K2.5-NVFP4", "nvidia/Kimi-K2.5-NVFP4"},
      {"MiniMaxAI/MiniMax-M2.5", "MiniMaxAI/MiniMax-M2.5"},
      {"Qwen/Qwen3.5-397B-A17B", "Qwen/Qwen3.5-397B-A17B"},
      {"meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-7b-hf"}};
  for (const auto& [written, card] : names) EXPECT_EQ(used(written), card) << written;
}

TEST(FindModel, FitsWithoutOrganisationDecorationAndCase) {  // decisions.md 9c
  for (const char* name :
       {"meta-llama/Llama-3.1-8B", "Llama-3.1-8B", "llama-3.1-8b", "Meta-Llama-3.1-8B",
        "meta-llama/Meta-Llama-3.1-8B-Instruct", "META-LLAMA/llama-3.1-8B-INSTRUCT"}) {
    EXPECT_EQ(used(name), "meta-llama/Llama-3.1-8B") << name;
  }
  EXPECT_EQ(used("Qwen3-32B"), "Qwen/Qwen3-32B");
  EXPECT_EQ(used("Qwen3-32B-FP8"), "Qwen/Qwen3-32B-FP8");
  EXPECT_EQ(used("deepseek-r1"), "deepseek-ai/DeepSeek-R1");
}

TEST(FindModel, NeverSubstitutes) {  // bugs.md A46
  for (const char* name :
       {"foo/bar", "", "/", "instruct", "-instruct", "meta-", "Llama-3.1", "Llama-3.1-8B-FP8",
        "foo/Llama-3.1-8B", "Qwen3-30B-A3B-Instruct-2507", "Qwen/", "meta-llama/", "DeepSeek"}) {
    EXPECT_EQ(used(name), "model.unknown") << name;
  }
}

TEST(FindModel, NamesTheNearestAndAllCards) {
  const Problem problem = find_model("Lama-3.1-8B-Instruct").error().front();
  EXPECT_THAT(problem.message, HasSubstr("\"Lama-3.1-8B-Instruct\""));
  EXPECT_THAT(problem.message, HasSubstr("openai/gpt-oss-120b"));
  EXPECT_EQ(problem.hint, "did you mean meta-llama/Llama-3.1-8B?");
  EXPECT_THAT(find_model("foo/bar").error().front().hint, HasSubstr("config.json"));
}

TEST(FittingModels, ListsAllThatFitEquallyWell) {
  const std::vector<std::string> names{"a/Model-7B", "b/model-7b", "a/Model-7B-Instruct",
                                       "c/Other"};
  EXPECT_THAT(fitting_models("a/model-7b", names), ElementsAre(0));
  EXPECT_THAT(fitting_models("model-7b", names), ElementsAre(0, 1));
  EXPECT_THAT(fitting_models("Model-7B-Instruct", names), ElementsAre(2));
  EXPECT_THAT(fitting_models("Model-7B-Chat", names), ElementsAre(0, 1, 2));
  EXPECT_THAT(fitting_models("c/Other-Instruct", names), ElementsAre(3));
  EXPECT_THAT(fitting_models("d/Other", names), IsEmpty());
}

TEST(ParseModelCard, RefusesUnknownKeysAtEveryDepth) {
  EXPECT_EQ(problem_of(card_with("\"vocab\"", "\"layer\": 1, \"vocab\"")).code, "card.unknown_key");
  EXPECT_EQ(problem_of(card_with("\"vocab\"", "\"layer\": 1, \"vocab\"")).hint,
            "did you mean layers?");
  EXPECT_EQ(problem_of(card_with("\"kv_heads\"", "\"x\": 1, \"kv_heads\"")).message,
            "layers[0].mixer.x is not a key of this object");
  EXPECT_EQ(problem_of(card_with("\"tokens\"", "\"x\": 1, \"tokens\"")).message,
            "layers[1].mixer.index.x is not a key of this object");
  EXPECT_EQ(problem_of(card_with("\"width\"", "\"x\": 1, \"width\"")).code, "card.unknown_key");
  EXPECT_EQ(problem_of(card_with("\"experts\": \"", "\"x\": 1, \"experts\": \"")).code,
            "card.unknown_key");
}

TEST(ParseModelCard, RefusesWrongTypesAndSizes) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"vocab\": 100", "\"vocab\": 4.0"},
           {"\"vocab\": 100", "\"vocab\": -4"},
           {"\"vocab\": 100", "\"vocab\": 0"},
           {"\"vocab\": 100", "\"vocab\": \"4\""},
           {"\"vocab\": 100", "\"vocab\": 4294967296"},
           {"\"vocab\": 100", "\"vocab\": null"},
           {"\"window\": 32", "\"qk_norm\": 1"},
           {"\"a/b\"", "\"\""},
           {"GptOssForCausalLM", "FooForCausalLM"},
           {"\"grouped\"", "\"flash\""},
           {"\"mxfp4\"", "\"mixed_precision\""},
           {"\"experts\": \"mxfp4\"", "\"kv_cache\": \"nvfp4\""},
           {"\"kv_heads\": 2", "\"kv_heads\": 9"},
           {"\"per_token\": 2", "\"per_token\": 9"},
           {"\"count\": 2", "\"count\": 3"},
           {"\"aba\"", "\"abac\""},
           {"{\"heads\": 6, \"head_dim\": 7, \"tokens\": 9}", "3"}}) {
    const Problem problem = problem_of(card_with(from, to));
    EXPECT_EQ(problem.code, "card.wrong_value") << to;
    EXPECT_EQ(problem.place.file, "b.json");
  }
  EXPECT_EQ(problem_of(card_with("\"vocab\": 100,", "")).code, "card.missing_key");
  EXPECT_EQ(problem_of("[]").code, "card.syntax");
  EXPECT_EQ(problem_of("{").code, "card.syntax");
}

TEST(ParseModelCard, AcceptsTheCardThatTheOtherTestsSpoil) {
  const auto card = parse_model_card(card_with("a/b", "a/b"), "b.json");
  ASSERT_TRUE(card);
  EXPECT_EQ(card->layers(), 3u);
  EXPECT_EQ(card->experts()->per_token, 2u);
  EXPECT_EQ(card->mixer<GroupedAttention>()->window, 32u);
  EXPECT_EQ(card->mixer<GroupedAttention>()->head_dim_value, 16u);
  EXPECT_EQ(card->mixer<LatentAttention>()->index->tokens, 9u);
  EXPECT_EQ(card->group_of(1), 1u);
}

}  // namespace
}  // namespace servecast::catalog
