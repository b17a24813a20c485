// SPDX-License-Identifier: Apache-2.0
// Small makers that this room's tests share.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/trace.hpp"

namespace servecast::workload::testing_tools {

inline const Load kTimed{.kind = Load::Kind::TraceTimestamps};
inline const Load kClosed{.kind = Load::Kind::Concurrency, .concurrency = 4};

// Every problem of a text as "line: message", "" for none.
inline std::string complaints(std::string_view text, const TraceSource& source,
                              const Load& load = kTimed) {
  const auto trace = parse_trace(text, source, load);
  std::string all;
  if (trace) return all;
  for (const Problem& problem : trace.error()) {
    EXPECT_EQ(problem.place.file, source.path);
    if (!all.empty()) all += '\n';
    if (problem.place.line > 0) all += std::to_string(problem.place.line) + ": ";
    all += problem.message;
  }
  return all;
}

// A file that lives as long as the test.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, std::string_view bytes)
      : path_(std::filesystem::path(testing::TempDir()) /
              (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "_" +
               name)) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// A file of the shared data, when that is at hand.
inline std::optional<std::string> shared_data(const std::string& name) {
  const char* folder = std::getenv("SERVECAST_DATA");
  const auto path =
      (folder != nullptr ? std::filesystem::path(folder)
                         : std::filesystem::path(SERVECAST_SOURCE_DIR) / ".." / "shared" / "data") /
      name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path.string();
}

}  // namespace servecast::workload::testing_tools
