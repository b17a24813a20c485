// SPDX-License-Identifier: Apache-2.0
// The command line from arguments to exit code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"

namespace servecast::cli {

// The whole tree of commands and options; `chosen` must outlive it.
std::unique_ptr<CLI::App> make_app(Action& chosen);

// arguments[0] is the program's name.
Exit run_command_line(const std::vector<std::string>& arguments);

}  // namespace servecast::cli
