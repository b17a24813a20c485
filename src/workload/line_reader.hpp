// SPDX-License-Identifier: Apache-2.0
// Splits a stream of bytes into lines, holding no more than one line and one chunk.
//
//   LineReader lines(fill);
//   while (lines.next()) parse(lines.line(), lines.number());
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace servecast::workload {

class LineReader {
 public:
  // Writes up to `capacity` bytes of the stream to `out` and tells how many; 0 at its end.
  using Fill = std::function<std::size_t(char* out, std::size_t capacity)>;
  // This many bytes after a line can be read (their values are unspecified).
  static constexpr std::size_t kPadding = 64;
  static constexpr std::size_t kLineBytesMax = std::size_t{64} << 20;

  explicit LineReader(Fill fill, std::size_t line_bytes_max = kLineBytesMax);
  // Reads a text in memory. requires: `text` outlives the reader.
  explicit LineReader(std::string_view text);

  // Moves to the next line that is not blank; false at the end of the stream and at a line that is
  // too long.
  bool next();
  bool too_long() const { return too_long_; }
  // Without line feed and the carriage return before it. Valid until the next call of next().
  std::string_view line() const { return line_; }
  std::uint64_t number() const { return number_; }  // counts from 1, blank lines too

 private:
  bool advance();
  bool refill();
  Fill fill_;
  std::size_t line_bytes_max_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread bytes in buffer_
  bool at_end_ = false, too_long_ = false;
  std::string_view line_;
  std::uint64_t number_ = 0;
};

}  // namespace servecast::workload
