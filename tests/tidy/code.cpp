// SPDX-License-Identifier: Apache-2.0
// Checks of C++ sources: includes, determinism, sizes.
#include <regex>

#include "checks.hpp"
#include "lines.hpp"

namespace servecast::tidy {
namespace {

std::string include_of(const std::string& line, char open) {
  static const std::regex pattern(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  std::smatch match;
  if (!std::regex_search(line, match, pattern) || match[1].str()[0] != open) return {};
  return match[2].str();
}

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "none" : text;
}

// Tests and the headers that only they include.
bool is_test(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return path.starts_with("tests/") || name.ends_with("_test.cpp") ||
         (name.ends_with(".hpp") && (name.starts_with("test_") || name.ends_with("_builders.hpp")));
}

// A header that belongs to neither the standard library nor this repository.
bool is_foreign(const std::string& header) {
  return header.find('/') != std::string::npos || header.find('.') != std::string::npos;
}

const ThirdParty* rule_for(const std::string& header, const std::vector<ThirdParty>& table) {
  for (const ThirdParty& row : table) {
    const bool folder = row.prefix.ends_with('/');
    if (folder ? header.starts_with(row.prefix) : header == row.prefix) return &row;
  }
  return nullptr;
}

std::string check_foreign(const File& file, const std::string& header,
                          const std::vector<ThirdParty>& table) {
  const ThirdParty* rule = rule_for(header, table);
  if (rule == nullptr) return "<" + header + "> is not in tools/third-party.txt";
  const std::string room = room_of(file.path);
  const bool allowed = rule->rooms.contains("*") || rule->rooms.contains(room) ||
                       (is_test(file.path) && rule->rooms.contains("tests"));
  if (!allowed) return "<" + header + "> is for: " + joined(rule->rooms);
  if (file.path.ends_with(".hpp") && !rule->in_headers)
    return "<" + header + "> stays in .cpp files (tools/third-party.txt)";
  return {};
}

}  // namespace

bool is_cpp(std::string_view path) {
  return path.ends_with(".cpp") || path.ends_with(".hpp");
}

std::string room_of(std::string_view path) {
  if (!path.starts_with("src/")) return {};
  path.remove_prefix(4);
  const std::size_t slash = path.find('/');
  return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash));
}

Layers parse_layers(std::string_view text) {
  Layers layers;
  for (const std::string& entry : entries_of(text)) {
    const std::size_t colon = entry.find(':');
    if (colon == std::string::npos) continue;
    const std::vector<std::string> rooms = words_of(entry.substr(colon + 1));
    layers[entry.substr(0, colon)] = {rooms.begin(), rooms.end()};
  }
  return layers;
}

std::vector<ThirdParty> parse_third_party(std::string_view text) {
  std::vector<ThirdParty> table;
  for (const std::string& entry : entries_of(text)) {
    const std::size_t colon = entry.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t semicolon = std::min(entry.find(';'), entry.size());
    const std::vector<std::string> rooms = words_of(entry.substr(colon + 1, semicolon - colon - 1));
    table.push_back({entry.substr(0, colon),
                     {rooms.begin(), rooms.end()},
                     entry.find("headers", semicolon) != std::string::npos});
  }
  return table;
}

std::string code_only(std::string_view text) {
  std::string code(text);
  enum class In { Code, Line, Block, String, Character, Raw } in = In::Code;
  std::string raw_end;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const auto blank = [&](std::size_t at) {
      if (code[at] != '\n') code[at] = ' ';
    };
    switch (in) {
      case In::Code:
        if (c == '/' && next == '/') {
          in = In::Line;
          blank(i);
        } else if (c == '/' && next == '*') {
          in = In::Block;
          blank(i);
          blank(++i);
        } else if (c == '"' && i > 0 && text[i - 1] == 'R') {
          const std::size_t paren = std::min(text.find('(', i), text.size());
          raw_end = ")" + std::string(text.substr(i + 1, paren - i - 1)) + "\"";
          in = In::Raw;
        } else if (c == '"') {
          in = In::String;
        } else if (c == '\'' && !(i > 0 && std::isalnum(static_cast<unsigned char>(text[i - 1])))) {
          in = In::Character;  // else a digit separator
        }
        break;
      case In::Line:
        if (c == '\n') in = In::Code;
        blank(i);
        break;
      case In::Block:
        blank(i);
        if (c == '*' && next == '/') {
          blank(++i);
          in = In::Code;
        }
        break;
      case In::String:
      case In::Character:
        if (c == '\\') {
          blank(i);
          if (i + 1 < text.size()) blank(++i);
        } else if (c == (in == In::String ? '"' : '\'')) {
          in = In::Code;
        } else {
          blank(i);
        }
        break;
      case In::Raw:
        if (text.substr(i, raw_end.size()) == raw_end) {
          i += raw_end.size() - 1;
          in = In::Code;
        } else {
          blank(i);
        }
        break;
    }
  }
  return code;
}

