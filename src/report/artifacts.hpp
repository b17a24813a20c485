// SPDX-License-Identifier: Apache-2.0
// The output directory: all files of a run appear together, or none does (product.md 7).
//
//   OutputDirectory out({.path = "servecast-output", .overwrite = false});
//   if (auto ok = out.check(); !ok) return ok;               // before the run, touches nothing
//   out.stage("prediction.json", text);                      // after it
//   out.stage("requests.jsonl", [&](const Write& w) { return write_requests(collector, names, w);
//   }); out.commit(manifest);                                    // renames, manifest.json last
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"
#include "report/report.hpp"
#include "report/value.hpp"

namespace servecast::report {

// What stands in manifest.json beside the artifacts' sizes and digests.
struct Manifest {
  std::string tool_version{};
  std::vector<std::string> argv{};
  std::optional<std::uint64_t> seed{};   // of the traffic
  std::string started_at{}, ended_at{};  // ISO 8601, UTC
  Object host{};                         // host_facts() and what the caller adds
  Object cost{};                         // host_cost()
  Object data{};                         // revision and digests of data files and traces
};

// Operating system, machine architecture, host name, processors.
Object host_facts();

struct OutputOptions {
  std::string path;
  bool overwrite = false;
};

class OutputDirectory {
 public:
  explicit OutputDirectory(OutputOptions options);
  // Removes what was staged and not committed, and the directories made for that.
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  // May this directory take the results? Reads only. A path that is no directory, or a directory
  // with entries when `overwrite` is off, is a Problem that lists what `--overwrite` would remove.
  Result<void> check() const;

  // Writes one artifact under a temporary name in the directory (made when missing) and syncs it.
  // From the first one until commit or failure the directory belongs to this object: another run
  // that wants it gets a Problem.
  // After an error nothing staged remains, the directory holds what it held before, and this object
  // has done its service.
  // requires: `name` is a known artifact name and was not staged before; no call failed before
  Result<void> stage(std::string_view name, std::string_view text);
  Result<void> stage(std::string_view name,
                     const std::function<Result<void>(const Write&)>& produce);

  // Removes known artifacts of an earlier run (overwrite only), puts every staged file in its place
  // and manifest.json last.
  Result<void> commit(const Manifest& manifest);

 private:
  struct Staged {
    std::string name;
    std::uint64_t bytes = 0;
    std::string sha256;
  };
  Result<void> make_directory();
  Result<void> check_path() const;  // can files be written there?
  Result<void> take_lock();
  void free_lock();
  Result<void> replace(const std::vector<std::string>& present);
  void discard();

  OutputOptions options_;
  std::vector<Staged> staged_;
  std::vector<std::string> made_;  // directories made by this object, outermost first
  int lock_ = -1;                  // descriptor of the directory, locked while files are staged
  bool failed_ = false;
};

// Is this entry of an output directory ours, and so removed by --overwrite?
bool is_known_artifact(std::string_view name);

}  // namespace servecast::report
