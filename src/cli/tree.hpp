// SPDX-License-Identifier: Apache-2.0
// The tree of commands as plain data: for suggestions, completion scripts, the manual page and the
// reference page, so that none of them can disagree with the program.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace servecast::cli {

struct OptionText {
  std::vector<std::string> flags;  // "-c", "--config"; empty for a positional argument
  std::string argument;            // "PATH"; empty for a switch
  std::string help;
  std::string by_default;          // empty: none
  std::vector<std::string> words;  // accepted values, if they are few
};

struct CommandText {
  std::string path;  // "servecast predict"
  std::string help;
  std::string footer;
  std::vector<OptionText> options;
  std::vector<CommandText> commands;  // hidden ones are left out
};

CommandText command_text(const CLI::App& app);
// One of the words of "table|json", which is also the option's type name.
void take_one_of(CLI::Option& option, const std::string& words);
std::string command_path(const CLI::App& app);
std::vector<std::string> command_names(const CLI::App& app);
std::vector<std::string> flag_names(const CLI::App& app);

}  // namespace servecast::cli
