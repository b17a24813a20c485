// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.hpp"

namespace servecast {

void append_double(std::string& out, double value) {
  SERVECAST_CHECK(std::isfinite(value));
  std::array<char, 40> buffer;
  const bool whole = value == std::trunc(value) && std::abs(value) < 1e16;
  if (whole) {
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                   std::chars_format::fixed);
    out.append(buffer.data(), end.ptr);
    out += ".0";
    return;
  }
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  for (const char* p = buffer.data(); p != end.ptr; ++p) {
    if (*p != '+') out += *p;
  }
}

void append_integer(std::string& out, std::int64_t value) {
  std::array<char, 24> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out.append(buffer.data(), end.ptr);
}

void append_unsigned(std::string& out, std::uint64_t value) {
  std::array<char, 24> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out.append(buffer.data(), end.ptr);
}

std::string grouped(double value) {
  if (!std::isfinite(value)) return "N/A";
  std::string text = fmt::format("{:.2f}", value);
  const std::size_t first = text[0] == '-' ? 1 : 0;
  for (std::size_t i = text.find('.'); i > first + 3;) {
    i -= 3;
    text.insert(i, 1, ',');
  }
  return text;
}

std::size_t utf8_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Spelled with too many bytes, a surrogate, or past U+10FFFF.
  const unsigned char second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
    return 0;
  return size;
}

namespace {

std::string escaped(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character == "\n") return "\\n";
  if (character == "\t") return "\\t";
  if (character == "\r") return "\\r";
  if (character.size() == 1 && (first < 0x20 || first >= 0x7F))
    return fmt::format("\\x{:02x}", first);
  const bool is_c1 = first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
  if (is_c1) return fmt::format("\\u{:04x}", static_cast<unsigned char>(character[1]));
  return std::string(character);
}

}  // namespace

std::string printable(std::string_view text, std::size_t bytes_max) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = std::max<std::size_t>(utf8_size(text), 1);
    const std::string shown = escaped(text.substr(0, size));
    if (out.size() + shown.size() > bytes_max) return out + "...";
    out += shown;
    text.remove_prefix(size);
  }
  return out;
}

std::optional<std::string> nearest_name(std::string_view word, std::span<const std::string> names,
                                        std::size_t distance_max) {
  std::optional<std::string> best;
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  std::size_t best_distance = std::min(distance_max + 1, (word.size() + 1) / 2);
  for (const std::string& name : names) {
    // One row of the Levenshtein table at a time.
    std::vector<std::size_t> row(name.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= name.size(); ++j) {
        const std::size_t keep = diagonal + (lower(word[i - 1]) == lower(name[j - 1]) ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({keep, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = name;
    }
  }
  return best;
}

}  // namespace servecast
