// SPDX-License-Identifier: Apache-2.0
#include "cli/prediction.hpp"

#include <fmt/core.h>

#include <utility>

#include "cache/grouped_blocks.hpp"
#include "config/places.hpp"
#include "fit/validation.hpp"
#include "perf/coefficients.hpp"
#include "replay/simulation.hpp"

namespace servecast::cli {
namespace {

using report::Object;

std::string_view load_name(const config::Config& config) {
  for (const config::Setting& setting : config.settings) {
    if (setting.path == "traffic.load.type") return *setting.yaml;
  }
  return "concurrency";
}

Object model_section(const Prepared& prepared) {
  const perf::Placement& placement = prepared.deployed.placement;
  return {{"requested", prepared.config.engine.model},
          {"card", placement.model.name},
          {"hardware", placement.system.name},
          {"context_length", prepared.deployed.deployment.rank.max_model_len}};
}

std::string_view to_string(scheduler::Fidelity fidelity) {
  return fidelity == scheduler::Fidelity::Exact ? "exact" : "compat";
}

Object deployment_section(const Prepared& prepared) {
  const replay::Deployment& deployment = prepared.deployed.deployment;
  const std::uint64_t ranks = deployment.ranks_per_worker;
  Object section{{"workers", deployment.workers},
                 {"ranks_per_worker", ranks},
                 {"gpus_per_worker", deployment.gpus_per_worker}};
  if (const auto& grouped = deployment.rank.grouped) {
    section.push_back({"kv_cache_groups", grouped->groups.size()});
    section.push_back({"kv_cache_capacity_bytes", grouped->capacity_bytes});
    section.push_back({"prefix_caching", deployment.rank.prefix_caching});
    section.push_back({"cold_reason", prepared.deployed.cold_reason});
    if (!grouped->rules) return section;
    section.push_back({"kv_blocks_per_rank", grouped->rules->blocks});
    section.push_back({"kv_block_bytes", grouped->rules->page_bytes});
    section.push_back({"prefix_match_unit", grouped->rules->unit});
    return section;
  }
  section.push_back({"kv_blocks_per_rank", deployment.rank.blocks});
  section.push_back({"kv_blocks_per_worker", ranks * deployment.rank.blocks});
  section.push_back({"kv_block_tokens", deployment.rank.block_tokens});
  if (const auto& state = deployment.rank.state) {
    section.push_back({"state_blocks_per_request", state->blocks});
    if (state->match_unit > 0) section.push_back({"prefix_match_unit", state->match_unit});
  }
  if (deployment.kv_eviction_policy == replay::EvictionPolicy::Belady)
    section.push_back({"kv_eviction_policy", "belady"});
  if (deployment.rank.sglang)
    section.push_back({"fidelity", to_string(deployment.rank.sglang->fidelity)});
  return section;
}

// "8 attention-DP ranks with 1024 KV blocks of 64 tokens each, of which a state takes 2"
std::string cache_text(const replay::Deployment& deployment) {
  const scheduler::RankConfig& rank = deployment.rank;
  std::string text;
  if (deployment.ranks_per_worker > 1)
    text = fmt::format("{} attention-DP ranks with ", deployment.ranks_per_worker);
  if (rank.grouped) {
    if (!rank.grouped->rules)
      return text + fmt::format("{} bytes of KV in {} groups each", rank.grouped->capacity_bytes,
                                rank.grouped->groups.size());
    return text + fmt::format("{} KV blocks of {} bytes in {} groups each",
                              rank.grouped->rules->blocks, rank.grouped->rules->page_bytes,
                              rank.grouped->groups.size());
  }
  text += fmt::format("{} KV blocks of {} {} each", rank.blocks, rank.block_tokens,
                      rank.block_tokens == 1 ? "token" : "tokens");
  if (rank.state)
    text += fmt::format(", of which the state of a request takes {}", rank.state->blocks);
  if (deployment.kv_eviction_policy == replay::EvictionPolicy::Belady)
    text += ", evicted by Belady's rule";
  if (rank.sglang) text += fmt::format(", SGLang {}", to_string(rank.sglang->fidelity));
  return text;
}

Object traffic_section(const Prepared& prepared) {
  const workload::Notes& notes = prepared.workload.notes();
  return {{"load", load_name(prepared.config)},
          {"sessions", prepared.workload.session_count()},
          {"requests", prepared.workload.request_count()},
          {"rows_out_of_order", notes.rows_out_of_order},
          {"rows_without_time", notes.rows_without_time},
          {"rows_delta_suspect", notes.rows_delta_suspect}};
}

// What the pools of grouped caches hold at the end, rank by rank (replay.md 19). Cached blocks
// that nobody references are physically used, not actively (engine-vllm.md 3.3).
report::Array pools_section(const replay::RunTotals& totals) {
  report::Array rows;
  for (std::size_t p = 0; p < totals.pools.size(); ++p) {
    const replay::PoolState& pool = totals.pools[p];
    const cache::GroupedUsage usage{pool.used_bytes, pool.cached_bytes, pool.capacity_bytes};
    rows.push_back(Object{{"worker_id", p / totals.ranks_per_worker},
                          {"dp_rank", p % totals.ranks_per_worker},
                          {"active_blocks", pool.active},
                          {"inactive_blocks", pool.inactive},
                          {"total_blocks", 0},
                          {"kv_cache_used_bytes", pool.used_bytes},
                          {"kv_cache_cached_bytes", pool.cached_bytes},
                          {"kv_cache_capacity_bytes", pool.capacity_bytes},
                          {"active_cache_usage", usage.active()},
                          {"physical_cache_usage", usage.physical()}});
  }
  return rows;
}

fit::Support support_of(const Prepared& prepared) {
  const perf::Placement& placement = prepared.deployed.placement;
  return fit::support_of(perf::labels_of(placement), perf::group_of(placement),
                         prepared.deployed.step_model->groups);
}

// How near the measurements behind the pass times are, and what 9 of 10 measured runs with this
// support are off by: measured / predicted lies between exp(-w) and exp(w).
Object timing_section(const catalog::StepModel& model, fit::Support support) {
  Object section{{"support", fit::to_string(support)}};
  if (const auto* interval = fit::interval_of(model, support)) {
    section.push_back({"ttft_log_half_width_90", interval->ttft});
    section.push_back({"tpot_log_half_width_90", interval->tpot});
  }
  return section;
}

report::RunFacts facts_of(const Prepared& prepared, const replay::RunTotals& totals) {
  report::RunFacts facts;
  const config::Deployed& deployed = prepared.deployed;
  facts.provenance = perf::to_string(deployed.deployment.timer->provenance());
  facts.sections = {{"model", model_section(prepared)},
                    {"deployment", deployment_section(prepared)},
                    {"traffic", traffic_section(prepared)}};
  if (deployed.step_model) {
    const fit::Support support = support_of(prepared);
    facts.timing_is_checked = support != fit::Support::None;
    facts.sections.push_back({"timing", timing_section(*deployed.step_model, support)});
  }
  if (prepared.deployed.memory)
    facts.sections.push_back({"memory", memory_section(*prepared.deployed.memory)});
  if (prepared.deployed.deployment.rank.grouped)
    facts.sections.push_back({"kv_pools", pools_section(totals)});
  report::Array lines;
  for (const std::string& line : warnings(prepared)) lines.emplace_back(line);
  facts.sections.push_back({"warnings", std::move(lines)});
  return facts;
}

}  // namespace

Object memory_section(const perf::KvCapacity& memory) {
  return {{"gpu_bytes", memory.gpu_bytes},
          {"memory_fraction", memory.memory_fraction},
          {"weights_bytes", memory.parts.weights},
          {"activations_bytes", memory.parts.activations},
          {"comm_overhead_bytes", memory.parts.collectives},
          {"runtime_overhead_bytes", memory.parts.others},
          {"cuda_graph_reserved_bytes", memory.parts.cuda_graphs},
          {"total_kv_size_bytes", memory.kv_bytes},
          {"kv_size_per_token_bytes", memory.kv_bytes_per_token},
          {"total_kv_size_tokens", memory.tokens},
          {"estimated_num_gpu_blocks", memory.blocks}};
}

Result<Prepared> prepare(config::Config config) {
  Result<config::Deployed> deployed = config::deploy(config);
  if (!deployed) return tl::unexpected(std::move(deployed.error()));
  Result<workload::Workload> workload = workload::build(config.traffic);
  if (!workload) return tl::unexpected(config::placed(std::move(workload.error()), config));
  if (Problems problems = replay::check(deployed->deployment, *workload); !problems.empty())
    return tl::unexpected(config::placed(std::move(problems), config));
  return Prepared{std::move(config), std::move(*deployed), std::move(*workload)};
}

Result<Prediction> run(const Prepared& prepared, const RunOptions& options) {
  const config::Sla& sla = prepared.config.sla;
  auto collector = std::make_unique<report::Collector>(
      report::CollectorOptions{.sla = {sla.ttft_ms, sla.itl_ms, sla.e2e_ms},
                               .keep_requests = options.capture.requests,
                               .keep_passes = options.capture.passes,
                               .keep_kv_events = options.capture.kv_events,
                               .kv_events_wire = options.capture.kv_events_wire,
                               .temporary_directory = {}});
  replay::Options replay_options;
  replay_options.stepping = options.stepping;
  replay_options.capture_requests = options.capture.requests;
  replay_options.capture_passes = options.capture.passes;
  replay_options.capture_kv_events = options.capture.kv_events;
  replay_options.cap = prepared.config.cap;
  if (options.progress != nullptr && options.progress->is_wanted())
    replay_options.progress = [progress = options.progress](std::uint64_t done, std::uint64_t all) {
      progress->show(done, all);
    };
  Result<replay::RunTotals> totals =
      replay::run(prepared.deployed.deployment, prepared.workload, replay_options, *collector);
  if (!totals) return tl::unexpected(std::move(totals.error()));
  Result<report::Report> report =
      report::make_report(*collector, *totals, facts_of(prepared, *totals));
  if (!report) return tl::unexpected(std::move(report.error()));
  return Prediction{std::move(*report), std::move(collector), std::move(*totals)};
}

std::string plan_line(const Prepared& prepared) {
  const replay::Deployment& deployment = prepared.deployed.deployment;
  const perf::Placement& placement = prepared.deployed.placement;
  return fmt::format("{} on {}: {} {} of {} {}, {}; load {}, {} requests", placement.model.name,
                     placement.system.name, deployment.workers,
                     deployment.workers == 1 ? "worker" : "workers", deployment.gpus_per_worker,
                     deployment.gpus_per_worker == 1 ? "GPU" : "GPUs", cache_text(deployment),
                     load_name(prepared.config), prepared.workload.request_count());
}

std::vector<std::string> warnings(const Prepared& prepared) {
  std::vector<std::string> all = prepared.config.warnings;
  const auto add = [&](const std::vector<std::string>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  add(prepared.deployed.warnings);
  add(prepared.workload.notes().warnings);
  return all;
}

}  // namespace servecast::cli
