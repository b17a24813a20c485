// SPDX-License-Identifier: Apache-2.0
#include "transcript.hpp"

#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace servecast::golden {

Transcript parse(const std::string& text) {
  Transcript transcript;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty()) continue;
    const char kind = line[0];
    const std::string rest = line.size() > 2 ? line.substr(2) : std::string();
    const bool needs_command = kind == '?' || kind == '>' || kind == '!';
    if ((needs_command && transcript.commands.empty()) || (kind == '|' && transcript.files.empty()))
      throw std::runtime_error("line " + std::to_string(number) + ": nothing that it belongs to");
    switch (kind) {
      case '#':
        transcript.comments.push_back(rest);
        break;
      case '=':
        transcript.files.push_back({rest, ""});
        break;
      case '|':
        transcript.files.back().text += rest + "\n";
        break;
      case '$':
        transcript.commands.push_back({rest, 0, {}, {}});
        break;
      case '?':
        transcript.commands.back().exit_code = std::atoi(rest.c_str());
        break;
      case '>':
        transcript.commands.back().out.push_back(rest);
        break;
      case '!':
        transcript.commands.back().err.push_back(rest);
        break;
      default:
        throw std::runtime_error("line " + std::to_string(number) + ": unknown kind of line");
    }
  }
  return transcript;
}

std::string to_text(const Transcript& transcript) {
  std::string text;
  const auto add = [&](char kind, const std::string& rest) {
    text += kind;
    if (!rest.empty()) text += " " + rest;
    text += "\n";
  };
  for (const std::string& comment : transcript.comments) add('#', comment);
  for (const File& file : transcript.files) {
    add('=', file.name);
    std::istringstream lines(file.text);
    for (std::string line; std::getline(lines, line);) add('|', line);
  }
  for (const Command& command : transcript.commands) {
    add('$', command.line);
    if (command.exit_code != 0) add('?', std::to_string(command.exit_code));
    for (const std::string& line : command.out) add('>', line);
    for (const std::string& line : command.err) add('!', line);
  }
  return text;
}

bool matches(const std::string& expected, const std::string& line) {
  // Greedy matching with one point of return: the last '*' seen.
  std::size_t e = 0;
  std::size_t l = 0;
  std::size_t star = std::string::npos;
  std::size_t resume = 0;
  while (l < line.size()) {
    if (e < expected.size() && expected[e] == '*') {
      star = e++;
      resume = l;
    } else if (e < expected.size() && expected[e] == line[l]) {
      ++e;
      ++l;
    } else if (star != std::string::npos) {
      e = star + 1;
      l = ++resume;
    } else {
      return false;
    }
  }
  while (e < expected.size() && expected[e] == '*') ++e;
  return e == expected.size();
}

}  // namespace servecast::golden
