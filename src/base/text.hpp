// SPDX-License-Identifier: Apache-2.0
// Numbers and names as text: the same bytes on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace servecast {

// Shortest decimal that reads back as `value`; an integral value below 1e16 ends in ".0", others
// use an exponent without '+' when to_chars picks one (replay.md 24). requires: value is finite.
void append_double(std::string& out, double value);
void append_integer(std::string& out, std::int64_t value);
void append_unsigned(std::string& out, std::uint64_t value);

// Thousands separators and two decimals: 1,234.50. Not finite: "N/A".
std::string grouped(double value);

// Bytes of the UTF-8 character (RFC 3629) that starts `text`, 0 when there is none. requires:
// `text` is not empty.
std::size_t utf8_size(std::string_view text);

// User's text as a terminal may show it: control characters (DEL and C1 too) and bytes that are not
// UTF-8 become \n, \x1b and the like, and what is longer than `bytes_max` is cut with an ellipsis.
std::string printable(std::string_view text, std::size_t bytes_max = 4000);

// The accepted name nearest to `word` by edit distance without regard to case, if it is at most
// `distance_max` edits and less than half the word away.
std::optional<std::string> nearest_name(std::string_view word, std::span<const std::string> names,
                                        std::size_t distance_max = 2);

}  // namespace servecast
