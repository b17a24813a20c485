// SPDX-License-Identifier: Apache-2.0
// What is wrong with a command line that did not parse, in the user's words.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace servecast::cli {

// Names the first unknown command or option with its nearest neighbour; nothing when all are known.
std::optional<std::string> explain_arguments(const CLI::App& root,
                                             const std::vector<std::string>& arguments);

}  // namespace servecast::cli
