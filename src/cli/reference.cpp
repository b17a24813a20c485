// SPDX-License-Identifier: Apache-2.0
// Pages about the program that the program itself prints, so that they cannot be out of date.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "cli/commands.hpp"
#include "cli/terminal.hpp"
#include "cli/tree.hpp"
#include "config/schema.hpp"

namespace servecast::cli {
namespace {

// Every command below `root`, each before its own.
std::vector<CommandText> all_commands(const CommandText& root) {
  std::vector<CommandText> all;
  for (const CommandText& command : root.commands) {
    all.push_back(command);
    for (CommandText& below : all_commands(command)) all.push_back(std::move(below));
  }
  return all;
}

std::string option_name(const OptionText& option) {
  const std::string flags = fmt::format("{}", fmt::join(option.flags, ", "));
  if (option.argument.empty()) return flags;
  return flags.empty() ? option.argument : flags + " " + option.argument;
}

std::string option_help(const OptionText& option) {
  return option.by_default.empty()
             ? option.help + "."
             : fmt::format("{}; {} by default.", option.help, option.by_default);
}

// Roff reads a dot or an apostrophe at the start of a line as a command, and a dash as a hyphen.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '-')
      out += "\\-";
    else if (c == '\\')
      out += "\\e";
    else if (c == '\n')
      out += "\n.br\n";
    else
      out += c;
  }
  return out;
}

std::string manual_options(const CommandText& command) {
  std::string page;
  for (const OptionText& option : command.options)
    page += fmt::format(".TP\n.B {}\n{}\n", roff(option_name(option)), roff(option_help(option)));
  return page;
}

std::string manual_page(const CommandText& root) {
  std::string page =
      ".\\\" SPDX-License-Identifier: Apache-2.0\n.TH SERVECAST 1\n.SH NAME\nservecast \\- " +
      roff(root.help) + "\n.SH SYNOPSIS\n.B servecast\n.I COMMAND\n[options]\n.SH OPTIONS\n" +
      manual_options(root) + ".SH COMMANDS\n";
  for (const CommandText& command : all_commands(root)) {
    page += fmt::format(".SS {}\n{}.\n{}", roff(command.path), roff(command.help),
                        manual_options(command));
    if (!command.footer.empty()) page += fmt::format(".PP\n{}\n", roff(command.footer));
  }
  return page + ".SH NOTES\n" + roff(root.footer) + "\n";
}

std::string markdown_options(const CommandText& command) {
  std::string page = "| option | meaning |\n|---|---|\n";
  for (const OptionText& option : command.options) {
    std::string name = option_name(option);
    // A bar would end the table's cell.
    for (std::size_t at = 0; (at = name.find('|', at)) != std::string::npos; at += 2)
      name.insert(at, "\\");
    page += fmt::format("| `{}` | {} |\n", name, option_help(option));
  }
  return page;
}

std::string command_page(const CommandText& root) {
  std::string page =
      "<!-- SPDX-License-Identifier: Apache-2.0 -->\n<!-- Printed by `servecast reference cli`; a "
      "test compares. -->\n"
      "# Command line\n\n" +
      root.help + "\n\n" + markdown_options(root) + "\n```text\n" + root.footer + "\n```\n";
  for (const CommandText& command : all_commands(root)) {
    page +=
        fmt::format("\n## {}\n\n{}.\n\n{}", command.path, command.help, markdown_options(command));
    if (!command.footer.empty()) page += "\n```text\n" + command.footer + "\n```\n";
  }
  return page;
}

}  // namespace

void add_reference(CLI::App& root, Action& chosen) {
  const auto page = std::make_shared<std::string>();
  CLI::App& app = *root.add_subcommand("reference", "Print a reference page")->group("");
  take_one_of(*app.add_option("page", *page, "The page")->required(), "cli|configuration|man");
  app.callback([page, &root, &chosen] {
    chosen = [page, &root](const std::vector<std::string>&) {
      if (*page == "configuration") return print_result(config::reference_page());
      const CommandText tree = command_text(root);
      return print_result(*page == "cli" ? command_page(tree) : manual_page(tree));
    };
  });
}

}  // namespace servecast::cli
