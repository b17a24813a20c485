// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "catalog/hf_layers.hpp"

namespace servecast::catalog {

Layers compressed_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers) {
  CompressedAttention a{.heads = at.size({"num_attention_heads"}),
                        .head_dim = at.size({"head_dim"}),
                        .query_rank = at.size({"q_lora_rank"}),
                        .output_groups = at.size({"o_groups"}),
                        .output_rank = at.size({"o_lora_rank"}),
                        .window = at.size({"sliding_window"})};
  const SparseIndex index{.heads = at.size({"index_n_heads"}),
                          .head_dim = at.size({"index_head_dim"}),
                          .tokens = at.size({"index_topk"})};
  const std::vector<FeedForward> parts = feed_forwards(at, layers);
  const HfJson* ratios = at.per_layer("compress_ratios", layers, card.draft_layers);
  if (ratios == nullptr) at.size({"compress_ratios"});
  Layers list;
  for (std::uint32_t i = 0; ratios != nullptr && i < layers; ++i) {
    a.ratio = number_of((*ratios)[i]);
    if (a.ratio != 0 && a.ratio != 4 && a.ratio != 128)
      at.problem("model.config",
                 fmt::format("config.json: compress_ratios has {}; known are 0, 4, 128", a.ratio));
    a.index = a.ratio == 4 ? std::optional(index) : std::nullopt;
    list.push_back({a, parts[i]});
  }
  return list;
}

Layers block_sparse_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers) {
  const GroupedAttention attention = grouped_of(at, card);
  const std::vector<FeedForward> parts = feed_forwards(at, layers);
  const HfJson* sparse = at.find({"sparse_attention_config"});
  Layers list;
  for (std::uint32_t i = 0; i < layers; ++i) list.push_back({attention, parts[i]});
  if (sparse == nullptr || !sparse->is_object()) {
    at.problem("model.config", "config.json: sparse_attention_config is missing");
    return list;
  }
  const auto number = [&](const char* key) {
    const HfJson* value = HfConfig::find_in(*sparse, {key});
    if (value == nullptr || number_of(*value) == 0)
      at.problem("model.config",
                 fmt::format("config.json: sparse_attention_config.{} is missing", key));
    return value == nullptr ? 0 : number_of(*value);
  };
  const BlockSparseAttention mixer{.grouped = attention,
                                   .index_heads = number("sparse_num_index_heads"),
                                   .index_dim = number("sparse_index_dim"),
                                   .blocks = number("sparse_topk_blocks"),
                                   .block_tokens = number("sparse_block_size")};
  const HfJson* frequency = HfConfig::find_in(*sparse, {"sparse_attention_freq"});
  if (frequency != nullptr && (!frequency->is_array() || frequency->size() != layers))
    at.problem("model.config",
               fmt::format("config.json: sparse_attention_freq has not one item for each of the {} "
                           "layers",
                           layers));
  else
    for (std::uint32_t i = 0; i < layers; ++i) {
      if (frequency == nullptr || number_of((*frequency)[i]) != 0) list[i].mixer = mixer;
    }
  return list;
}

Layers delta_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers) {
  GroupedAttention full = grouped_of(at, card);
  full.qk_norm = true;
  full.output_gate = at.flag("attn_output_gate", true);
  const GatedDelta linear{.key_heads = at.size({"linear_num_key_heads"}),
                          .key_dim = at.size({"linear_key_head_dim"}),
                          .value_heads = at.size({"linear_num_value_heads"}),
                          .value_dim = at.size({"linear_value_head_dim"}),
                          .conv_width = at.size({"linear_conv_kernel_dim"})};
  const std::vector<FeedForward> parts = feed_forwards(at, layers);
  const HfJson* types = at.per_layer("layer_types", layers);
  if (at.find({"layer_types"}) == nullptr)
    at.problem("model.config", "config.json: layer_types is missing");
  Layers list;
  for (std::uint32_t i = 0; types != nullptr && i < layers; ++i) {
    const std::string type = text_of((*types)[i]);
    if (type != "linear_attention" && type != "full_attention")
      at.problem("model.config", fmt::format("config.json: layer_types has {}; known are "
                                             "linear_attention, full_attention",
                                             type));
    list.push_back({type == "linear_attention" ? Mixer(linear) : Mixer(full), parts[i]});
  }
  return list;
}

// Layer numbers of linear_attn_config count from 1.
Layers kimi_k3_layers(HfConfig& at, std::uint32_t layers) {
  const LatentAttention full = latent_of(at);
  const std::vector<FeedForward> parts = feed_forwards(at, layers);
  const HfJson* linear = at.find({"linear_attn_config"});
  const HfJson* listed = linear != nullptr && linear->is_object()
                             ? HfConfig::find_in(*linear, {"kda_layers"})
                             : nullptr;
  Layers list;
  for (std::uint32_t i = 0; i < layers; ++i) list.push_back({full, parts[i]});
  if (listed == nullptr || !listed->is_array()) {
    at.problem("model.config", "config.json: linear_attn_config.kda_layers is missing");
    return list;
  }
  const auto number = [&](const char* key) {
    const HfJson* value = HfConfig::find_in(*linear, {key});
    if (value == nullptr || number_of(*value) == 0)
      at.problem("model.config", fmt::format("config.json: linear_attn_config.{} is missing", key));
    return value == nullptr ? 0 : number_of(*value);
  };
  const KimiDelta mixer{.heads = number("num_heads"),
                        .head_dim = number("head_dim"),
                        .conv_width = number("short_conv_kernel_size")};
  for (const HfJson& item : *listed) {
    const std::uint32_t layer = number_of(item);
    if (layer >= 1 && layer <= layers)
      list[layer - 1].mixer = mixer;
    else
      at.problem("model.config",
                 fmt::format("config.json: kda_layers has {}; the layers are 1 to {}", item.dump(),
                             layers));
  }
  return list;
}

