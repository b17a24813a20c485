// SPDX-License-Identifier: Apache-2.0
#include "cli/suggest.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.hpp"
#include "cli/tree.hpp"

namespace servecast::cli {
namespace {

std::string with_neighbour(std::string message, const std::string& word,
                           const std::vector<std::string>& names) {
  if (const auto nearest = nearest_name(word, names))
    return message + fmt::format("; did you mean \"{}\"?", *nearest);
  return message;
}

bool is_known(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::optional<std::string> explain_arguments(const CLI::App& root,
                                             const std::vector<std::string>& arguments) {
  const CLI::App* command = &root;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") return std::nullopt;
    if (argument.size() > 1 && argument[0] == '-') {
      const std::string flag = argument.substr(0, argument.find('='));
      const std::vector<std::string> flags = flag_names(*command);
      if (!is_known(flags, flag))
        return with_neighbour(
            fmt::format("unknown option {} of \"{}\"", flag, command_path(*command)), flag, flags);
      continue;
    }
    const std::vector<std::string> names = command_names(*command);
    // Only the first free word of a command with commands below it names one; any other may be an
    // option's value.
    if (names.empty()) continue;
    if (!is_known(names, argument)) {
      const std::string path = command == &root ? "" : command_path(*command) + " ";
      const std::string what = path.empty() ? argument : path.substr(path.find(' ') + 1) + argument;
      return with_neighbour(fmt::format("unknown command \"{}\"", what), argument, names);
    }
    command = command->get_subcommand_ptr(argument).get();
  }
  return std::nullopt;
}

}  // namespace servecast::cli
