// SPDX-License-Identifier: Apache-2.0
#include "config/strict.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

namespace servecast::config {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_plain_scalar(const Value& value) {
  return value.kind == Value::Kind::Scalar && !value.quoted;
}

// Digits, at most one point and an exponent, with a digit on at least one side of the point and no
// zero in front of another digit.
bool is_decimal(std::string_view text) {
  std::size_t i = !text.empty() && text[0] == '-' ? 1 : 0;
  const std::size_t first = i;
  while (i < text.size() && is_digit(text[i])) ++i;
  std::size_t digits = i - first;
  if (digits > 1 && text[first] == '0') return false;
  if (i < text.size() && text[i] == '.') {
    const std::size_t point = i++;
    while (i < text.size() && is_digit(text[i])) ++i;
    digits += i - point - 1;
  }
  if (digits == 0) return false;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    const std::size_t exponent = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    if (i == exponent) return false;
  }
  return i == text.size();
}

// Would another YAML reader take this plain text for a number, a boolean or null? Such a text must
// be quoted where text is meant.
bool is_ambiguous(std::string_view text) {
  static constexpr std::array<std::string_view, 31> kWords{
      "",    "~",    "null", "Null", "NULL", "true",  "True",  "TRUE", "false", "False", "FALSE",
      "yes", "Yes",  "YES",  "no",   "No",   "NO",    "on",    "On",   "ON",    "off",   "Off",
      "OFF", ".nan", ".NaN", ".NAN", ".inf", "-.inf", "+.inf", ".Inf", ".INF"};
  if (std::find(kWords.begin(), kWords.end(), text) != kWords.end()) return true;
  const bool signed_text = text[0] == '-' || text[0] == '+';
  const std::string_view body = signed_text ? text.substr(1) : text;
  if (is_decimal(body)) return true;
  if (body.size() > 2 && body[0] == '0' && (body[1] == 'x' || body[1] == 'o')) return true;
  return !body.empty() &&
         std::all_of(body.begin(), body.end(), [](char c) { return is_digit(c) || c == '_'; });
}

}  // namespace

std::optional<WholeNumber> as_whole(const Value& value) {
  if (!is_plain_scalar(value)) return std::nullopt;
  std::string_view digits = value.text;
  WholeNumber number;
  if (!digits.empty() && digits[0] == '-') {
    number.negative = true;
    digits.remove_prefix(1);
  }
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), number.magnitude);
  number.overflow = end.ec == std::errc::result_out_of_range;
  return number;
}

std::optional<double> as_real(const Value& value) {
  if (!is_plain_scalar(value) || !is_decimal(value.text)) return std::nullopt;
  double number = 0;
  const char* const last = value.text.data() + value.text.size();
  const auto end = std::from_chars(value.text.data(), last, number);
  if (end.ec != std::errc() || end.ptr != last || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<bool> as_boolean(const Value& value) {
  if (!is_plain_scalar(value)) return std::nullopt;
  if (value.text == "true" || value.text == "True" || value.text == "TRUE") return true;
  if (value.text == "false" || value.text == "False" || value.text == "FALSE") return false;
  return std::nullopt;
}

std::optional<std::string> as_text(const Value& value) {
  if (value.kind != Value::Kind::Scalar) return std::nullopt;
  if (!value.quoted && is_ambiguous(value.text)) return std::nullopt;
  return value.text;
}

std::string described(const Value& value) {
  switch (value.kind) {
    case Value::Kind::Null:
      return "null";
    case Value::Kind::Sequence:
      return "a list";
    case Value::Kind::Mapping:
      return "a mapping";
    case Value::Kind::Scalar:
      break;
  }
  // Long texts are cut between characters, never inside one.
  std::string shown = value.text;
  if (shown.size() > 60) {
    std::size_t cut = 57;
    while (cut > 0 && (static_cast<unsigned char>(shown[cut]) & 0xC0) == 0x80) --cut;
    shown = shown.substr(0, cut) + "...";
  }
  if (value.quoted) return fmt::format("the quoted text \"{}\"", shown);
  if (as_boolean(value)) return shown;
  if (as_real(value)) return fmt::format("the number {}", shown);
  return fmt::format("\"{}\"", shown);
}

}  // namespace servecast::config
