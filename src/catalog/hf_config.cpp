// SPDX-License-Identifier: Apache-2.0
#include "catalog/hf_config.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "catalog/hf_json.hpp"

namespace servecast::catalog {
namespace {

std::string with_null_for_nan(std::string_view json) {
  constexpr std::string_view kTokens[] = {"-Infinity", "Infinity", "NaN"};
  std::string out;
  out.reserve(json.size());
  bool quoted = false;
  for (std::size_t i = 0; i < json.size();) {
    std::size_t skip = 0;
    for (const std::string_view token : kTokens) {
      if (!quoted && json.substr(i).starts_with(token)) skip = std::max(skip, token.size());
    }
    if (skip > 0) {
      out += "null";
      i += skip;
      continue;
    }
    if (quoted && json[i] == '\\' && i + 1 < json.size())
      out += json[i++];
    else if (json[i] == '"')
      quoted = !quoted;
    out += json[i++];
  }
  return out;
}

// Facts that towers name differently. Nothing when one of them is missing: it is not the language
// model, and text can be timed without it.
std::optional<Vision> vision_of(const HfJson& root) {
  if (!root.contains("vision_config") || !root["vision_config"].is_object()) return std::nullopt;
  const HfJson& tower = root["vision_config"];
  const auto first = [&](const HfJson& object, HfConfig::Keys keys) -> std::uint32_t {
    const HfJson* value = HfConfig::find_in(object, keys);
    if (value != nullptr && value->is_array() && !value->empty()) value = &value->front();
    return value != nullptr && value->is_number_unsigned() ? value->get<std::uint32_t>() : 0;
  };
  Vision v{
      .layers = first(tower, {"depth", "num_hidden_layers", "vt_num_hidden_layers"}),
      .hidden = first(tower, {"hidden_size", "vt_hidden_size"}),
      .heads = first(tower, {"num_heads", "num_attention_heads", "vt_num_attention_heads"}),
      .width = first(tower, {"intermediate_size", "vt_intermediate_size"}),
      .patch = first(tower, {"patch_size"}),
      .merge = first(tower, {"spatial_merge_size", "merge_kernel_size", "pooling_kernel_size"}),
      .hidden_out = first(tower, {"out_hidden_size", "text_hidden_size", "projection_dim"})};
  if (v.merge == 0 && tower.contains("img_token_compression_config"))
    v.merge = first(tower["img_token_compression_config"], {"spatial_merge_size"});
  if (v.merge == 0) v.merge = 1;
  if (v.hidden_out == 0 && root.contains("text_config"))
    v.hidden_out = first(root["text_config"], {"hidden_size"});
  if (tower.contains("deepstack_visual_indexes") && tower["deepstack_visual_indexes"].is_array())
    v.deepstack = static_cast<std::uint32_t>(tower["deepstack_visual_indexes"].size());
  const bool whole =
      v.layers > 0 && v.hidden > 0 && v.heads > 0 && v.width > 0 && v.patch > 0 && v.hidden_out > 0;
  return whole ? std::optional(v) : std::nullopt;
}

std::string first_architecture(const HfJson& root) {
  const auto found = root.find("architectures");
  if (found == root.end() || !found->is_array() || found->empty() || !found->front().is_string())
    return {};
  return found->front().get<std::string>();
}

// Fills architecture and family; false, with a Problem, when there is no family for it.
bool read_architecture(HfConfig& at, ModelCard& card) {
  card.architecture = first_architecture(at.root());
  if (const auto family = family_of(card.architecture)) {
    card.family = *family;
    return true;
  }
  const auto near = nearest_name(card.architecture, known_architectures());
  at.problem("model.architecture",
             card.architecture.empty()
                 ? std::string("config.json names no architecture in \"architectures\"")
                 : fmt::format("architecture {} needs a mapping to a family; known are {}",
                               card.architecture, fmt::join(known_architectures(), ", ")),
             near ? fmt::format("did you mean {}?", *near)
                  : std::string("engine.model_like names a model that is built alike"));
  return false;
}

// The rules of our own cards hold for this one too: no size is 0, counts fit each other.
Result<ModelCard> checked(const ModelCard& card) {
  Result<ModelCard> read = parse_model_card(to_json(card), "config.json");
  if (read) return read;
  for (Problem& problem : read.error()) {
    problem.code = "model.config";
    problem.place = {};
    problem.message = "config.json does not describe a model: " + problem.message;
  }
  return read;
}

}  // namespace

HfJson parse_lenient(std::string_view json) {
  return HfJson::parse(with_null_for_nan(json), nullptr, /*allow_exceptions=*/false);
}

HfConfig::HfConfig(const HfJson& root, Problems& problems)
    : root_(root),
      text_(root.contains("text_config") && root["text_config"].is_object() ? root["text_config"]
                                                                            : root),
      problems_(problems) {}

const HfJson* HfConfig::find_in(const HfJson& object, Keys keys) {
  for (const char* key : keys) {
    const auto found = object.find(key);
    if (found != object.end() && !found->is_null()) return &*found;
  }
  return nullptr;
}

std::optional<std::uint32_t> HfConfig::number(Keys keys) {
  const HfJson* value = find(keys);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned() &&
      value->get<std::uint64_t>() <= std::numeric_limits<std::uint32_t>::max())
    return value->get<std::uint32_t>();
  problem("model.config", fmt::format("config.json: {} is {}; it must be a whole number",
                                      *keys.begin(), value->dump()));
  return std::nullopt;
}

