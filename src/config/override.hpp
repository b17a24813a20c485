// SPDX-License-Identifier: Apache-2.0
// `--set PATH=VALUE`: PATH is keys joined by dots, VALUE a YAML value.
#pragma once

#include <string>

#include "base/problem.hpp"
#include "config/value.hpp"

namespace servecast::config {

// Puts the value into the tree, creating mappings on the way; a list or mapping replaces what was
// there. requires: root is a mapping.
Result<void> apply_set(Value& root, const std::string& argument);

}  // namespace servecast::config
