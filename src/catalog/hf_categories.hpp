// SPDX-License-Identifier: Apache-2.0
// Which categories of weights the module names and patterns of a checkpoint mean.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/model_card.hpp"

namespace servecast::catalog {

enum class Category : std::uint8_t { Attention, Dense, SharedExperts, Experts, Head };
constexpr std::array<Category, 5> kCategories{Category::Attention, Category::Dense,
                                              Category::SharedExperts, Category::Experts,
                                              Category::Head};

// The category whose whole matrices a module name or pattern names. Of attention the output
// projection counts: its group is what tables are keyed by.
std::optional<Category> category_of(std::string_view name);

bool has_category(const ModelCard& card, std::uint32_t layer, Category category);

// Which categories patterns leave unquantised: those that a pattern without a layer number names,
// and those of which numbered patterns name more than half of the layers.
std::set<Category> excluded(const std::vector<std::string>& patterns, const ModelCard& card);

}  // namespace servecast::catalog
