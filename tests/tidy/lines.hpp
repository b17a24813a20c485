// SPDX-License-Identifier: Apache-2.0
// Small text functions of the checks.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace servecast::tidy {

inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

inline std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

inline std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (c == ' ' || c == '\t') {
      if (!word.empty()) words.push_back(std::move(word));
      word.clear();
    } else {
      word += c;
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

// Meaningful lines of a list file.
inline std::vector<std::string> entries_of(std::string_view text) {
  std::vector<std::string> entries;
  for (const std::string& line : lines_of(text)) {
    std::string entry = trimmed(line);
    if (!entry.empty() && entry.front() != '#') entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace servecast::tidy
