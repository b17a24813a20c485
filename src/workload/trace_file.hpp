// SPDX-License-Identifier: Apache-2.0
// The bytes of a trace file: plain or gzip (told by content, any number of members), with the
// digest of the file as it lies on the disk.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/problem.hpp"

namespace servecast::workload {

class TraceFile {
 public:
  static Result<TraceFile> open(const std::string& path);
  TraceFile(TraceFile&&) noexcept;
  TraceFile& operator=(TraceFile&&) noexcept;
  ~TraceFile();

  // Up to `capacity` bytes of the text; 0 at its end or after a failure.
  std::size_t read(char* out, std::size_t capacity);
  // What ended the text early: a read error, or a gzip stream that is cut off or damaged.
  const std::optional<Problem>& failure() const;
  // Of the bytes read so far, before decompression.
  std::string sha256();

 private:
  struct State;
  explicit TraceFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace servecast::workload
