// SPDX-License-Identifier: Apache-2.0
// The card files of data/, as they were when the program was built (cmake/EmbedCards.cmake).
#pragma once

#include <string_view>
#include <vector>

namespace servecast::catalog {

struct EmbeddedCard {
  std::string_view file;  // "llama-3.1-8b.json"
  std::string_view json;
};

// In order of file name.
const std::vector<EmbeddedCard>& embedded_models();
const std::vector<EmbeddedCard>& embedded_systems();
// data/fit/step-model.json.
const EmbeddedCard& embedded_step_model();

}  // namespace servecast::catalog
