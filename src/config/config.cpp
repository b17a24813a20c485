// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "config/decoder.hpp"
#include "config/describe.hpp"
#include "config/override.hpp"
#include "config/strict.hpp"
#include "config/warnings.hpp"
#include "config/yaml.hpp"

namespace servecast::config {
namespace {

namespace fs = std::filesystem;

// Search domains belong to recommend; predict names each one.
void find_domains(const Value& value, const std::string& path, Problems& problems) {
  const bool is_domain = value.kind == Value::Kind::Mapping && value.entries.size() == 1 &&
                         (value.entries[0].key == "choices" || value.entries[0].key == "range");
  if (is_domain) {
    problems.push_back(
        {"config.domain",
         fmt::format("{}: predict accepts only concrete values, not a domain {{{}: ...}}", path,
                     value.entries[0].key),
         value.place, "write one value"});
    return;
  }
  for (const Value::Entry& entry : value.entries)
    find_domains(entry.value, path.empty() ? entry.key : path + "." + entry.key, problems);
}

// A field that is missing or out of range may well be right for what this version refuses, so the
// refusal speaks alone.
void drop_consequences(Problems& problems) {
  const auto is_refusal = [](const Problem& problem) {
    return problem.code == "config.unsupported";
  };
  if (std::none_of(problems.begin(), problems.end(), is_refusal)) return;
  std::erase_if(problems, [](const Problem& problem) {
    return problem.code == "config.missing" || problem.code == "config.range";
  });
}

Result<Value> read_document(const Input& input) {
  Result<Value> root = input.text ? read_yaml(*input.text, input.path) : read_yaml_file(input.path);
  if (!root) return root;
  if (root->kind != Value::Kind::Mapping)
    return fail({"config.top_level",
                 fmt::format("the top level must be one mapping, not {}", described(*root)),
                 root->place, "start with 'engine:'"});
  Problems problems;
  for (const std::string& argument : input.sets) {
    if (Result<void> applied = apply_set(*root, argument); !applied)
      problems.insert(problems.end(), applied.error().begin(), applied.error().end());
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return root;
}

std::optional<fs::path> find_data_folder(const std::string& config_path) {
  // An environment variable may name data, never change results (the data's digest stands in the
  // manifest).
  if (const char* named = std::getenv("SERVECAST_DATA"); named != nullptr && *named != '\0')
    return fs::path(named);
  std::error_code ignored;
  const fs::path here = fs::current_path(ignored);
  if (const fs::path near = here / ".." / "shared" / "data"; fs::is_directory(near, ignored))
    return near;
  const fs::path start = fs::absolute(config_path, ignored).lexically_normal().parent_path();
  for (fs::path folder = start; !folder.empty(); folder = folder.parent_path()) {
    if (const fs::path near = folder / ".." / "shared" / "data"; fs::is_directory(near, ignored))
      return near;
    if (folder == folder.root_path()) break;
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t Engine::fixed_blocks() const {
  if (capacity.blocks) return *capacity.blocks;
  return *capacity.bytes / (rank.block_tokens * *kv_bytes_per_token);
}

Result<std::string> resolve_path(std::string_view written, const std::string& config_path) {
  constexpr std::string_view kData = "data:";
  if (!written.starts_with(kData)) return std::string(written);
  const auto folder = find_data_folder(config_path);
  if (!folder)
    return fail({"config.no_data",
                 fmt::format("{}: there is no data folder", written),
                 {config_path, 0, 0},
                 "set the environment variable SERVECAST_DATA to it"});
  return (*folder / written.substr(kData.size())).lexically_normal().string();
}

Result<Config> read(const Input& input) {
  Result<Value> root = read_document(input);
  if (!root) return tl::unexpected(std::move(root.error()));
  Decoding decoding{.seed = input.seed, .settings = {}, .problems = {}};
  find_domains(*root, "", decoding.problems);
  if (!decoding.problems.empty()) return tl::unexpected(std::move(decoding.problems));

  Form form;
  // Only a document without any traffic takes the whole default (product.md 9.1).
  if (root->find("traffic") == nullptr) form.traffic.stop.requests = 100;
  Decoder decoder(&*root, "", root->place, decoding);
  describe(decoder, form);
  decoder.finish();
  drop_consequences(decoding.problems);
  if (!decoding.problems.empty()) return tl::unexpected(std::move(decoding.problems));

  Config config;
  config.traffic = traffic_spec(form.traffic);
  if (auto* trace = std::get_if<workload::TraceSource>(&config.traffic.source)) {
    Result<std::string> path = resolve_path(trace->path, input.path);
    if (!path) return tl::unexpected(std::move(path.error()));
    trace->path = *path;
  }
  if (const auto seconds = form.traffic.stop.max_virtual_time_seconds)
    config.cap = Time{*ns_from_ms(*seconds * 1e3)};
  config.engine = std::move(form.engine);
  if (Result<std::string> log = resolve_path(config.engine.capacity.log, input.path))
    config.engine.capacity.log = *std::move(log);
  else
    return tl::unexpected(std::move(log.error()));
  config.router = form.router;
  config.kv_eviction_policy = form.kv_eviction_policy;
  config.sla = form.sla;
  config.settings = std::move(decoding.settings);
  config.warnings = warnings_of(config);
  return config;
}

}  // namespace servecast::config