Findings check_includes(const File& file, const Layers& layers,
                        const std::vector<ThirdParty>& third_party) {
  Findings findings;
  const std::string room = room_of(file.path);
  if (room.empty() || !is_cpp(file.path)) return findings;
  const auto rooms = layers.find(room);
  if (rooms == layers.end())
    return {{file.path, 1, "layers", "room " + room + " is not in tools/layers.txt"}};
  int number = 0;
  for (const std::string& line : lines_of(file.text)) {
    ++number;
    if (const std::string header = include_of(line, '"'); !header.empty()) {
      const std::string other = header.substr(0, header.find('/'));
      if (!layers.contains(other) || header.find("..") != std::string::npos)
        findings.push_back({file.path, number, "layers", "\"" + header + "\" names no room"});
      else if (other != room && !rooms->second.contains(other))
        findings.push_back({file.path, number, "layers",
                            room + " may not include " + other +
                                " (tools/layers.txt allows: " + joined(rooms->second) + ")"});
    }
    if (const std::string header = include_of(line, '<'); is_foreign(header)) {
      if (std::string what = check_foreign(file, header, third_party); !what.empty())
        findings.push_back({file.path, number, "third-party", std::move(what)});
    }
  }
  return findings;
}

Findings check_determinism(const File& file, const std::set<std::string>& clock_rooms) {
  struct Ban {
    std::regex pattern;
    const char* instead;
    bool clock;
  };
  static const std::vector<Ban> bans = [] {
    const char* chance = "chance has one door: base/random.hpp";
    const char* clock = "the wall clock is for: ";
    std::vector<Ban> list;
    for (const char* text :
         {R"(\bs?rand\s*\()", R"(\brandom_device\b)", R"(\bstd::\w+_distribution\b)",
          R"(\bmt19937(_64)?\b)", R"(\bdefault_random_engine\b)", R"(#\s*include\s*<random>)"})
      list.push_back({std::regex(text), chance, false});
    for (const char* text : {R"(\b(system|steady|high_resolution)_clock\b)", R"(\bgettimeofday\b)",
                             R"(\bclock_gettime\b)", R"(\btime\s*\(\s*(nullptr|NULL|0|&\w+)\s*\))"})
      list.push_back({std::regex(text), clock, true});
    return list;
  }();
  Findings findings;
  if (!is_cpp(file.path)) return findings;
  const bool clock_allowed = clock_rooms.contains(room_of(file.path));
  int number = 0;
  for (const std::string& line : lines_of(code_only(file.text))) {
    ++number;
    for (const Ban& ban : bans) {
      std::smatch match;
      if ((ban.clock && clock_allowed) || !std::regex_search(line, match, ban.pattern)) continue;
      // "at.time(0)" is a member of ours.
      if (ban.clock && match.position() > 0 && line[std::size_t(match.position()) - 1] == '.')
        continue;
      findings.push_back(
          {file.path, number, "determinism",
           match.str() + ": " + ban.instead + (ban.clock ? joined(clock_rooms) : std::string())});
    }
  }
  return findings;
}

Findings report_sizes(const File& file, int lines_max, int function_lines_max) {
  Findings findings;
  if (!is_cpp(file.path)) return findings;
  const std::vector<std::string> lines = lines_of(code_only(file.text));
  const int count = static_cast<int>(lines.size());
  if (count > lines_max)
    findings.push_back({file.path, count, "size", std::to_string(count) + " lines", false});
  // Our format puts a function's closing brace in the column where its first line begins.
  static const std::regex opening(R"(^(\s*)[^\s#}].*\)[^;]*\{$)");
  static const std::regex other(
      R"(^\s*(namespace|class|struct|enum|union|if|for|while|switch|do)\b)");
  for (int i = 0; i < count; ++i) {
    std::smatch match;
    const std::string& line = lines[std::size_t(i)];
    if (!std::regex_search(line, match, opening) || std::regex_search(line, other)) continue;
    if (match[1].length() > 2) continue;  // statements inside of a function
    const std::string closing = match[1].str() + "}";
    int end = i + 1;
    while (end < count && !lines[std::size_t(end)].starts_with(closing)) ++end;
    if (end - i + 1 > function_lines_max)
      findings.push_back({file.path, i + 1, "size",
                          "a function of " + std::to_string(end - i + 1) + " lines", false});
  }
  return findings;
}

}  // namespace servecast::tidy
