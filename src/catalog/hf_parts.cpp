// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "catalog/hf_layers.hpp"

namespace servecast::catalog {

std::string text_of(const HfJson& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::uint32_t number_of(const HfJson& value) {
  return value.is_number_unsigned() ? value.get<std::uint32_t>() : 0;
}

GroupedAttention grouped_of(HfConfig& at, const ModelCard& card) {
  GroupedAttention a;
  a.heads = at.size({"num_attention_heads", "n_head"});
  a.kv_heads = at.number_or({"num_key_value_heads"}, a.heads);
  a.head_dim = at.number_or({"head_dim", "attention_head_dim"}, 0);
  if (a.head_dim == 0 && a.heads > 0) a.head_dim = card.hidden / a.heads;
  a.head_dim_value = at.number_or({"v_head_dim"}, a.head_dim);
  const std::string& name = card.architecture;
  a.qk_norm = name.starts_with("Qwen3") || name.starts_with("MiniMaxM2") ||
              name.starts_with("Step3") || at.flag("use_qk_norm", false);
  if (a.kv_heads > a.heads)
    at.problem("model.config",
               fmt::format("config.json: num_key_value_heads is {}, more than the {} heads",
                           a.kv_heads, a.heads));
  return a;
}

std::optional<Experts> experts_of(HfConfig& at) {
  const std::uint32_t count =
      at.number_or({"num_local_experts", "n_routed_experts", "moe_num_experts", "num_experts"}, 0);
  if (count == 0) return std::nullopt;
  Experts e{.count = count};
  e.per_token = at.number_or(
      {"num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_top_k"}, 0);
  e.width = at.size({"moe_intermediate_size", "intermediate_size"});
  const std::uint32_t shared = at.number_or({"n_shared_experts", "num_shared_experts"}, 0);
  e.shared_width = at.number_or({"moe_shared_expert_intermediate_size",
                                 "shared_expert_intermediate_size", "share_expert_dim"},
                                shared * e.width);
  e.latent = at.number_or({"moe_latent_size", "routed_expert_hidden_size"}, 0);
  if (e.per_token > e.count)
    at.problem("model.config",
               fmt::format("config.json: {} experts per token of {}", e.per_token, e.count));
  return e;
}

Dense dense_of(HfConfig& at) {
  return {.width = at.size({"dense_intermediate_size", "intermediate_size"})};
}

LatentAttention latent_of(HfConfig& at) {
  LatentAttention a;
  a.heads = at.size({"num_attention_heads"});
  a.query_rank = at.number_or({"q_lora_rank"}, 0);
  a.kv_rank = at.size({"kv_lora_rank"});
  a.head_dim_nope = at.size({"qk_nope_head_dim"});
  a.head_dim_rope = at.size({"qk_rope_head_dim"});
  a.head_dim_value = at.size({"v_head_dim"});
  a.output_gate = at.flag("mla_use_output_gate", false);
  return a;
}

namespace {

// Whether layer i has experts, by the keys of any family.
class ExpertLayers {
 public:
  ExpertLayers(HfConfig& at, std::uint32_t layers)
      : first_(at.number_or({"first_k_dense_replace"}, 0)),
        sparse_step_(at.number_or({"decoder_sparse_step"}, 1)),
        dense_only_(at.find({"mlp_only_layers"})),
        listed_(at.find({"moe_layers_enum"})) {
    const HfJson* frequency = at.find({"moe_layer_freq"});
    if (frequency == nullptr) return;
    if (frequency->is_array())
      flags_ = at.per_layer("moe_layer_freq", layers);
    else
      every_ = std::max(1u, number_of(*frequency));
  }

  bool at(std::uint32_t layer) const {
    if (listed_ != nullptr) return names(*listed_, layer);
    if (flags_ != nullptr) return number_of((*flags_)[layer]) != 0;
    if (dense_only_ != nullptr && names(*dense_only_, layer)) return false;
    return layer >= first_ && layer % every_ == 0 && (layer + 1) % std::max(1u, sparse_step_) == 0;
  }

 private:
  // Lists of layers are written as a JSON list or as "3,4,5".
  static bool names(const HfJson& list, std::uint32_t layer) {
    if (list.is_array())
      return std::any_of(list.begin(), list.end(), [&](const HfJson& item) {
        return item.is_number_unsigned() && item.get<std::uint64_t>() == layer;
      });
    return list.is_string() &&
           ("," + list.get<std::string>() + ",").find(fmt::format(",{},", layer)) !=
               std::string::npos;
  }

  std::uint32_t first_ = 0;
  std::uint32_t sparse_step_ = 1;
  std::uint32_t every_ = 1;
  const HfJson* dense_only_ = nullptr;
  const HfJson* listed_ = nullptr;
  const HfJson* flags_ = nullptr;
};

}  // namespace

std::vector<FeedForward> feed_forwards(HfConfig& at, std::uint32_t layers) {
  const std::optional<Experts> experts = experts_of(at);
  const ExpertLayers has_experts(at, layers);
  std::vector<FeedForward> list;
  bool any_dense = false;
  for (std::uint32_t i = 0; i < layers; ++i) {
    const bool sparse = experts && has_experts.at(i);
    any_dense = any_dense || !sparse;
    list.push_back(sparse ? FeedForward(*experts) : FeedForward(Dense{}));
  }
  if (!any_dense) return list;
  const Dense dense = dense_of(at);
  for (FeedForward& part : list) {
    if (std::holds_alternative<Dense>(part)) part = dense;
  }
  return list;
}

std::vector<std::uint32_t> windows(HfConfig& at, const ModelCard& card, std::uint32_t layers) {
  std::vector<std::uint32_t> list(layers, 0);
  const std::uint32_t window = at.number_or({"sliding_window"}, 0);
  if (const HfJson* types = at.per_layer("layer_types", layers, card.draft_layers)) {
    for (std::uint32_t i = 0; i < layers; ++i) {
      const std::string type = text_of((*types)[i]);
      if (type != "sliding_attention" && type != "full_attention")
        at.problem("model.config", fmt::format("config.json: layer_types has {}; known are "
                                               "sliding_attention, full_attention",
                                               type));
      if (type != "sliding_attention") continue;
      list[i] = window;
      if (window == 0) at.problem("model.config", "config.json: sliding_window is missing");
    }
    return list;
  }
  if (window == 0) return list;
  if (card.architecture.starts_with("GptOss")) {  // every other layer, from the first
    for (std::uint32_t i = 0; i < layers; i += 2) list[i] = window;
    return list;
  }
  const bool by_default = card.architecture.starts_with("Mi") &&  // Mistral, Mixtral
                          !card.architecture.starts_with("MiMo");
  if (!at.flag("use_sliding_window", by_default)) return list;
  const std::uint32_t first = at.number_or({"max_window_layers"}, 0);
  for (std::uint32_t i = first; i < layers; ++i) list[i] = window;
  return list;
}

}  // namespace servecast::catalog
