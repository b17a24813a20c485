// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_case.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/text.hpp"

namespace servecast::cli {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> find_folder(const std::string& given) {
  std::error_code ignored;
  if (!given.empty())
    return fs::is_directory(given, ignored) ? std::optional<fs::path>(given) : std::nullopt;
  const fs::path below = fs::path("bench") / "cases";
  if (fs::is_directory(below, ignored)) return below;
  fs::path above = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (; !above.empty() && above != above.root_path(); above = above.parent_path()) {
    if (fs::is_directory(above / below, ignored)) return above / below;
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<BenchCase>> bench_cases(const std::string& folder) {
  const auto found = find_folder(folder);
  if (!found)
    return fail({"bench.no_cases",
                 folder.empty() ? "there is no folder bench/cases here or above the program"
                                : fmt::format("{} is not a folder", folder),
                 {},
                 "name it with --cases"});
  std::vector<BenchCase> cases;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(*found, error)) {
    if (entry.path().extension() == ".yaml")
      cases.push_back({entry.path().stem().string(), entry.path().string()});
  }
  if (error)
    return fail(
        {"bench.no_cases", fmt::format("{}: {}", found->string(), error.message()), {}, ""});
  if (cases.empty())
    return fail({"bench.no_cases", fmt::format("{} holds no case", found->string()), {}, ""});
  std::sort(cases.begin(), cases.end(),
            [](const BenchCase& a, const BenchCase& b) { return a.name < b.name; });
  return cases;
}

Result<std::vector<BenchCase>> chosen_cases(const std::string& folder,
                                            const std::vector<std::string>& names) {
  Result<std::vector<BenchCase>> all = bench_cases(folder);
  if (!all || names.empty()) return all;
  std::vector<std::string> known;
  for (const BenchCase& one : *all) known.push_back(one.name);
  std::vector<BenchCase> chosen;
  Problems problems;
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found != known.end()) {
      chosen.push_back((*all)[static_cast<std::size_t>(found - known.begin())]);
      continue;
    }
    const auto nearest = nearest_name(name, known);
    problems.push_back(
        {"bench.unknown_case",
         fmt::format("there is no case {}; there are {}", name, fmt::join(known, ", ")),
         {},
         nearest ? fmt::format("did you mean {}?", *nearest) : ""});
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return chosen;
}

}  // namespace servecast::cli
