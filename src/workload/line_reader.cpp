// SPDX-License-Identifier: Apache-2.0
#include "workload/line_reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace servecast::workload {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{16} << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

LineReader::Fill fill_from(std::string_view text) {
  return [text](char* out, std::size_t capacity) mutable {
    const std::size_t count = std::min(capacity, text.size());
    std::memcpy(out, text.data(), count);
    text.remove_prefix(count);
    return count;
  };
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == line.npos;
}

}  // namespace

LineReader::LineReader(Fill fill, std::size_t line_bytes_max)
    : fill_(std::move(fill)),
      line_bytes_max_(line_bytes_max),
      buffer_(std::min(kChunkBytes, line_bytes_max) + kPadding) {}

LineReader::LineReader(std::string_view text) : LineReader(fill_from(text)) {}

bool LineReader::next() {
  while (advance()) {
    if (!is_blank(line_)) return true;
  }
  return false;
}

bool LineReader::advance() {
  if (too_long_) return false;
  std::size_t searched = 0;  // bytes after begin_ known to hold no line feed
  for (;;) {
    const char* start = buffer_.data() + begin_;
    const std::size_t size = end_ - begin_;
    if (const void* found = std::memchr(start + searched, '\n', size - searched)) {
      const auto length = static_cast<std::size_t>(static_cast<const char*>(found) - start);
      line_ = {start, length};
      begin_ += length + 1;
      break;
    }
    searched = size;
    if (refill()) continue;
    if (too_long_) ++number_;
    if (size == 0 || too_long_) return false;
    line_ = {buffer_.data() + begin_, size};
    begin_ = end_;
    break;
  }
  ++number_;
  if (number_ == 1 && line_.starts_with(kByteOrderMark)) line_.remove_prefix(kByteOrderMark.size());
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  return true;
}

// Makes room behind the unread bytes and reads more of them.
bool LineReader::refill() {
  if (at_end_) return false;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ + kPadding == buffer_.size()) {
    if (end_ >= line_bytes_max_) {
      too_long_ = true;
      return false;
    }
    buffer_.resize(std::min(2 * end_, line_bytes_max_) + kPadding);
  }
  const std::size_t count = fill_(buffer_.data() + end_, buffer_.size() - kPadding - end_);
  end_ += count;
  at_end_ = count == 0;
  return !at_end_;
}

}  // namespace servecast::workload
