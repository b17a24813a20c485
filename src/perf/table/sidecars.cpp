// SPDX-License-Identifier: Apache-2.0
#include "perf/table/sidecars.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

namespace servecast::perf {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kManifest = "perf_data_reuse_manifest.yaml";

// The value of `key: value` in a line of these files, which nest nothing deeper; without quotes and
// comment.
std::optional<std::string> value_of(std::string_view line, std::string_view key) {
  const std::size_t start = line.find_first_not_of(" -");
  if (start == std::string_view::npos || !line.substr(start).starts_with(key)) return std::nullopt;
  line.remove_prefix(start + key.size());
  if (!line.starts_with(':')) return std::nullopt;
  line.remove_prefix(1);
  line = line.substr(0, line.find(" #"));
  std::string value;
  for (const char c : line) {
    if (c != '\'' && c != '"' && c != ' ' && c != '\r') value += c;
  }
  return value;
}

std::vector<std::string> list_of(std::string value) {
  std::vector<std::string> words(1);
  for (const char c : value) {
    if (c == '[' || c == ']') continue;
    if (c == ',')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

std::vector<SharedKernel> read_manifest(const fs::path& file) {
  constexpr std::string_view suffix = "_perf.parquet";
  std::vector<SharedKernel> shared;
  std::ifstream in(file);
  SharedKernel group;
  bool inert = false;
  for (std::string line; std::getline(in, line);) {
    if (auto name = value_of(line, "op_file")) {
      group = {};
      if (name->ends_with(suffix)) name->resize(name->size() - suffix.size());
      group.table = *name;
    } else if (auto kernel = value_of(line, "kernel_source")) {
      group.kernel = *kernel;
    } else if (const auto tier = value_of(line, "tier")) {
      inert = *tier != "shared" && *tier != "shared_fallback";
    } else if (auto engines = value_of(line, "frameworks")) {
      group.engines = list_of(*engines);
      if (!inert && group.engines.size() > 1) shared.push_back(group);
    }
  }
  return shared;
}

}  // namespace

Sidecars read_sidecars(const fs::path& in) {
  Sidecars out;
  out.shared = read_manifest(in / kManifest);
  std::error_code error;
  std::vector<fs::path> files;
  for (auto at = fs::directory_iterator(in, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    if (at->path().extension() == ".yaml") files.push_back(at->path());
  }
  for (const fs::path& file : files) {
    std::ifstream text(file);
    for (std::string line; std::getline(text, line);) {
      if (const auto version = value_of(line, "nccl_version"))
        out.nccl_version[file.stem().string()] = *version;
    }
  }
  return out;
}

Result<void> write_sources(const Sidecars& sidecars, const fs::path& store) {
  Json shared = Json::array();
  for (const SharedKernel& one : sidecars.shared)
    shared.push_back({{"table", one.table}, {"kernel", one.kernel}, {"engines", one.engines}});
  const Json json = {{"schema", "servecast.perf_sources.v1"},
                     {"nccl_version", sidecars.nccl_version},
                     {"shared_kernels", shared}};
  std::error_code ignored;
  fs::create_directories(store, ignored);
  std::ofstream out(store / "sources.json");
  out << json.dump(1) << '\n';
  if (out.flush()) return {};
  return fail({.code = "perfdata.unwritable",
               .message = "cannot be written",
               .place = {.file = (store / "sources.json").string()},
               .hint = ""});
}

Result<Sidecars> read_sources(const fs::path& store) {
  std::ifstream in(store / "sources.json");
  Sidecars out;
  if (!in) return out;
  try {
    const Json json = Json::parse(in);
    out.nccl_version = json.at("nccl_version").get<std::map<std::string, std::string>>();
    for (const Json& one : json.at("shared_kernels"))
      out.shared.push_back({one.at("table"), one.at("kernel"), one.at("engines")});
  } catch (const std::exception& error) {
    return fail({.code = "perfdata.corrupt",
                 .message = error.what(),
                 .place = {.file = (store / "sources.json").string()},
                 .hint = "write it again with 'servecast perfdata import'"});
  }
  return out;
}

}  // namespace servecast::perf
