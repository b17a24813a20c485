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
    text.insert(i, ",");
  }
  return text;
}

std::optional<std::string> nearest_name(std::string_view word, std::span<const std::string> names,
                                        std::size_t distance_max) {
  std::optional<std::string> best;
  std::size_t best_distance = distance_max + 1;
  for (const std::string& name : names) {
    // One row of the Levenshtein table at a time.
    std::vector<std::size_t> row(name.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= name.size(); ++j) {
        const std::size_t keep = diagonal + (word[i - 1] == name[j - 1] ? 0 : 1);
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
