// SPDX-License-Identifier: Apache-2.0
#include "catalog/model_card.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "catalog/embedded.hpp"
#include "catalog/names.hpp"

namespace servecast::catalog {
namespace {

std::uint32_t heads_of(const Mixer& mixer) {
  if (const auto* a = std::get_if<GroupedAttention>(&mixer)) return a->heads;
  if (const auto* a = std::get_if<LatentAttention>(&mixer)) return a->heads;
  if (const auto* a = std::get_if<CompressedAttention>(&mixer)) return a->heads;
  if (const auto* a = std::get_if<BlockSparseAttention>(&mixer)) return a->grouped.heads;
  return 0;
}

}  // namespace

std::uint32_t ModelCard::layers() const {
  std::uint32_t sum = 0;
  for (const LayerGroup& group : groups) sum += group.count;
  return sum;
}

std::size_t ModelCard::group_of(std::uint32_t layer) const {
  SERVECAST_CHECK(layer < layers());
  return order.empty() ? 0 : static_cast<std::size_t>(order[layer] - 'a');
}

std::uint32_t ModelCard::attention_heads() const {
  std::uint32_t heads = 0;
  for (const LayerGroup& group : groups) heads = std::max(heads, heads_of(group.mixer));
  return heads;
}

const Experts* ModelCard::experts() const {
  for (const LayerGroup& group : groups) {
    if (const auto* experts = std::get_if<Experts>(&group.feed_forward)) return experts;
  }
  return nullptr;
}

const std::vector<ModelCard>& models() {
  static const std::vector<ModelCard> kCards = [] {
    std::vector<ModelCard> cards;
    for (const EmbeddedCard& embedded : embedded_models()) {
      Result<ModelCard> card = parse_model_card(embedded.json, embedded.file);
      SERVECAST_CHECK(card.has_value());
      cards.push_back(*std::move(card));
    }
    return cards;
  }();
  return kCards;
}

Result<ModelCard> find_model(std::string_view name) {
  const std::vector<ModelCard>& cards = models();
  std::vector<std::string> names;   // with aliases
  std::vector<std::size_t> owners;  // the card of each
  std::vector<std::string> names_of_cards;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    names_of_cards.push_back(cards[i].name);
    names.push_back(cards[i].name);
    names.insert(names.end(), cards[i].aliases.begin(), cards[i].aliases.end());
    owners.resize(names.size(), i);
  }
  std::vector<std::size_t> fits;
  for (const std::size_t fit : fitting_models(name, names)) {
    if (std::find(fits.begin(), fits.end(), owners[fit]) == fits.end()) fits.push_back(owners[fit]);
  }
  if (fits.size() == 1) return cards[fits.front()];
  if (fits.empty()) {
    const auto near = nearest_model(name, names);
    return fail(
        {.code = "model.unknown",
         .message = fmt::format("model \"{}\" has no card; there are cards for {}", name,
                                fmt::join(names_of_cards, ", ")),
         .place = {},
         .hint = near ? fmt::format("did you mean {}?", *near)
                      : std::string("a file can be given: the config.json of a checkpoint")});
  }
  std::vector<std::string> candidates;
  for (const std::size_t fit : fits) candidates.push_back(names_of_cards[fit]);
  return fail(
      {.code = "model.ambiguous",
       .message = fmt::format("model \"{}\" may be any of {}", name, fmt::join(candidates, ", ")),
       .place = {},
       .hint = "write the whole name"});
}

}  // namespace servecast::catalog
