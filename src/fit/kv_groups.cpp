// SPDX-License-Identifier: Apache-2.0
#include "fit/kv_groups.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "perf/precision.hpp"

namespace servecast::fit {
namespace {

struct Layers {
  std::uint32_t full = 0, windowed = 0, window = 0;
  double elements_per_token = 0;  // of one layer on one rank
};

double kv_elements(const catalog::GroupedAttention& attention, std::uint32_t tensor) {
  const std::uint32_t heads = std::max((attention.kv_heads + tensor - 1) / tensor, 1U);
  return double{1} * heads * (attention.head_dim + attention.head_dim_value);
}

std::optional<Layers> layers_of(const perf::Placement& placement) {
  Layers layers;
  for (const catalog::LayerGroup& group : placement.model.groups) {
    const auto* attention = std::get_if<catalog::GroupedAttention>(&group.mixer);
    if (attention == nullptr) return std::nullopt;
    const double elements = kv_elements(*attention, placement.parallelism.tensor);
    if (layers.elements_per_token > 0 && elements != layers.elements_per_token) return std::nullopt;
    layers.elements_per_token = elements;
    if (attention->window == 0) {
      layers.full += group.count;
      continue;
    }
    if (layers.window > 0 && layers.window != attention->window) return std::nullopt;
    layers.window = attention->window;
    layers.windowed += group.count;
  }
  if (layers.full == 0 || layers.windowed == 0) return std::nullopt;
  return layers;
}

}  // namespace

std::vector<cache::KvGroup> kv_groups_of(const perf::Placement& placement,
                                         std::uint32_t block_tokens) {
  const auto layers = layers_of(placement);
  if (!layers) return {};
  const std::uint32_t size = std::min(layers->full, layers->windowed);
  const double bytes = layers->elements_per_token * size * block_tokens *
                       perf::bytes_per_element(placement.precisions.kv_cache);
  std::vector<cache::KvGroup> groups;
  const auto add = [&](std::uint32_t count, const char* name, std::optional<std::uint32_t> window) {
    for (std::uint32_t i = 0; i * size < count; ++i)
      groups.push_back({.name = fmt::format("{}{}", name, i),
                        .num_layers = size,
                        .block_size_tokens = block_tokens,
                        .page_size_bytes = static_cast<std::uint64_t>(std::llround(bytes)),
                        .sliding_window = window});
  };
  add(layers->full, "full", std::nullopt);
  add(layers->windowed, "window", layers->window);
  return groups;
}

}  // namespace servecast::fit
