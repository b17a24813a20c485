// SPDX-License-Identifier: Apache-2.0
// The cards that engine.model and engine.hardware mean: of the catalog, or of the user's own files.
#pragma once

#include "base/problem.hpp"
#include "catalog/model_card.hpp"
#include "catalog/system_card.hpp"
#include "config/config.hpp"

namespace servecast::config {

// With model_like the card of that model, named "MODEL (like CARD)" so that every report shows it.
Result<catalog::ModelCard> model_of(const Engine& engine);
// A file is YAML or JSON with the keys of our system cards.
Result<catalog::SystemCard> system_of(const Engine& engine);

}  // namespace servecast::config
