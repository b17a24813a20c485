// SPDX-License-Identifier: Apache-2.0
// Cards against the published config.json files, where a folder of them is at hand.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "catalog/model_card.hpp"

namespace servecast::catalog {
namespace {

std::filesystem::path configs_folder() {
  const char* data = std::getenv("SERVECAST_DATA");
  const std::filesystem::path root =
      data != nullptr ? std::filesystem::path(data)
                      : std::filesystem::path(SERVECAST_SOURCE_DIR) / "../shared/data";
  return root / "model_configs";
}

// "meta-llama/Llama-3.1-8B" -> "meta-llama--Meta-Llama-3.1-8B_config.json", the name it was
// published by.
std::string file_of(const std::string& name) {
  std::string file = name;
  const std::size_t slash = file.find('/');
  file.replace(slash, 1, name.starts_with("meta-llama/") ? "--Meta-" : "--");
  return file + "_config.json";
}

void expect_attention(const ModelCard& card, const nlohmann::json& config) {
  if (const auto* latent = std::get_if<LatentAttention>(&card.attention)) {
    EXPECT_EQ(latent->heads, config.at("num_attention_heads"));
    EXPECT_EQ(latent->query_rank, config.at("q_lora_rank"));
    EXPECT_EQ(latent->kv_rank, config.at("kv_lora_rank"));
    EXPECT_EQ(latent->head_dim_nope, config.at("qk_nope_head_dim"));
    EXPECT_EQ(latent->head_dim_rope, config.at("qk_rope_head_dim"));
    EXPECT_EQ(latent->head_dim_value, config.at("v_head_dim"));
    ASSERT_EQ(latent->index.has_value(), config.contains("index_topk"));
    if (latent->index) {
      EXPECT_EQ(latent->index->tokens, config.at("index_topk"));
    }
    return;
  }
  const auto& grouped = std::get<GroupedAttention>(card.attention);
  EXPECT_EQ(grouped.heads, config.at("num_attention_heads"));
  EXPECT_EQ(grouped.kv_heads, config.at("num_key_value_heads"));
  EXPECT_EQ(grouped.head_dim, config.contains("head_dim")
                                  ? config.at("head_dim").get<std::uint32_t>()
                                  : card.hidden / grouped.heads);
  EXPECT_EQ(grouped.window.has_value(), config.contains("layer_types"));
  if (grouped.window) {
    EXPECT_EQ(grouped.window->tokens, config.at("sliding_window"));
  }
}

TEST(PublishedConfigs, SayWhatTheCardsSay) {
  const std::filesystem::path folder = configs_folder();
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no folder " << folder;
  int compared = 0;
  for (const ModelCard& card : models()) {
    SCOPED_TRACE(card.name);
    std::ifstream in(folder / file_of(card.name));
    if (!in) continue;  // a card may come from elsewhere
    const nlohmann::json config = nlohmann::json::parse(in);
    EXPECT_EQ(card.architecture, config.at("architectures").at(0));
    EXPECT_EQ(card.layers, config.at("num_hidden_layers"));
    EXPECT_EQ(card.hidden, config.at("hidden_size"));
    EXPECT_EQ(card.intermediate, config.at("intermediate_size"));
    EXPECT_EQ(card.vocab, config.at("vocab_size"));
    EXPECT_EQ(card.context_max, config.at("max_position_embeddings"));
    EXPECT_EQ(card.embeddings_tied, config.at("tie_word_embeddings"));
    EXPECT_EQ(card.experts.has_value(), config.contains("num_experts_per_tok"));
    if (card.experts) {
      EXPECT_EQ(card.experts->per_token, config.at("num_experts_per_tok"));
    }
    expect_attention(card, config);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace servecast::catalog