namespace {

// One symbol a layer: M Mamba-2, E experts, * attention, - dense. Newer files write words.
std::vector<char> hybrid_pattern(HfConfig& at) {
  std::vector<char> symbols;
  if (const HfJson* pattern = at.find({"hybrid_override_pattern"});
      pattern && pattern->is_string()) {
    for (const char c : pattern->get_ref<const std::string&>()) symbols.push_back(c);
    return symbols;
  }
  const HfJson* words = at.find({"layers_block_type"});
  if (words == nullptr || !words->is_array()) {
    at.problem("model.config", "config.json: hybrid_override_pattern is missing");
    return symbols;
  }
  for (const HfJson& word : *words) {
    const std::string text = text_of(word);
    symbols.push_back(text == "mamba"       ? 'M'
                      : text == "moe"       ? 'E'
                      : text == "attention" ? '*'
                      : text == "mlp"       ? '-'
                                            : '?');
    if (symbols.back() == '?')
      at.problem("model.config", fmt::format("config.json: layers_block_type has {}; known are "
                                             "mamba, moe, attention, mlp",
                                             text));
  }
  return symbols;
}

}  // namespace

Layers nemotron_h_layers(HfConfig& at, const ModelCard& card) {
  const std::vector<char> symbols = hybrid_pattern(at);
  if (const auto layers = at.number({"num_hidden_layers"}); layers && *layers != symbols.size())
    at.problem("model.config",
               fmt::format("config.json: the pattern has {} layers, num_hidden_layers is {}",
                           symbols.size(), *layers));
  const Mamba2 mamba{.heads = at.size({"mamba_num_heads"}),
                     .head_dim = at.size({"mamba_head_dim"}),
                     .groups = at.size({"n_groups"}),
                     .state = at.size({"ssm_state_size"}),
                     .conv_width = at.size({"conv_kernel"})};
  std::optional<Experts> experts = experts_of(at);
  if (experts) experts->gated = false;
  Layers list;
  for (const char symbol : symbols) {
    if (symbol == 'M')
      list.push_back({mamba, NoFeedForward{}});
    else if (symbol == '*')
      list.push_back({grouped_of(at, card), NoFeedForward{}});
    else if (symbol == 'E' && experts)
      list.push_back({NoMixer{}, *experts});
    else if (symbol == '-')
      list.push_back({NoMixer{}, Dense{.width = at.size({"intermediate_size"}), .gated = false}});
    else if (symbol != '?')
      at.problem("model.config",
                 fmt::format("config.json: hybrid_override_pattern has '{}'; known are M, E (with "
                             "n_routed_experts), *, -",
                             symbol));
  }
  return list;
}

constexpr double kWidthFactorMax = 1000.0;

// A neural architecture search left each block its own share of heads and width, or none.
Layers nemotron_nas_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers) {
  const HfJson* blocks = at.per_layer("block_configs", layers);
  if (blocks == nullptr) return plain_layers(at, card, layers);
  const std::uint32_t heads = at.size({"num_attention_heads"});
  Layers list;
  const HfJson nothing = HfJson::object();
  const auto is_set = [](const HfJson& part, const char* key) {
    const HfJson* value = HfConfig::find_in(part, {key});
    return value != nullptr && *value == true;
  };
  for (const HfJson& block : *blocks) {
    const HfJson* found = HfConfig::find_in(block, {"attention"});
    const HfJson& attention = found != nullptr ? *found : nothing;
    found = HfConfig::find_in(block, {"ffn"});
    const HfJson& ffn = found != nullptr ? *found : nothing;
    Layer layer;
    if (is_set(attention, "replace_with_linear") || is_set(ffn, "replace_with_linear"))
      at.problem("model.config",
                 "config.json: block_configs has replace_with_linear, which no "
                 "list of operators covers");
    if (!is_set(attention, "no_op")) {
      GroupedAttention mixer = grouped_of(at, card);
      const HfJson* share = HfConfig::find_in(attention, {"n_heads_in_group"});
      if (share != nullptr && number_of(*share) > 0) mixer.kv_heads = heads / number_of(*share);
      layer.mixer = mixer;
    }
    if (!is_set(ffn, "no_op")) {
      const HfJson* factor = HfConfig::find_in(ffn, {"ffn_mult"});
      if (factor == nullptr || !factor->is_number() || !(factor->get<double>() < kWidthFactorMax))
        at.problem("model.config", "config.json: block_configs.ffn.ffn_mult is missing");
      else  // 2/3 of the multiple, to the next multiple of 256
        layer.feed_forward = Dense{
            .width = (static_cast<std::uint32_t>(2.0 * factor->get<double>() * card.hidden / 3.0) +
                      255) /
                     256 * 256};
    }
    list.push_back(layer);
  }
  return list;
}

}  // namespace servecast::catalog
