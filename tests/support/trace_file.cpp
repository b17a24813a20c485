// SPDX-License-Identifier: Apache-2.0
#include "support/trace_file.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace servecast::test {

TraceFile::TraceFile(std::string_view text) {
  path_ = (std::filesystem::temp_directory_path() / "servecast-trace-XXXXXX").string();
  const int file = mkstemp(path_.data());
  if (file < 0) throw std::runtime_error("cannot create " + path_);
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  if (!written) throw std::runtime_error("cannot write " + path_);
}

TraceFile::~TraceFile() {
  unlink(path_.c_str());
}

}  // namespace servecast::test
