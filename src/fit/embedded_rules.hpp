// SPDX-License-Identifier: Apache-2.0
// The files of data/hygiene, as they were when the program was built (cmake/EmbedHygiene.cmake).
#pragma once

#include <string_view>
#include <vector>

namespace servecast::fit {

struct EmbeddedRules {
  std::string_view file;  // "served.json"
  std::string_view json;
};

// In order of file name.
const std::vector<EmbeddedRules>& embedded_rules();

}  // namespace servecast::fit
