// SPDX-License-Identifier: Apache-2.0
// Which layers a config.json describes: one function per way of writing a model down.
#include "catalog/hf_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace servecast::catalog {

Layers plain_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers) {
  const GroupedAttention attention = grouped_of(at, card);
  const std::vector<FeedForward> parts = feed_forwards(at, layers);
  const std::vector<std::uint32_t> window = windows(at, card, layers);
  Layers list;
  for (std::uint32_t i = 0; i < layers; ++i) {
    GroupedAttention mixer = attention;
    mixer.window = window[i];
    list.push_back({mixer, parts[i]});
  }
  return list;
}

namespace {

constexpr std::size_t kGroupsMax = 26;  // letters of ModelCard::order
constexpr std::uint32_t kLayersMax = 10'000;

// The same layers as groups of equal ones.
void fill_groups(const Layers& layers, HfConfig& at, ModelCard& card) {
  for (const Layer& layer : layers) {
    auto group = std::find_if(card.groups.begin(), card.groups.end(), [&](const LayerGroup& g) {
      return g.mixer == layer.mixer && g.feed_forward == layer.feed_forward;
    });
    if (group == card.groups.end())
      group = card.groups.insert(card.groups.end(), {0, layer.mixer, layer.feed_forward});
    ++group->count;
    card.order += static_cast<char>('a' + (group - card.groups.begin()));
  }
  if (card.groups.size() == 1) card.order.clear();
  if (card.groups.size() > kGroupsMax)
    at.problem("model.config", fmt::format("config.json describes {} kinds of layers; at most {}",
                                           card.groups.size(), kGroupsMax));
}

Layers gpt_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers) {
  const Dense dense{.width = at.number_or({"intermediate_size", "n_inner"}, 4 * card.hidden),
                    .gated = false};
  return Layers(layers, {grouped_of(at, card), dense});
}

// DeepSeek V2, V3, V3.2, Kimi-K2 and GLM-5. Some GLM layers attend to what an earlier layer's
// indexer picked.
Layers latent_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers) {
  LatentAttention attention = latent_of(at);
  if (card.family == Family::DeepSeekV32)
    attention.index = SparseIndex{.heads = at.size({"index_n_heads"}),
                                  .head_dim = at.size({"index_head_dim"}),
                                  .tokens = at.size({"index_topk"})};
  const std::vector<FeedForward> parts = feed_forwards(at, layers);
  const HfJson* types = at.per_layer("indexer_types", layers, card.draft_layers);
  Layers list;
  for (std::uint32_t i = 0; i < layers; ++i) {
    LatentAttention mixer = attention;
    if (types != nullptr && mixer.index) mixer.index->own = text_of((*types)[i]) != "shared";
    list.push_back({mixer, parts[i]});
  }
  return list;
}

// Three of four layers see their chunk only; the published files leave that to the code.
Layers llama4_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers) {
  const GroupedAttention attention = grouped_of(at, card);
  const std::uint32_t chunk = at.size({"attention_chunk_size"});
  const std::uint32_t step = std::max(1u, at.number_or({"interleave_moe_layer_step"}, 1));
  std::optional<Experts> experts = experts_of(at);
  if (!experts) at.size({"num_local_experts"});
  if (experts) experts->shared_width = experts->width;
  const HfJson* rope = at.per_layer("no_rope_layers", layers);
  const Dense dense{.width = at.size({"intermediate_size_mlp", "intermediate_size"})};
  Layers list;
  for (std::uint32_t i = 0; i < layers; ++i) {
    GroupedAttention mixer = attention;
    const bool local = rope != nullptr ? number_of((*rope)[i]) != 0 : (i + 1) % 4 != 0;
    if (local) mixer.window = chunk;
    mixer.qk_norm = false;
    const bool sparse = experts && (i + 1) % step == 0;
    list.push_back({mixer, sparse ? FeedForward(*experts) : FeedForward(dense)});
  }
  return list;
}

