// SPDX-License-Identifier: Apache-2.0
#include "report/text_spool.hpp"

#include <span>
#include <string_view>

namespace servecast::report {

TextSpool::TextSpool(std::uint64_t in_memory_max, std::string directory)
    : in_memory_max_(in_memory_max), file_(std::move(directory)) {}

void TextSpool::settle() {
  if (buffer_.size() < in_memory_max_) return;
  file_.append(std::as_bytes(std::span(buffer_)));
  buffer_.clear();
}

Result<void> TextSpool::write(const Write& write) const {
  auto read = file_.read([&](std::span<const std::byte> piece) {
    write({reinterpret_cast<const char*>(piece.data()), piece.size()});
  });
  if (!read) return read;
  if (!buffer_.empty()) write(buffer_);
  return {};
}

}  // namespace servecast::report
