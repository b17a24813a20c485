// SPDX-License-Identifier: Apache-2.0
// The two streams: results on stdout, everything else on stderr (product.md 2.6).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/problem.hpp"
#include "cli/exit_code.hpp"

namespace servecast::cli {

// Writes the whole text to stdout; a full or closed stdout is a failed run.
Exit print_result(std::string_view text);
// "servecast: ..." on stderr.
void print_diagnostic(std::string_view text);
// Every problem on a line; gives the exit code.
Exit print_problems(const Problems& problems);
void print_warning(std::string_view text);

// A line on stderr that is rewritten while a run goes on. Shown only on a terminal, and only when
// the run lasts longer than a second.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool is_wanted() const { return wanted_; }
  void show(std::uint64_t done, std::uint64_t all);

 private:
  bool wanted_ = false;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace servecast::cli
