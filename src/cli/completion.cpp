// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/terminal.hpp"
#include "cli/tree.hpp"

namespace servecast::cli {
namespace {

// What follows an option: files, directories, given words, or something only the user knows.
enum class Operand { None, File, Directory, Words, Free };

Operand operand_of(const OptionText& option) {
  if (option.argument.empty()) return Operand::None;
  if (option.argument == "PATH" || option.argument == "BINARY") return Operand::File;
  if (option.argument == "DIR") return Operand::Directory;
  return option.words.empty() ? Operand::Free : Operand::Words;
}

// What may stand after a command: its flags, and the words of its positional arguments.
std::vector<std::string> first_words(const CommandText& command) {
  std::vector<std::string> flags;
  for (const OptionText& option : command.options) {
    const std::vector<std::string>& more = option.flags.empty() ? option.words : option.flags;
    flags.insert(flags.end(), more.begin(), more.end());
  }
  return flags;
}

std::string name_of(const CommandText& command) {
  return command.path.substr(command.path.rfind(' ') + 1);
}

std::string bash(const CommandText& root) {
  std::string commands;
  std::string cases;
  for (const CommandText& command : root.commands) {
    const std::string name = name_of(command);
    commands += (commands.empty() ? "" : " ") + name;
    cases += fmt::format("    {}) words=\"{}\" ;;\n", name, fmt::join(first_words(command), " "));
  }
  std::string operands;
  for (const CommandText& command : root.commands) {
    for (const OptionText& option : command.options) {
      const std::string flags = fmt::format("{}", fmt::join(option.flags, "|"));
      const std::string key = fmt::format("    {}) ", flags);
      if (flags.empty() || operands.find(key) != std::string::npos) continue;
      switch (operand_of(option)) {
        case Operand::File:
          operands += key + "COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n";
          break;
        case Operand::Directory:
          operands += key + "COMPREPLY=($(compgen -d -- \"$current\")); return ;;\n";
          break;
        case Operand::Words:
          operands +=
              key + fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$current\")); return ;;\n",
                                fmt::join(option.words, " "));
          break;
        case Operand::None:
        case Operand::Free:
          break;
      }
    }
  }
  return fmt::format(
      "# bash completion of servecast; load with: source <(servecast completion bash)\n"
      "_servecast() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" previous=\"${{COMP_WORDS[COMP_CWORD-1]}}\" "
      "words=\"\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{} {}\" -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"$previous\" in\n{}  esac\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}}\n"
      "complete -F _servecast servecast\n",
      commands, fmt::join(first_words(root), " "), operands, cases);
}

std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':')
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

std::string zsh_action(const OptionText& option) {
  switch (operand_of(option)) {
    case Operand::None:
      return "";
    case Operand::File:
      return fmt::format(":{}:_files", zsh_text(option.argument));
    case Operand::Directory:
      return fmt::format(":{}:_files -/", zsh_text(option.argument));
    case Operand::Words:
      return fmt::format(":{}:({})", zsh_text(option.argument), fmt::join(option.words, " "));
    case Operand::Free:
      return fmt::format(":{}: ", zsh_text(option.argument));
  }
  return "";
}

std::string zsh(const CommandText& root) {
  std::string commands;
  std::string cases;
  for (const CommandText& command : root.commands) {
    commands += fmt::format("    '{}:{}'\n", name_of(command), zsh_text(command.help));
    cases += fmt::format("    {})\n      _arguments", name_of(command));
    for (const OptionText& option : command.options) {
      if (option.flags.empty()) cases += fmt::format(" \\\n        '*{}'", zsh_action(option));
    }
    for (const OptionText& option : command.options) {
      for (const std::string& flag : option.flags)
        cases += fmt::format(" \\\n        '*{}[{}]{}'", flag, zsh_text(option.help),
                             zsh_action(option));
    }
    cases += "\n      ;;\n";
  }
  return fmt::format(
      "#compdef servecast\n"
      "# zsh completion of servecast; put it into a folder of $fpath as _servecast\n"
      "_servecast() {{\n"
      "  local -a commands\n"
      "  commands=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local chosen=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $chosen in\n{}  esac\n"
      "}}\n"
      "_servecast \"$@\"\n",
      commands, cases);
}

std::string fish_text(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out;
}

std::string fish(const CommandText& root) {
  std::string script =
      "# fish completion of servecast; load with: servecast completion fish | source\n"
      "complete -c servecast -f\n";
  for (const CommandText& command : root.commands)
    script += fmt::format("complete -c servecast -n __fish_use_subcommand -a {} -d '{}'\n",
                          name_of(command), fish_text(command.help));
  for (const CommandText& command : root.commands) {
    for (const OptionText& option : command.options) {
      if (option.flags.empty()) {
        if (!option.words.empty())
          script +=
              fmt::format("complete -c servecast -n '__fish_seen_subcommand_from {}' -a '{}'\n",
                          name_of(command), fmt::join(option.words, " "));
        continue;
      }
      script += fmt::format("complete -c servecast -n '__fish_seen_subcommand_from {}'",
                            name_of(command));
      for (const std::string& flag : option.flags) {
        const bool is_long = flag.starts_with("--");
        script += fmt::format(" {} {}", is_long ? "-l" : "-s", flag.substr(is_long ? 2 : 1));
      }
      switch (operand_of(option)) {
        case Operand::None:
          break;
        case Operand::File:
        case Operand::Directory:
          script += " -r -F";
          break;
        case Operand::Words:
          script += fmt::format(" -x -a '{}'", fmt::join(option.words, " "));
          break;
        case Operand::Free:
          script += " -x";
          break;
      }
      script += fmt::format(" -d '{}'\n", fish_text(option.help));
    }
  }
  return script;
}

}  // namespace

void add_completion(CLI::App& root, Action& chosen) {
  const auto shell = std::make_shared<std::string>();
  CLI::App& app = *root.add_subcommand("completion", "Print the completion script of a shell");
  app.footer(
      "Examples:\n  source <(servecast completion bash)\n  servecast completion fish | source");
  take_one_of(*app.add_option("shell", *shell, "The shell")->required(), "bash|zsh|fish");
  app.callback([shell, &root, &chosen] {
    chosen = [shell, &root](const std::vector<std::string>&) {
      const CommandText tree = command_text(root);
      return print_result(*shell == "bash" ? bash(tree) : *shell == "zsh" ? zsh(tree) : fish(tree));
    };
  });
}

}  // namespace servecast::cli
