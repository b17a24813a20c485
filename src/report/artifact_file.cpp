// SPDX-License-Identifier: Apache-2.0
#include "report/artifact_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/hash.hpp"

namespace servecast::report {

Problem output_problem(std::string_view action, const std::string& path, int error) {
  return {.code = "output.write",
          .message = fmt::format("cannot {} '{}': {}", action, path,
                                 std::generic_category().message(error)),
          .place = {},
          .hint = "",
          .fault = Fault::Execution};
}

ArtifactFile::ArtifactFile(std::string path, Open how) : path_(std::move(path)) {
  const int flags = O_WRONLY | O_CLOEXEC | (how == Open::New ? O_CREAT | O_EXCL | O_NOFOLLOW : 0);
  descriptor_ = ::open(path_.c_str(), flags, 0666);
  if (descriptor_ < 0) note(errno);
}

ArtifactFile::~ArtifactFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ArtifactFile::write(std::string_view text) {
  while (error_ == 0 && !text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written < 0) {
      if (errno != EINTR) note(errno);
      continue;
    }
    bytes_ += static_cast<std::uint64_t>(written);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

Result<void> ArtifactFile::finish() {
  if (error_ == 0 && ::fsync(descriptor_) != 0 && errno != EINVAL) note(errno);
  if (descriptor_ >= 0 && ::close(descriptor_) != 0) note(errno);
  descriptor_ = -1;
  if (error_ != 0) return fail(output_problem("write", path_, error_));
  return {};
}

Result<std::string> sha256_of_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return fail(output_problem("read", path, errno));
  struct stat facts{};
  const int stat_error = ::fstat(descriptor, &facts) == 0 ? 0 : errno;
  const auto size = static_cast<std::size_t>(facts.st_size);
  void* bytes = MAP_FAILED;
  int map_error = 0;
  if (stat_error == 0 && size > 0) {
    bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes == MAP_FAILED) map_error = errno;
  }
  ::close(descriptor);
  if (stat_error != 0 || map_error != 0) {
    return fail(output_problem("read", path, stat_error != 0 ? stat_error : map_error));
  }
  if (size == 0) return sha256_hex("");
  std::string digest = sha256_hex({static_cast<const char*>(bytes), size});
  ::munmap(bytes, size);
  return digest;
}

}  // namespace servecast::report
