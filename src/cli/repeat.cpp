// SPDX-License-Identifier: Apache-2.0
#include "cli/repeat.hpp"

namespace servecast::cli {

std::string repeat_command(const std::vector<std::string>& arguments) {
  constexpr const char* kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+";
  std::string command;
  for (const std::string& argument : arguments) {
    if (!command.empty()) command += ' ';
    if (!argument.empty() && argument.find_first_not_of(kSafe) == std::string::npos) {
      command += argument;
      continue;
    }
    command += '\'';
    for (const char c : argument) command += c == '\'' ? std::string("'\\''") : std::string(1, c);
    command += '\'';
  }
  return command;
}

}  // namespace servecast::cli
