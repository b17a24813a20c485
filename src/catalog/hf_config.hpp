// SPDX-License-Identifier: Apache-2.0
// A model card from the config.json of a checkpoint (perfmodel.md 2.1, 2.2, annex A).
//
//   auto card = catalog::read_hf_config(text, "me/my-model");
//   auto quantised = catalog::read_hf_config(text, "me/my-model-fp4", hf_quant_config_text);
#pragma once

#include <optional>
#include <string_view>

#include "base/problem.hpp"
#include "catalog/model_card.hpp"

namespace servecast::catalog {

// `hf_quant_config` is the file of that name beside the config, where a checkpoint has one; it goes
// before what config.json says about precision. Keys that nobody needs are ignored, NaN and
// Infinity read as null, `source` and `licence` of the card say "config.json" only.
// Problems: "model.syntax"; "model.architecture" (names it and the known ones); "model.config" (a
// fact is missing or contradicts another: a pattern of the wrong length, an unknown symbol);
// "model.quantization" (names the value and the known ones).
Result<ModelCard> read_hf_config(std::string_view json, std::string_view name,
                                 std::optional<std::string_view> hf_quant_config = std::nullopt);

}  // namespace servecast::catalog
