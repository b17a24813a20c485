// SPDX-License-Identifier: Apache-2.0
// One file that a command writes beside what it prints.
#pragma once

#include <string>
#include <string_view>

#include "base/problem.hpp"

namespace servecast::cli {

// Could a file stand at this path? Touches nothing; told before a long run. Problem "output.write".
Result<void> check_result_path(const std::string& path);
// The whole text is there, or what was there before: it is written beside the path and put in its
// place at the end, also when a signal comes. Problem "output.write", fault Execution.
Result<void> write_result_file(const std::string& path, std::string_view text);

}  // namespace servecast::cli
