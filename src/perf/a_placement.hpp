// SPDX-License-Identifier: Apache-2.0
// Placements for tests.
#pragma once

#include <string_view>

#include "perf/placement.hpp"

namespace servecast::perf {

// `model` on `system` by vLLM with the checkpoint's precisions; experts are cut by tensor ranks.
inline Placement a_placement(std::string_view model, std::string_view system,
                             std::uint32_t tensor = 1) {
  Placement placement;
  placement.model = catalog::find_model(model).value();
  placement.system = catalog::find_system(system).value();
  placement.precisions = precisions_of(placement.model);
  placement.parallelism.tensor = tensor;
  if (placement.model.experts() != nullptr) placement.parallelism.moe_tensor = tensor;
  return placement;
}

}  // namespace servecast::perf
