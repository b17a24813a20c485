// SPDX-License-Identifier: Apache-2.0
#include "console.hpp"

#include <algorithm>
#include <array>

namespace servecast::docs {
namespace {

bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return word == w; });
}

}  // namespace

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<Step> steps_of(std::string_view page) {
  std::vector<Step> steps;
  enum class In { Prose, Console, File, Other } in = In::Prose;
  bool continued = false, has_command = false;
  const std::vector<std::string> lines = lines_of(page);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line.starts_with("```")) {
      const std::string info = in == In::Prose ? line.substr(3) : std::string();
      const std::size_t blank = info.find(' ');
      continued = has_command = false;
      if (in != In::Prose) {
        in = In::Prose;
      } else if (info == "console") {
        in = In::Console;
      } else if (blank != std::string::npos) {
        in = In::File;
        steps.push_back({.kind = Step::Kind::File,
                         .line = int(i) + 1,
                         .text = {},
                         .file = info.substr(blank + 1),
                         .output = {}});
      } else {
        in = In::Other;
      }
      continue;
    }
    if (in == In::File) steps.back().text += line + "\n";
    if (in != In::Console) continue;
    if (continued) {
      steps.back().text += "\n" + line;
    } else if (line.starts_with("$ ")) {
      has_command = true;
      steps.push_back({.line = int(i) + 1, .text = line.substr(2), .file = {}, .output = {}});
    } else if (has_command) {
      if (steps.back().output.empty()) steps.back().output_first = int(i);
      steps.back().output.push_back(line);
      continue;
    }
    continued = has_command && line.ends_with('\\');
  }
  return steps;
}

bool line_matches(std::string_view shown, std::string_view real) {
  const std::size_t gap = shown.find("...");
  if (gap == std::string_view::npos) return shown == real;
  if (!real.starts_with(shown.substr(0, gap))) return false;
  const std::string_view rest = shown.substr(gap + 3);
  for (std::size_t at = gap; at <= real.size(); ++at)
    if (line_matches(rest, real.substr(at))) return true;
  return false;
}

bool output_matches(const std::vector<std::string>& shown, const std::vector<std::string>& real) {
  // reachable[j]: the shown lines so far can stand for the first j real ones.
  std::vector<bool> reachable(real.size() + 1, false);
  reachable[0] = true;
  for (const std::string& line : shown) {
    std::vector<bool> next(real.size() + 1, false);
    if (line == "...") {
      bool any = false;
      for (std::size_t j = 0; j <= real.size(); ++j) next[j] = any = any || reachable[j];
    } else {
      for (std::size_t j = 0; j < real.size(); ++j)
        next[j + 1] = reachable[j] && line_matches(line, real[j]);
    }
    reachable = std::move(next);
  }
  return reachable[real.size()];
}

Treatment treatment_of(const std::string& command) {
  const std::string word = command.substr(0, command.find(' '));
  if (is_one_of(word, {"servecast", "cat", "head", "tail", "ls", "grep", "sort", "cut", "diff",
                       "cmp", "wc", "cp", "mkdir", "awk", "sed"}))
    return Treatment::Run;
  if (word.starts_with("./build/")) return Treatment::Preset;
  if (word.starts_with("./") || word.starts_with("tools/") || word == ".ci/run")
    return Treatment::Script;
  if (is_one_of(word, {"cmake", "ctest"})) return Treatment::Preset;
  if (is_one_of(word, {"git", "cd", "export", "man"})) return Treatment::Read;
  return Treatment::Unknown;
}

}  // namespace servecast::docs
