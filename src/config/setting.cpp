// SPDX-License-Identifier: Apache-2.0
#include "config/setting.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "config/strict.hpp"

namespace servecast::config {
namespace {

bool is_plain_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == '/';
}

bool is_plain(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_plain_character)) return false;
  // A dash or dots in front could read as a list item or as a document mark.
  if (text[0] == '-' || text[0] == '.') return false;
  Value value = value_at(Value::Kind::Scalar, {});
  value.text = text;
  return as_text(value).has_value();
}

// Keys from the top down; "[2]" is the third item of a list.
std::vector<std::string_view> levels_of(std::string_view path) {
  std::vector<std::string_view> levels;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t dot = std::min(path.find('.', start), path.size());
    const std::string_view part = path.substr(start, dot - start);
    const std::size_t item = part.find('[');
    levels.push_back(part.substr(0, item));
    if (item != std::string_view::npos) levels.push_back(part.substr(item));
    start = dot + 1;
  }
  return levels;
}

std::string origin_text(const Setting& setting) {
  switch (setting.origin) {
    case Origin::Default:
      return "default";
    case Origin::File:
      return fmt::format("{}:{}:{}", setting.place.file, setting.place.line, setting.place.column);
    case Origin::Set:
      return "--set";
    case Origin::Seed:
      return "--seed";
  }
  return {};
}

}  // namespace

std::string yaml_text(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string to_yaml(const Settings& settings) {
  std::string out;
  std::vector<std::string_view> above;
  for (const Setting& setting : settings) {
    if (!setting.yaml) continue;
    const std::vector<std::string_view> parts = levels_of(setting.path);
    std::size_t common = 0;
    while (common + 1 < parts.size() && common + 1 < above.size() && parts[common] == above[common])
      ++common;
    for (std::size_t level = common; level + 1 < parts.size(); ++level) {
      const bool item = parts[level].starts_with('[');
      out += fmt::format("{:{}}{}\n", "", 2 * level,
                         item ? std::string("-") : fmt::format("{}:", parts[level]));
    }
    out += fmt::format("{:{}}{}: {}\n", "", 2 * (parts.size() - 1), parts.back(), *setting.yaml);
    above = parts;
  }
  return out;
}

std::string explained(const Settings& settings) {
  std::vector<std::string> lines;
  std::size_t width = 0;
  for (const Setting& setting : settings) {
    lines.push_back(fmt::format("{}: {}", setting.path, setting.yaml.value_or("(not set)")));
    width = std::max(width, std::min<std::size_t>(lines.back().size(), 76));
  }
  std::string out;
  for (std::size_t i = 0; i < settings.size(); ++i)
    out += fmt::format("{:{}}  # {}\n", lines[i], width, origin_text(settings[i]));
  return out;
}

}  // namespace servecast::config
