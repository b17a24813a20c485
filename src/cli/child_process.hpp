// SPDX-License-Identifier: Apache-2.0
// Runs a program and takes what it prints.
#pragma once

#include <string>
#include <vector>

#include "base/problem.hpp"

namespace servecast::cli {

// What the program wrote to stdout; stderr goes through. A Problem when it cannot start, ends with
// another exit code than 0, or dies of a signal. requires: arguments is not empty; the first is the
// program's path.
Result<std::string> output_of(const std::vector<std::string>& arguments);

}  // namespace servecast::cli
