// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/text.hpp"

namespace servecast::cli {
namespace {

using std::chrono::steady_clock;

void to_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

Exit print_result(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return Exit::Success;
  print_diagnostic(fmt::format("cannot write the result to stdout: {}", std::strerror(errno)));
  return Exit::Failed;
}

void print_diagnostic(std::string_view text) {
  to_stderr(fmt::format("servecast: {}\n", text));
}

void print_warning(std::string_view text) {
  print_diagnostic(fmt::format("warning: {}", printable(text)));
}

Exit print_problems(const Problems& problems) {
  for (const Problem& problem : problems) print_diagnostic(to_text(problem));
  return exit_of(problems);
}

Progress::Progress(bool quiet)
    : wanted_(!quiet && isatty(STDERR_FILENO) == 1),
      next_(steady_clock::now() + std::chrono::seconds(1)) {}

Progress::~Progress() {
  if (shown_) to_stderr("\r\x1b[K");
}

void Progress::show(std::uint64_t done, std::uint64_t all) {
  const auto now = steady_clock::now();
  if (!wanted_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(200);
  shown_ = true;
  const double percent =
      all == 0 ? 0.0 : 100.0 * static_cast<double>(done) / static_cast<double>(all);
  to_stderr(fmt::format("\r{} of {} requests ({:.0f} %)\x1b[K", done, all, percent));
}

}  // namespace servecast::cli