// hybrid_layer_pattern: 0 is a layer that sees all, 1 one with a window.
Layers mimo_v2_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers) {
  const GroupedAttention global = grouped_of(at, card);
  const GroupedAttention sliding{
      .heads = at.number_or({"swa_num_attention_heads"}, global.heads),
      .kv_heads = at.number_or({"swa_num_key_value_heads"}, global.kv_heads),
      .head_dim = at.number_or({"swa_head_dim"}, global.head_dim),
      .head_dim_value = at.number_or({"swa_v_head_dim"}, global.head_dim_value),
      .window = at.size({"sliding_window", "sliding_window_size"})};
  const HfJson* pattern = at.per_layer("hybrid_layer_pattern", layers);
  if (at.find({"hybrid_layer_pattern"}) == nullptr) at.size({"hybrid_layer_pattern"});
  const std::vector<FeedForward> parts = feed_forwards(at, layers);
  Layers list;
  for (std::uint32_t i = 0; pattern != nullptr && i < layers; ++i)
    list.push_back({number_of((*pattern)[i]) == 0 ? global : sliding, parts[i]});
  return list;
}

Layers step_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers) {
  Layers list = plain_layers(at, card, layers);
  const HfJson* other = at.find({"attention_other_setting"});
  if (other == nullptr || !other->is_object()) return list;
  for (Layer& layer : list) {
    auto& mixer = std::get<GroupedAttention>(layer.mixer);
    if (mixer.window == 0) continue;
    const auto replace = [&](const char* key, std::uint32_t& value) {
      if (const HfJson* found = HfConfig::find_in(*other, {key})) value = number_of(*found);
    };
    replace("num_attention_heads", mixer.heads);
    replace("num_attention_groups", mixer.kv_heads);
    replace("num_key_value_heads", mixer.kv_heads);
    replace("head_dim", mixer.head_dim);
    mixer.head_dim_value = mixer.head_dim;
  }
  return list;
}

// Layers that see all have their own heads, and K as V; experts stand beside a dense part.
Layers gemma4_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers) {
  const GroupedAttention sliding = grouped_of(at, card);
  GroupedAttention global = sliding;
  global.kv_heads = at.number_or({"num_global_key_value_heads"}, sliding.kv_heads);
  global.head_dim = at.number_or({"global_head_dim"}, sliding.head_dim);
  global.head_dim_value = global.head_dim;
  global.key_is_value = at.flag("attention_k_eq_v", false);
  const Dense dense = dense_of(at);
  std::optional<Experts> experts = experts_of(at);
  if (experts) experts->dense_width = dense.width;
  const std::vector<std::uint32_t> window = windows(at, card, layers);
  if (at.find({"layer_types"}) == nullptr) at.size({"layer_types"});
  Layers list;
  for (const std::uint32_t tokens : window) {
    GroupedAttention mixer = tokens == 0 ? global : sliding;
    mixer.window = tokens;
    list.push_back({mixer, experts ? FeedForward(*experts) : FeedForward(dense)});
  }
  return list;
}

Layers layers_of(HfConfig& at, const ModelCard& card) {
  if (card.family == Family::NemotronH) return nemotron_h_layers(at, card);
  const std::uint32_t layers = at.size({"num_hidden_layers", "n_layer"});
  if (layers > kLayersMax) {
    at.problem("model.config",
               fmt::format("config.json: num_hidden_layers is {}; at most {}", layers, kLayersMax));
    return {};
  }
  switch (card.family) {
    case Family::Gpt:
      return gpt_layers(at, card, layers);
    case Family::Llama:
    case Family::Moe:
    case Family::Qwen3Vl:
    case Family::Qwen3VlMoe:
      return plain_layers(at, card, layers);
    case Family::DeepSeek:
    case Family::DeepSeekV32:
    case Family::KimiK25:
      return latent_layers(at, card, layers);
    case Family::DeepSeekV4:
      return compressed_layers(at, card, layers);
    case Family::KimiK3:
      return kimi_k3_layers(at, layers);
    case Family::NemotronNas:
      return nemotron_nas_layers(at, card, layers);
    case Family::MiniMaxM3:
      return block_sparse_layers(at, card, layers);
    case Family::Step3p7:
      return step_layers(at, card, layers);
    case Family::HybridMoe:
      return card.architecture.starts_with("Llama4") ? llama4_layers(at, card, layers)
                                                     : mimo_v2_layers(at, card, layers);
    case Family::Qwen35:
      return delta_layers(at, card, layers);
    case Family::Gemma4:
      return gemma4_layers(at, card, layers);
    case Family::NemotronH:
      break;
  }
  return {};
}

}  // namespace

void read_layers(HfConfig& at, ModelCard& card) {
  fill_groups(layers_of(at, card), at, card);
}

}  // namespace servecast::catalog
