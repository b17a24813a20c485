// SPDX-License-Identifier: Apache-2.0
// An unnamed temporary file for what outgrew memory: append only, then read from the start. It
// vanishes with the process. Errors stick: the first one is what problem() and read() tell, nothing
// is written after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/problem.hpp"

namespace servecast::report {

class SpillFile {
 public:
  // `directory` empty: the system's directory for temporary files. Opens nothing before the first
  // append.
  explicit SpillFile(std::string directory);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  void append(std::span<const std::byte> bytes);
  std::uint64_t size() const { return size_; }  // bytes appended

  // Calls `take` with pieces of the file in order. Pieces but the last hold kPieceBytes. A file
  // shorter than what was appended is a Problem with fault Resource.
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  Result<void> read(const std::function<void(std::span<const std::byte>)>& take) const;
  std::optional<Problem> problem() const;

  int descriptor() const { return descriptor_; }  // -1 before the first append

 private:
  void open();

  std::string directory_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  int error_ = 0;  // errno of the first failure
};

}  // namespace servecast::report
