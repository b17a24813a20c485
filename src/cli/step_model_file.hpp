// SPDX-License-Identifier: Apache-2.0
// A step model that the user names.
#pragma once

#include <memory>
#include <string>

#include "base/problem.hpp"
#include "catalog/step_model.hpp"

namespace servecast::cli {

// Of the file at `path`; of the program when it is empty. Problems: those of the file.
Result<std::shared_ptr<const catalog::StepModel>> read_step_model(const std::string& path);

}  // namespace servecast::cli
