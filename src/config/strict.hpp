// SPDX-License-Identifier: Apache-2.0
// What a scalar's text means. Plain decimal only: no octal, hexadecimal, underscores, signs in
// front, yes/no; text in quotes is never a number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/value.hpp"

namespace servecast::config {

// A whole number; `negative` tells -0 and below apart, `overflow` that the magnitude does not fit
// 64 bits.
struct WholeNumber {
  bool negative = false;
  bool overflow = false;
  std::uint64_t magnitude = 0;
};

std::optional<WholeNumber> as_whole(const Value& value);
std::optional<double> as_real(const Value& value);  // finite
std::optional<bool> as_boolean(const Value& value);
// A quoted text, or plain text that does not read as a number, a boolean or null.
std::optional<std::string> as_text(const Value& value);

// What the user wrote, for messages: `the number 1.5`, `the quoted text "12"`, `a list`.
std::string described(const Value& value);

}  // namespace servecast::config
