// SPDX-License-Identifier: Apache-2.0
// One file being written: created anew, synced when finished. Private to the room.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/problem.hpp"

namespace servecast::report {

// "cannot write 'out/prediction.json': No space left on device", fault Execution.
Problem output_problem(std::string_view action, const std::string& path, int error);

class ArtifactFile {
 public:
  enum class Open { New, Existing };  // Existing: of any kind, is not truncated (devices in tests)
  ArtifactFile(std::string path, Open how);
  ~ArtifactFile();
  ArtifactFile(const ArtifactFile&) = delete;
  ArtifactFile& operator=(const ArtifactFile&) = delete;

  void write(std::string_view text);  // after an error: nothing
  // Syncs and closes. The first error of this file's life, if any. Call once.
  Result<void> finish();
  bool is_open() const { return descriptor_ >= 0; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void note(int error) {
    if (error_ == 0) error_ = error;
  }
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
  int error_ = 0;
};

// SHA-256 of a file's bytes without reading it into the heap.
Result<std::string> sha256_of_file(const std::string& path);

}  // namespace servecast::report
