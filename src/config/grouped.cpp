// SPDX-License-Identifier: Apache-2.0
#include "config/grouped.hpp"

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "cache/grouped_gate.hpp"
#include "config/places.hpp"

namespace servecast::config {
namespace {

// Where the configuration has what the gate calls so.
std::string path_of(std::string_view field) {
  constexpr std::string_view kWorker = "engine.workers.aggregated";
  if (field == "max_model_len") return "engine.context_length";
  if (field == "vllm_version") return fmt::format("{}.vllm.version", kWorker);
  if (field == "max_num_batched_tokens")
    return fmt::format("{}.scheduler.max_batched_tokens", kWorker);
  return fmt::format("{}.kv_cache.{}", kWorker, field);
}

}  // namespace

void set_grouped(const Config& config, std::uint64_t capacity_bytes, Deployed& deployed,
                 Problems& problems) {
  const Grouped& written = config.engine.grouped;
  scheduler::RankConfig& rank = deployed.deployment.rank;
  cache::GroupedSettings settings{.groups = written.groups,
                                  .prefix_caching = rank.prefix_caching,
                                  .prefix_match_unit = written.match_unit,
                                  .max_model_len = rank.max_model_len,
                                  .max_num_batched_tokens = rank.max_batched_tokens,
                                  .capacity_bytes = capacity_bytes,
                                  .evidence = written.evidence,
                                  .key_output_blocks = written.key_output_blocks};
  if (written.version) settings.vllm_version = *written.version;
  const cache::GroupedGate gate = cache::grouped_gate(settings);
  for (const cache::GroupedRefusal& refusal : gate.refusals) {
    const std::string path = path_of(refusal.field);
    problems.push_back({"config.grouped_caches", fmt::format("{} {}", path, refusal.message),
                        place_of(config, path), refusal.hint});
  }
  if (!gate.refusals.empty() || written.groups.empty()) return;
  if (gate.cold_reason) {
    deployed.cold_reason = *gate.cold_reason;
    deployed.warnings.push_back(
        fmt::format("{}: runs without prefix caching: {}", path_of("groups"), *gate.cold_reason));
  }
  rank.blocks = 0;
  rank.prefix_caching = gate.prefix_caching;
  rank.grouped = scheduler::GroupedCacheSettings{
      .groups = written.groups, .capacity_bytes = capacity_bytes, .rules = {}};
  if (gate.prefix_caching) rank.grouped->rules = cache::grouped_rules(settings);
}

}  // namespace servecast::config
