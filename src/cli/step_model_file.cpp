// SPDX-License-Identifier: Apache-2.0
#include "cli/step_model_file.hpp"

#include "catalog/user_files.hpp"

namespace servecast::cli {

Result<std::shared_ptr<const catalog::StepModel>> read_step_model(const std::string& path) {
  if (path.empty())
    return std::make_shared<const catalog::StepModel>(catalog::shipped_step_model());
  auto model = catalog::load_step_model(path);
  if (!model) return tl::unexpected(std::move(model.error()));
  return std::make_shared<const catalog::StepModel>(*std::move(model));
}

}  // namespace servecast::cli
