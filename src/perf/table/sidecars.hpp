// SPDX-License-Identifier: Apache-2.0
// What stands beside tables: which library version a system's tables assume, and which kernels
// several engines share.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/problem.hpp"

namespace servecast::perf {

// Rows of this kernel hold for all of these engines.
struct SharedKernel {
  std::string table, kernel;
  std::vector<std::string> engines;
};

struct Sidecars {
  std::map<std::string, std::string> nccl_version;  // by system
  std::vector<SharedKernel> shared;                 // kernels of at least two engines
};

// From <system>.yaml and perf_data_reuse_manifest.yaml of `in`; what is not there is empty.
Sidecars read_sidecars(const std::filesystem::path& in);

// OUT/sources.json. Problems: "perfdata.unwritable"; reading: "perfdata.corrupt". A store without
// it has none.
Result<void> write_sources(const Sidecars& sidecars, const std::filesystem::path& store);
Result<Sidecars> read_sources(const std::filesystem::path& store);

}  // namespace servecast::perf