std::uint32_t HfConfig::size(Keys keys) {
  const HfJson* value = find(keys);
  const std::uint32_t found = number_or(keys, 0);
  if (value == nullptr)
    problem("model.config", fmt::format("config.json: {} is missing", *keys.begin()));
  else if (found == 0 && value->is_number_unsigned())
    problem("model.config", fmt::format("config.json: {} must be above 0", *keys.begin()));
  return found;
}

bool HfConfig::flag(const char* key, bool otherwise) const {
  const HfJson* value = find({key});
  return value != nullptr && value->is_boolean() ? value->get<bool>() : otherwise;
}

const HfJson* HfConfig::per_layer(const char* key, std::uint32_t layers, std::uint32_t drafts) {
  const HfJson* list = find({key});
  if (list == nullptr) return nullptr;
  if (list->is_array() && list->size() >= layers && list->size() <= layers + drafts) return list;
  problem("model.config", fmt::format("config.json: {} has {} items; the model has {} layers", key,
                                      list->is_array() ? list->size() : 0, layers));
  return nullptr;
}

Result<ModelCard> read_hf_config(std::string_view json, std::string_view name,
                                 std::optional<std::string_view> hf_quant_config) {
  const HfJson root = parse_lenient(json);
  if (!root.is_object())
    return fail({"model.syntax", "config.json must be one JSON object", {}, ""});
  HfJson quant;
  if (hf_quant_config) {
    quant = parse_lenient(*hf_quant_config);
    if (!quant.is_object())
      return fail({"model.syntax", "hf_quant_config.json must be one JSON object", {}, ""});
  }
  Problems problems;
  HfConfig at(root, problems);
  ModelCard card;
  card.name = name;
  if (!read_architecture(at, card)) return tl::unexpected(std::move(problems));
  card.hidden = at.size({"hidden_size", "n_embd"});
  card.vocab = at.size({"vocab_size"});
  card.context_max = at.size({"max_position_embeddings", "n_positions"});
  const HfJson* tied = HfConfig::find_in(root, {"tie_word_embeddings"});
  if (tied == nullptr) tied = at.find({"tie_word_embeddings"});
  card.embeddings_tied = tied != nullptr && tied->is_boolean() && tied->get<bool>();
  card.draft_layers =
      at.number_or({"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"}, 0);
  card.residual_streams = at.number_or({"hc_mult"}, 1);
  card.residual_block = at.number_or({"attn_res_block_size"}, 0);
  card.vision = vision_of(root);
  if (problems.empty()) read_layers(at, card);
  if (problems.empty()) read_precision(at, hf_quant_config ? &quant : nullptr, card);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  card.source = "config.json";
  card.licence = "facts about the model";
  return checked(card);
}

}  // namespace servecast::catalog
