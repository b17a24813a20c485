// SPDX-License-Identifier: Apache-2.0
#include "catalog/hf_categories.hpp"

#include <charconv>
#include <map>
#include <variant>

namespace servecast::catalog {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

std::optional<Category> category_of(std::string_view name) {
  if (has(name, "norm") || has(name, "bias") || has(name, "indexer") || has(name, "vision") ||
      has(name, "visual") || has(name, "mtp"))
    return std::nullopt;
  if (has(name, "lm_head") || name == "head") return Category::Head;
  if (has(name, "shared_expert"))
    return has(name, "shared_expert_gate") ? std::nullopt : std::optional(Category::SharedExperts);
  if (has(name, "expert")) return Category::Experts;
  for (const std::string_view block : {"self_attn", "linear_attn", ".attn"}) {
    const std::size_t at = name.find(block);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = name.substr(at + block.size());
    const bool whole = rest.empty() || rest == "*" || rest == ".*";
    return whole || has(rest, "o_proj") || has(rest, "out_proj")
               ? std::optional(Category::Attention)
               : std::nullopt;
  }
  if (has(name, "o_proj")) return Category::Attention;
  const std::size_t mlp = name.find("mlp");
  if (mlp == std::string_view::npos) return std::nullopt;
  const std::string_view rest = name.substr(mlp + 3);
  const bool whole = rest.empty() || rest == "*" || rest == ".*" || has(rest, "_proj");
  return whole ? std::optional(Category::Dense) : std::nullopt;
}

namespace {

// The number after "layers." and what follows it.
struct LayerName {
  std::uint32_t layer = 0;
  std::string_view rest;
};
std::optional<LayerName> layer_of(std::string_view name) {
  constexpr std::string_view kKey = "layers.";
  const std::size_t at = name.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  LayerName found;
  const char* first = name.data() + at + kKey.size();
  const char* last = name.data() + name.size();
  const auto end = std::from_chars(first, last, found.layer);
  if (end.ec != std::errc{}) return std::nullopt;
  found.rest = std::string_view(end.ptr, static_cast<std::size_t>(last - end.ptr));
  return found;
}

}  // namespace

bool has_category(const ModelCard& card, std::uint32_t layer, Category category) {
  const LayerGroup& group = card.groups[card.group_of(layer)];
  const auto* experts = std::get_if<Experts>(&group.feed_forward);
  switch (category) {
    case Category::Attention:
      return !std::holds_alternative<NoMixer>(group.mixer);
    case Category::Dense:
      return std::holds_alternative<Dense>(group.feed_forward) ||
             (experts != nullptr && experts->dense_width > 0);
    case Category::SharedExperts:
      return experts != nullptr && experts->shared_width > 0;
    case Category::Experts:
      return experts != nullptr;
    case Category::Head:
      break;
  }
  return false;
}

std::set<Category> excluded(const std::vector<std::string>& patterns, const ModelCard& card) {
  std::set<Category> all;
  std::map<Category, std::set<std::uint32_t>> layers;
  for (const std::string& pattern : patterns) {
    const auto numbered = layer_of(pattern);
    if (numbered && numbered->layer >= card.layers()) continue;  // draft layers
    const bool whole_layer = numbered && (numbered->rest == "*" || numbered->rest == ".*");
    if (whole_layer) {
      for (const Category category : kCategories) layers[category].insert(numbered->layer);
      continue;
    }
    const auto category = category_of(pattern);
    if (!category) continue;
    if (numbered)
      layers[*category].insert(numbered->layer);
    else
      all.insert(*category);
  }
  for (const auto& [category, named] : layers) {
    std::size_t have = 0, hit = 0;
    for (std::uint32_t layer = 0; layer < card.layers(); ++layer) {
      if (!has_category(card, layer, category)) continue;
      ++have;
      hit += named.count(layer);
    }
    if (2 * hit > have) all.insert(category);
  }
  return all;
}

}  // namespace servecast::catalog
