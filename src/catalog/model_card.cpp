// SPDX-License-Identifier: Apache-2.0
#include "catalog/model_card.hpp"

#include <fmt/format.h>

#include "base/check.hpp"
#include "catalog/embedded.hpp"
#include "catalog/json_fields.hpp"
#include "catalog/names.hpp"

namespace servecast::catalog {
namespace {

GroupedAttention grouped(Fields& at) {
  GroupedAttention attention{.heads = at.count("heads"),
                             .kv_heads = at.count("kv_heads"),
                             .head_dim = at.count("head_dim"),
                             .qk_norm = at.flag("qk_norm")};
  if (at.has("window")) {
    Fields window = at.object("window");
    attention.window =
        SlidingWindow{.layers = window.count("layers"), .tokens = window.count("tokens")};
    window.finish();
  }
  return attention;
}

LatentAttention latent(Fields& at) {
  LatentAttention attention{.heads = at.count("heads"),
                            .query_rank = at.count("query_rank"),
                            .kv_rank = at.count("kv_rank"),
                            .head_dim_nope = at.count("head_dim_nope"),
                            .head_dim_rope = at.count("head_dim_rope"),
                            .head_dim_value = at.count("head_dim_value")};
  if (at.has("index")) {
    Fields index = at.object("index");
    attention.index = SparseIndex{.heads = index.count("heads"),
                                  .head_dim = index.count("head_dim"),
                                  .tokens = index.count("tokens")};
    index.finish();
  }
  return attention;
}

Precision precision(Fields& at, const char* key) {
  const std::string name = at.text(key);
  if (const auto known = precision_from(name)) return *known;
  if (!name.empty())
    at.problem("card.wrong_value", key,
               fmt::format("is {}; it must be bfloat16, fp8, fp8_block, nvfp4 or mxfp4", name));
  return Precision::Bfloat16;
}

// What several fields must say together.
void check(const ModelCard& card, Fields& root) {
  if (const auto* grouped = std::get_if<GroupedAttention>(&card.attention)) {
    if (grouped->window && grouped->window->layers > card.layers)
      root.problem("card.wrong_value", "attention.window.layers", "is more than layers");
    if (grouped->kv_heads > grouped->heads)
      root.problem("card.wrong_value", "attention.kv_heads", "is more than attention.heads");
  }
  if (!card.experts) return;
  if (card.experts->per_token > card.experts->count)
    root.problem("card.wrong_value", "experts.per_token", "is more than experts.count");
  if (card.experts->layers_dense_first > card.layers)
    root.problem("card.wrong_value", "experts.layers_dense_first", "is more than layers");
}

}  // namespace

Result<ModelCard> parse_model_card(std::string_view json, std::string_view file) {
  Problems problems;
  std::optional<Fields> root = Fields::parse(json, file, problems);
  if (!root) return tl::unexpected(std::move(problems));
  Fields& at = *root;
  ModelCard card;
  card.name = at.text("name");
  card.architecture = at.text("architecture");
  card.layers = at.count("layers");
  card.hidden = at.count("hidden");
  card.intermediate = at.count("intermediate");
  card.vocab = at.count("vocab");
  card.context_max = at.count("context_max");
  card.embeddings_tied = at.flag("embeddings_tied");

  Fields attention = at.object("attention");
  const std::string kind = attention.text("kind");
  if (kind == "grouped") {
    card.attention = grouped(attention);
    attention.finish();
  } else if (kind == "latent") {
    card.attention = latent(attention);
    attention.finish();
  } else if (!kind.empty()) {
    attention.problem("card.wrong_value", "kind",
                      fmt::format("is {}; it must be grouped or latent", kind));
  }
  if (at.has("experts")) {
    Fields experts = at.object("experts");
    card.experts = Experts{.count = experts.count("count"),
                           .per_token = experts.count("per_token"),
                           .intermediate = experts.count("intermediate"),
                           .shared = experts.count_or_zero("shared"),
                           .layers_dense_first = experts.count_or_zero("layers_dense_first")};
    experts.finish();
  }
  Fields weights = at.object("weights");
  card.weights.linear = precision(weights, "linear");
  if (card.experts) card.weights.experts = precision(weights, "experts");
  if (weights.has("block")) card.weights.block = weights.count("block");
  weights.finish();
  card.source = at.text("source");
  card.licence = at.text("licence");
  at.finish();
  check(card, at);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return card;
}

std::vector<ModelCard> models() {
  std::vector<ModelCard> cards;
  for (const EmbeddedCard& embedded : embedded_models()) {
    Result<ModelCard> card = parse_model_card(embedded.json, embedded.file);
    SERVECAST_CHECK(card.has_value());
    cards.push_back(*std::move(card));
  }
  return cards;
}

Result<ModelCard> find_model(std::string_view name) {
  std::vector<ModelCard> cards = models();
  std::vector<std::string> names;
  for (const ModelCard& card : cards) names.push_back(card.name);
  const std::vector<std::size_t> fits = fitting_models(name, names);
  if (fits.size() == 1) return std::move(cards[fits.front()]);
  if (fits.empty()) {
    const auto near = nearest_model(name, names);
    return fail({.code = "model.unknown",
                 .message = fmt::format("model \"{}\" has no card; there are cards for {}", name,
                                        fmt::join(names, ", ")),
                 .place = {},
                 .hint = near ? fmt::format("did you mean {}?", *near) : std::string{}});
  }
  std::vector<std::string> candidates;
  for (const std::size_t fit : fits) candidates.push_back(names[fit]);
  return fail(
      {.code = "model.ambiguous",
       .message = fmt::format("model \"{}\" may be any of {}", name, fmt::join(candidates, ", ")),
       .place = {},
       .hint = "write the whole name"});
}

}  // namespace servecast::catalog
