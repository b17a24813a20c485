// SPDX-License-Identifier: Apache-2.0
#include "config/engine_log.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace servecast::config {
namespace {

constexpr std::uintmax_t kLogBytesMax = 1'000'000'000;
constexpr std::size_t kDigitsMax = 15;

enum class Unit : std::uint8_t { Tokens, Blocks };

// A line that has `first` and after it `before` tells a count right after the latter.
struct Pattern {
  std::string_view first;
  std::string_view before;
  Unit unit;
};

constexpr Pattern kPatterns[] = {
    {"GPU KV cache size:", "GPU KV cache size:", Unit::Tokens},
    {"KV Cache is allocated", "#tokens:", Unit::Tokens},
    {"for max tokens in paged KV cache", "for max tokens in paged KV cache (", Unit::Tokens},
    {"# GPU blocks:", "# GPU blocks:", Unit::Blocks},
    {"# cuda blocks:", "# cuda blocks:", Unit::Blocks},
};

// The whole number that `text` starts with, after blanks; commas group its digits.
std::optional<std::uint64_t> leading_number(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::uint64_t number = 0;
  std::size_t digits = 0;
  for (const char c : text) {
    if (c == ',' && digits > 0) continue;
    if (c < '0' || c > '9' || digits == kDigitsMax) break;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
    ++digits;
  }
  return digits > 0 ? std::optional(number) : std::nullopt;
}

std::optional<std::uint64_t> count_in(std::string_view line, const Pattern& pattern) {
  const std::size_t first = line.find(pattern.first);
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t at = line.find(pattern.before, first);
  if (at == std::string_view::npos) return std::nullopt;
  return leading_number(line.substr(at + pattern.before.size()));
}

Problem problem(std::string message, const std::string& file, int line) {
  return {.code = "capacity.log",
          .message = std::move(message),
          .place = {.file = file, .line = line},
          .hint = "give capacity {type: fixed, blocks: N}"};
}

}  // namespace

Result<LoggedCapacity> capacity_of_log(std::string_view text, const std::string& file) {
  LoggedCapacity found;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    for (const Pattern& pattern : kPatterns) {
      const auto count = count_in(line, pattern);
      if (!count || *count == 0) continue;
      const bool tokens = pattern.unit == Unit::Tokens;
      std::optional<std::uint64_t>& known = tokens ? found.tokens : found.blocks;
      if (known && *known != *count)
        return fail(problem(fmt::format("tells {} {} of KV cache here and {} before", *count,
                                        tokens ? "tokens" : "blocks", *known),
                            file, number));
      known = count;
    }
  }
  if (!found.tokens && !found.blocks)
    return fail(
        problem("has no line that tells the size of a KV cache, as vLLM, SGLang and "
                "TensorRT-LLM write it",
                file, 0));
  return found;
}

Result<LoggedCapacity> read_capacity_log(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  std::ifstream stream(path, std::ios::binary);
  if (error || !stream || bytes > kLogBytesMax)
    return fail({"file.unreadable",
                 error || !stream
                     ? std::string("the log cannot be read")
                     : fmt::format("the log has {} bytes; at most {}", bytes, kLogBytesMax),
                 {.file = path},
                 ""});
  return capacity_of_log(std::string(std::istreambuf_iterator<char>(stream), {}), path);
}

}  // namespace servecast::config
