// SPDX-License-Identifier: Apache-2.0
// What a model is: the facts of its config.json that time and memory depend on, as an embedding,
// groups of equal layers and a head. One file of data/models/ per model; `source` and `licence` say
// where its values come from.
//
//   auto card = catalog::find_model("meta-llama/Meta-Llama-3.1-8B-Instruct");
//   if (card) print(card->name);  // "meta-llama/Llama-3.1-8B": the card that is used
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"
#include "catalog/kinds.hpp"
#include "catalog/layers.hpp"

namespace servecast::catalog {

// How the published checkpoint stores each category of weights (perfmodel.md 2.2, annex A).
// Embedding and router are bfloat16.
struct WeightPrecision {
  Precision attention = Precision::Bfloat16;       // projections of every kind of mixer
  Precision dense = Precision::Bfloat16;           // dense feed-forward
  Precision shared_experts = Precision::Bfloat16;  // those that every token passes
  Precision experts = Precision::Bfloat16;         // routed
  Precision head = Precision::Bfloat16;
  Precision kv_cache = Precision::Bfloat16;  // Bfloat16 or Fp8
  bool attention_math_fp8 = false;           // attention may multiply in fp8
  std::uint32_t block = 0;                   // edge of an fp8_block scale block, in elements
  friend bool operator==(const WeightPrecision&, const WeightPrecision&) = default;
};

// The tower that encodes images.
struct Vision {
  std::uint32_t layers = 0;
  std::uint32_t hidden = 0;
  std::uint32_t heads = 0;
  std::uint32_t width = 0;       // inner width of the feed-forward part
  std::uint32_t patch = 0;       // edge of a patch, in pixels
  std::uint32_t merge = 1;       // patches along an edge that become one token
  std::uint32_t hidden_out = 0;  // the language model's hidden width
  std::uint32_t deepstack = 0;   // layers whose output enters the language model too
  friend bool operator==(const Vision&, const Vision&) = default;
};

struct ModelCard {
  std::string name;                  // organisation/model
  std::vector<std::string> aliases;  // other names of the same checkpoint
  std::string architecture;          // class name of the reference implementation
  Family family = Family::Llama;     // of the architecture
  std::uint32_t hidden = 0;
  std::uint32_t vocab = 0;
  std::uint32_t context_max = 0;       // positions, prompt and output together
  bool embeddings_tied = false;        // the output head is the embedding
  std::uint32_t draft_layers = 0;      // multi-token prediction; not among the layers
  std::uint32_t residual_streams = 1;  // hyper-connections: hidden states side by side
  std::uint32_t residual_block = 0;    // layers between attention over earlier blocks' outputs
  std::vector<LayerGroup> groups;      // in order of first appearance
  // The group of each layer, 'a' for the first; empty when there is one group.
  std::string order;
  WeightPrecision precision;
  std::optional<Vision> vision = std::nullopt;
  std::string source;
  std::string licence;

  std::uint32_t layers() const;  // of all groups
  // Index into `groups`. requires: layer < layers().
  std::size_t group_of(std::uint32_t layer) const;
  // Query heads of attention layers; 0 when there are none. Several kinds: the most that any has.
  std::uint32_t attention_heads() const;
  // The experts of the first group that has some; nothing for a dense model.
  const Experts* experts() const;
  // The first mixer of this kind; nothing when no layer has it.
  template <class Kind>
  const Kind* mixer() const {
    for (const LayerGroup& group : groups) {
      if (const auto* found = std::get_if<Kind>(&group.mixer)) return found;
    }
    return nullptr;
  }
};

// Reads one card; `file` names it in Problems. Problems: JSON that does not parse, unknown key,
// missing key, wrong type, 0 where a size must stand, unknown architecture (codes "card.*").
Result<ModelCard> parse_model_card(std::string_view json, std::string_view file);

// The card as parse_model_card reads it, with a line for each group of layers.
std::string to_json(const ModelCard& card);

// All cards of the program, in order of file name; read once.
const std::vector<ModelCard>& models();

// The card of this name. Letter case, the organisation, a leading "Meta-" and a trailing
// "-Instruct", "-Chat", "-Base", "-It" or "-HF" may differ or be left out as long as exactly one
// card fits; aliases count as names.
// Problems: no card fits ("model.unknown", with the nearest name) or several do
// ("model.ambiguous").
Result<ModelCard> find_model(std::string_view name);

}  // namespace servecast::catalog
