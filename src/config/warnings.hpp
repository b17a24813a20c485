// SPDX-License-Identifier: Apache-2.0
// Configurations that are legal and yet rarely meant (product.md 10.16).
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"

namespace servecast::config {

std::vector<std::string> warnings_of(const Config& config);

}  // namespace servecast::config
