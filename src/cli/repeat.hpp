// SPDX-License-Identifier: Apache-2.0
// The command line as text that a shell reads back to the same arguments.
#pragma once

#include <string>
#include <vector>

namespace servecast::cli {

std::string repeat_command(const std::vector<std::string>& arguments);

}  // namespace servecast::cli
