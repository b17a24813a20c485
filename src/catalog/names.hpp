// SPDX-License-Identifier: Apache-2.0
// Which known names a written name can mean (decisions.md 9c).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace servecast::catalog {

// Indexes of the model names that `written` fits, from the strictest rule that fits any: the same
// but for letter case; then without organisation where `written` has none; then without decorations
// ("Meta-",
// "-Instruct" and the like). A written organisation must be the card's: the same model name under
// another organisation may be another model.
std::vector<std::size_t> fitting_models(std::string_view written,
                                        std::span<const std::string> names);

// The name that `written` most likely means, for a hint; nothing when none is near.
std::optional<std::string> nearest_model(std::string_view written,
                                         std::span<const std::string> names);

}  // namespace servecast::catalog
