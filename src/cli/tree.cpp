// SPDX-License-Identifier: Apache-2.0
#include "cli/tree.hpp"

#include <CLI/CLI.hpp>
#include <sstream>

namespace servecast::cli {
namespace {

std::vector<std::string> split(const std::string& words) {
  std::vector<std::string> parts;
  std::istringstream stream(words);
  for (std::string word; std::getline(stream, word, '|');) parts.push_back(word);
  return parts;
}

OptionText option_text(const CLI::Option& option) {
  OptionText text;
  for (const std::string& name : option.get_snames()) text.flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.flags.push_back("--" + name);
  const bool is_switch = option.get_items_expected_max() == 0;
  if (!is_switch) text.argument = option.get_type_name();
  if (text.flags.empty()) text.argument = option.get_name();
  if (option.get_type_name().find('|') != std::string::npos)
    text.words = split(option.get_type_name());
  text.help = option.get_description();
  text.by_default = option.get_default_str();
  return text;
}

}  // namespace

void take_one_of(CLI::Option& option, const std::string& words) {
  option.type_name(words);
  option.check(CLI::IsMember(split(words)).description(""));
}

std::string command_path(const CLI::App& app) {
  const std::string above =
      app.get_parent() == nullptr ? "" : command_path(*app.get_parent()) + " ";
  return above + app.get_name();
}

CommandText command_text(const CLI::App& app) {
  CommandText text{.path = command_path(app),
                   .help = app.get_description(),
                   .footer = app.get_footer(),
                   .options = {},
                   .commands = {}};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) text.options.push_back(option_text(*option));
  }
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); }))
    text.commands.push_back(command_text(*command));
  return text;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace servecast::cli
