// SPDX-License-Identifier: Apache-2.0
// Models and step models that the user keeps in a file.
#pragma once

#include <string>
#include <string_view>

#include "base/problem.hpp"
#include "catalog/model_card.hpp"
#include "catalog/step_model.hpp"

namespace servecast::catalog {

// Whether `name` means a file: it ends in .json, .yaml or .yml, or a file of that name exists.
bool names_a_file(const std::string& name);

// The text of a file, at most 64 MB. Problem "file.unreadable".
Result<std::string> read_card_file(const std::string& path);

// A card of ours, or a checkpoint's config.json; a hf_quant_config.json beside that is read too.
// The card's name is the last two parts of the path. Problems as parse_model_card and
// read_hf_config, with the file as place.
Result<ModelCard> load_model(const std::string& path);

// A step model as `servecast fit` writes it. Problems as parse_step_model.
Result<StepModel> load_step_model(const std::string& path);

}  // namespace servecast::catalog
