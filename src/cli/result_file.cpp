// SPDX-License-Identifier: Apache-2.0
#include "cli/result_file.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "cli/interrupt.hpp"

namespace servecast::cli {

namespace {

Result<void> refused(const std::string& path, int error) {
  return fail({"output.write",
               fmt::format("cannot write {}: {}", path, std::strerror(error)),
               {},
               "",
               Fault::Execution});
}

}  // namespace

Result<void> check_result_path(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return refused(path, EISDIR);
  // A device or a pipe would be replaced by a file.
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
    return refused(path, EINVAL);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
    return refused(path, ENOENT);
  return {};
}

Result<void> write_result_file(const std::string& path, std::string_view text) {
  if (const auto usable = check_result_path(path); !usable) return usable;
  const DeferSignals deferred;
  // A link stays one: what it points to is replaced.
  std::error_code ignored;
  const std::string target = std::filesystem::is_symlink(path, ignored)
                                 ? std::filesystem::weakly_canonical(path, ignored).string()
                                 : path;
  const std::string staged = fmt::format("{}.{}.tmp", target, getpid());
  int error = 0;
  std::FILE* file = std::fopen(staged.c_str(), "wx");
  if (file == nullptr) {
    error = errno;
  } else {
    if (std::fwrite(text.data(), 1, text.size(), file) != text.size()) error = errno;
    if (std::fclose(file) != 0 && error == 0) error = errno;
    if (error == 0 && std::rename(staged.c_str(), target.c_str()) != 0) error = errno;
    if (error != 0) std::remove(staged.c_str());
  }
  if (error == 0) return {};
  return refused(path, error);
}

}  // namespace servecast::cli
