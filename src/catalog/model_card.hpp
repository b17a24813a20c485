// SPDX-License-Identifier: Apache-2.0
// What a model is: the facts of its config.json that time and memory depend on. One file of
// data/models/ per model; `source` and `licence` say where its values come from.
//
//   auto card = catalog::find_model("meta-llama/Meta-Llama-3.1-8B-Instruct");
//   if (card) print(card->name);  // "meta-llama/Llama-3.1-8B": the card that is used
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/problem.hpp"
#include "catalog/kinds.hpp"

namespace servecast::catalog {

// Layers that attend to the last `tokens` tokens only; the other layers attend to all.
struct SlidingWindow {
  std::uint32_t layers = 0;
  std::uint32_t tokens = 0;
};

// Multi-head, multi-query and grouped-query attention. The KV cache holds kv_heads * head_dim
// elements of K and of V per token and layer. head_dim is the file's own value, not hidden / heads.
struct GroupedAttention {
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  bool qk_norm = false;  // Q and K are normalised per head
  std::optional<SlidingWindow> window = std::nullopt;
};

// A sparse layer's indexer: picks the `tokens` tokens that a query attends to.
struct SparseIndex {
  std::uint32_t heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t tokens = 0;
};

// Multi-head latent attention: the KV cache holds kv_rank + head_dim_rope elements per token and
// layer, the same on every tensor-parallel rank.
struct LatentAttention {
  std::uint32_t heads = 0;
  std::uint32_t query_rank = 0;
  std::uint32_t kv_rank = 0;
  std::uint32_t head_dim_nope = 0;  // part of a Q or K head without position
  std::uint32_t head_dim_rope = 0;  // part with position, shared by all heads in K
  std::uint32_t head_dim_value = 0;
  std::optional<SparseIndex> index = std::nullopt;
};

// Routed experts in place of the dense feed-forward part.
struct Experts {
  std::uint32_t count = 0;
  std::uint32_t per_token = 0;
  std::uint32_t intermediate = 0;        // inner width of one expert
  std::uint32_t shared = 0;              // experts of that width that every token passes
  std::uint32_t layers_dense_first = 0;  // leading layers with the dense part
};

// How the published checkpoint stores its weights. Embeddings, router and output head are bfloat16.
struct WeightPrecision {
  Precision linear = Precision::Bfloat16;   // attention and dense feed-forward
  Precision experts = Precision::Bfloat16;  // routed and shared experts
  std::uint32_t block = 0;                  // edge of an fp8_block scale block, in elements
};

struct ModelCard {
  std::string name;          // organisation/model
  std::string architecture;  // class name of the reference implementation
  std::uint32_t layers = 0;
  std::uint32_t hidden = 0;
  std::uint32_t intermediate =
      0;  // inner width of the dense feed-forward part (gated: three matrices)
  std::uint32_t vocab = 0;
  std::uint32_t context_max = 0;  // positions, prompt and output together
  bool embeddings_tied = false;   // the output head is the embedding
  std::variant<GroupedAttention, LatentAttention> attention;
  std::optional<Experts> experts = std::nullopt;
  WeightPrecision weights;
  std::string source;
  std::string licence;
};

// Reads one card; `file` names it in Problems. Every key is required, except `experts`, `window`,
// `index` and `block`. Problems: JSON that does not parse, unknown key, missing key, wrong type, 0
// where a size must stand (codes "card.*").
Result<ModelCard> parse_model_card(std::string_view json, std::string_view file);

// All cards of the program, in order of file name.
std::vector<ModelCard> models();

// The card of this name. Letter case, the organisation, a leading "Meta-" and a trailing
// "-Instruct",
// "-Chat", "-Base", "-It" or "-HF" may differ or be left out as long as exactly one card fits.
// Problems: no card fits ("model.unknown", with the nearest name) or several do
// ("model.ambiguous").
Result<ModelCard> find_model(std::string_view name);

}  // namespace servecast::catalog
