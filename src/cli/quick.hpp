// SPDX-License-Identifier: Apache-2.0
// `--quick MODEL HARDWARE [KEY=VALUE...]`: a whole configuration from a few words.
#pragma once

#include <string>
#include <vector>

#include "base/problem.hpp"
#include "config/config.hpp"

namespace servecast::cli {

// KEY is one of the short names of quick_keys() or a dotted path as in --set. requires: two words
// at least.
Result<config::Input> quick_input(const std::vector<std::string>& words);

struct QuickKey {
  const char* name;
  const char* path;
};
const std::vector<QuickKey>& quick_keys();

}  // namespace servecast::cli
