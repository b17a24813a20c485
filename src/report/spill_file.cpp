// SPDX-License-Identifier: Apache-2.0
#include "report/spill_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

namespace servecast::report {
namespace {

Problem spill_problem(const std::string& directory, const std::string& what) {
  return {.code = "report.temporary_file",
          .message = "the temporary file of the report: " + what,
          .place = {.file = directory},
          .hint = "point TMPDIR to a directory with more free space",
          .fault = Fault::Resource};
}

}  // namespace

SpillFile::SpillFile(std::string directory) : directory_(std::move(directory)) {}

SpillFile::~SpillFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SpillFile::open() {
  if (directory_.empty()) {
    std::error_code error;
    directory_ = std::filesystem::temp_directory_path(error).string();
    if (error) {
      error_ = error.value();
      return;
    }
  }
  descriptor_ = ::open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor_ >= 0) return;
  // Some file systems know no unnamed files: take the name away at once.
  std::string name = directory_ + "/servecast-XXXXXX";
  descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    error_ = errno;
    return;
  }
  ::unlink(name.c_str());
}

void SpillFile::append(std::span<const std::byte> bytes) {
  if (error_ == 0 && descriptor_ < 0) open();
  while (error_ == 0 && !bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (written < 0) {
      if (errno != EINTR) error_ = errno;
      continue;
    }
    size_ += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

Result<void> SpillFile::read(const std::function<void(std::span<const std::byte>)>& take) const {
  if (auto problem = this->problem()) return fail(*std::move(problem));
  std::vector<std::byte> piece(std::min<std::uint64_t>(kPieceBytes, size_));
  for (std::uint64_t at = 0; at < size_;) {
    const std::size_t want = std::min<std::uint64_t>(piece.size(), size_ - at);
    std::size_t have = 0;
    while (have < want) {
      const ssize_t got =
          ::pread(descriptor_, piece.data() + have, want - have, static_cast<off_t>(at + have));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return fail(spill_problem(directory_, std::generic_category().message(errno)));
      }
      if (got == 0) {
        return fail(spill_problem(directory_, "ends after " + std::to_string(at + have) + " of " +
                                                  std::to_string(size_) + " bytes"));
      }
      have += static_cast<std::size_t>(got);
    }
    take(std::span(piece).first(want));
    at += want;
  }
  return {};
}

std::optional<Problem> SpillFile::problem() const {
  if (error_ == 0) return std::nullopt;
  return spill_problem(directory_, std::generic_category().message(error_));
}

}  // namespace servecast::report
