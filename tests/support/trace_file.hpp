// SPDX-License-Identifier: Apache-2.0
// A trace in a temporary file that lives as long as the object.
#pragma once

#include <string>
#include <string_view>

#include "workload/spec.hpp"

namespace servecast::test {

class TraceFile {
 public:
  explicit TraceFile(std::string_view text);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace servecast::test
