// SPDX-License-Identifier: Apache-2.0
// The benchmark's cases: configuration files, named after themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/problem.hpp"

namespace servecast::cli {

struct BenchCase {
  std::string name;
  std::string path;
};

// All cases of a folder in order of name. Without a folder: bench/cases below the current
// directory, or below a directory above the program.
Result<std::vector<BenchCase>> bench_cases(const std::string& folder);
// Those that are named, in the order given; all when none is.
Result<std::vector<BenchCase>> chosen_cases(const std::string& folder,
                                            const std::vector<std::string>& names);

// What one run measured. Counts and fingerprint are the same in every run of one program.
struct BenchFigures {
  std::uint64_t requests = 0, output_tokens = 0, passes = 0;
  double loop_seconds = 0, cpu_seconds = 0;
  std::uint64_t peak_rss_bytes = 0;
  std::string fingerprint;
};

}  // namespace servecast::cli
