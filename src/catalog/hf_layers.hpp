// SPDX-License-Identifier: Apache-2.0
// The parts that families of models share while their layers are read from a config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalog/hf_json.hpp"

namespace servecast::catalog {

struct Layer {
  Mixer mixer;
  FeedForward feed_forward;
  friend bool operator==(const Layer&, const Layer&) = default;
};
using Layers = std::vector<Layer>;

std::string text_of(const HfJson& value);
std::uint32_t number_of(const HfJson& value);  // 0 when it is none

// Attention as most files describe it.
GroupedAttention grouped_of(HfConfig& at, const ModelCard& card);
LatentAttention latent_of(HfConfig& at);
// Nothing for a dense model.
std::optional<Experts> experts_of(HfConfig& at);
Dense dense_of(HfConfig& at);
// The feed-forward part of each layer: experts where the keys say so, else dense.
std::vector<FeedForward> feed_forwards(HfConfig& at, std::uint32_t layers);
// The window of each layer, 0 where it sees all: models with layer_types, or with
// use_sliding_window and max_window_layers (Qwen2), or with a window in every layer (Mistral).
std::vector<std::uint32_t> windows(HfConfig& at, const ModelCard& card, std::uint32_t layers);

// hf_layers.cpp
Layers plain_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers);

// hf_hybrid_layers.cpp: families whose layers differ in more than a window.
Layers compressed_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers);
Layers block_sparse_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers);
Layers delta_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers);
Layers kimi_k3_layers(HfConfig& at, std::uint32_t layers);
Layers nemotron_h_layers(HfConfig& at, const ModelCard& card);
Layers nemotron_nas_layers(HfConfig& at, const ModelCard& card, std::uint32_t layers);

}  // namespace servecast::catalog
