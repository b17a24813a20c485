// SPDX-License-Identifier: Apache-2.0
#include "config/deployment.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "catalog/model_card.hpp"
#include "catalog/user_files.hpp"
#include "config/cards.hpp"
#include "config/engine_log.hpp"
#include "config/grouped.hpp"
#include "config/places.hpp"
#include "perf/timers.hpp"

namespace servecast::config {
namespace {

// Adds problems of a room that knows no configuration, with the field they come from.
void add(Problems& into, Problems from, const Config& config, std::string_view path) {
  for (Problem& problem : from) {
    problem.place = place_of(config, path);
    problem.message = fmt::format("{}: {}", path, problem.message);
    into.push_back(std::move(problem));
  }
}

// The longest length that is certain from the configuration alone; nothing when the tail is open.
std::optional<std::uint64_t> longest(const workload::Length& length) {
  if (length.kind == workload::Length::Kind::Fixed) return length.fixed;
  if (length.max == UINT32_MAX) return std::nullopt;
  return length.max;
}

// Tokens of the longest request, prompt and output, of a synthetic source.
std::optional<std::uint64_t> longest_request(const workload::Spec& traffic) {
  if (const auto* single = std::get_if<workload::SyntheticSource>(&traffic.source)) {
    const auto input = longest(single->input);
    const auto output = longest(single->output);
    if (input && output) return *input + *output;
  }
  if (const auto* session = std::get_if<workload::SessionSource>(&traffic.source)) {
    const auto input = longest(session->new_input);
    const auto output = longest(session->output);
    if (input && output) return session->turns * (*input + *output);
  }
  return std::nullopt;
}

void check_context(const Config& config, const catalog::ModelCard& model, Problems& problems) {
  const std::uint32_t limit = config.engine.context_length.value_or(model.context_max);
  if (limit > model.context_max)
    problems.push_back({"config.context",
                        fmt::format("engine.context_length: {} is more than the {} tokens of {}",
                                    limit, model.context_max, model.name),
                        place_of(config, "engine.context_length"), "use max"});
  const auto needed = longest_request(config.traffic);
  if (needed && *needed > limit)
    problems.push_back(
        {"config.context",
         fmt::format("traffic.source: its longest request has {} tokens with its output, more than "
                     "engine.context_length {}",
                     *needed, limit),
         place_of(config, "traffic.source"), "shorten the requests or raise the context length"});
}

Result<std::shared_ptr<const catalog::StepModel>> step_model_of(const Timing& timing) {
  if (timing.step_model) return timing.step_model;
  if (!timing.step_model_path)
    return std::shared_ptr<const catalog::StepModel>(std::shared_ptr<void>(),
                                                     &catalog::shipped_step_model());
  auto model = catalog::load_step_model(*timing.step_model_path);
  if (!model) return tl::unexpected(std::move(model.error()));
  return std::make_shared<const catalog::StepModel>(*std::move(model));
}

// A version is given that no effect of the step model knows.
bool warns_of_version(const Engine& engine, const Deployed& deployed) {
  if (!engine.backend_version || !deployed.step_model) return false;
  const auto& effects = deployed.step_model->effects;
  const std::pair<catalog::Label, std::string> version{catalog::Label::Version,
                                                       *engine.backend_version};
  const std::pair<catalog::Label, std::string> backend{
      catalog::Label::Engine, std::string(to_string(deployed.placement.engine))};
  return std::none_of(effects.begin(), effects.end(), [&](const catalog::Effect& effect) {
    const auto has = [&](const auto& one) {
      return std::find(effect.when.begin(), effect.when.end(), one) != effect.when.end();
    };
    return has(version) && has(backend);
  });
}

Result<perf::Timer> timer_of(const Config& config, Deployed& deployed) {
  const Timing& timing = config.engine.timing;
  switch (timing.kind) {
    case Timing::Kind::Fixed:
      return perf::fixed_timer(timing.fixed, timing.ratios);
    case Timing::Kind::Polynomial:
      return perf::polynomial_timer(timing.ratios);
    case Timing::Kind::Default:
      break;
  }
  auto model = step_model_of(timing);
  if (!model) return tl::unexpected(std::move(model.error()));
  deployed.step_model = *std::move(model);
  return perf::analytic_timer(deployed.placement, timing.ratios, *deployed.step_model);
}

// Fills the number of KV blocks from the engine's log: tokens first, whose size does not depend on
// the engine's blocks.
void set_logged(const Config& config, scheduler::RankConfig& rank, Problems& problems) {
  constexpr std::string_view kPath = "engine.workers.aggregated.kv_cache.capacity.path";
  const Result<LoggedCapacity> logged = read_capacity_log(config.engine.capacity.log);
  if (!logged) {
    for (const Problem& problem : logged.error())
      problems.push_back({problem.code, fmt::format("{}: {}", kPath, to_text(problem)),
                          place_of(config, kPath), ""});
    return;
  }
  const std::uint64_t blocks =
      logged->tokens ? *logged->tokens / rank.block_tokens : logged->blocks.value_or(0);
  if (blocks > 0 && blocks <= UINT32_MAX) {
    rank.blocks = static_cast<std::uint32_t>(blocks);
    return;
  }
  problems.push_back({"capacity.log",
                      fmt::format("{}: gives {} blocks of {} tokens; 1 to {} are possible", kPath,
                                  blocks, rank.block_tokens, UINT32_MAX),
                      place_of(config, kPath), ""});
}

// Fills the number of KV blocks. A model that cannot fit gives no numbers, unless the user took
// both memory and time into their own hands.
void set_capacity(const Config& config, Deployed& deployed, Problems& problems) {
  const Engine& engine = config.engine;
  const bool is_logged = engine.capacity.kind == Capacity::Kind::FromLog;
  const bool is_fixed = engine.capacity.kind == Capacity::Kind::Fixed || is_logged;
  const auto capacity = perf::kv_capacity(
      deployed.placement,
      {.max_batched_tokens = pass_tokens_max(engine),
       .block_tokens = engine.rank.block_tokens,
       .max_model_len = deployed.deployment.rank.max_model_len,
       .memory_fraction = is_fixed ? std::optional<double>(1.0) : engine.capacity.memory_fraction,
       .cuda_graph_reserved_bytes = is_fixed ? 0 : engine.capacity.cuda_graph_reserved_bytes,
       .kv_bytes_per_token = engine.kv_bytes_per_token});
  scheduler::RankConfig& rank = deployed.deployment.rank;
  const bool is_taken_over = is_logged || (is_fixed && engine.timing.kind != Timing::Kind::Default);
  if (!capacity && is_taken_over)
    deployed.warnings.push_back(capacity.error().sentence);
  else if (!capacity)
    problems.push_back({"memory.does_not_fit", "engine: " + capacity.error().sentence,
                        place_of(config, "engine.model"),
                        "use more GPUs per worker, other hardware or a smaller model"});
  const bool is_grouped = !engine.grouped.groups.empty() || engine.grouped.version;
  if (is_grouped && is_logged) {
    problems.push_back({"config.capacity",
                        "engine.workers.aggregated.kv_cache.capacity: from_log goes not together "
                        "with kv_cache.groups or vllm.version, whose pool is counted in bytes",
                        place_of(config, "engine.workers.aggregated.kv_cache.capacity"),
                        "give capacity {type: fixed, bytes: N}"});
    return;
  }
  if (is_grouped && (is_fixed || capacity))
    set_grouped(config, is_fixed ? engine.capacity.bytes.value_or(0) : capacity->kv_bytes, deployed,
                problems);
  if (is_grouped) {
    if (!is_fixed && capacity) deployed.memory = *capacity;
    return;
  }
  if (is_logged) {
    set_logged(config, rank, problems);
    return;
  }
  if (is_fixed) {
    rank.blocks = static_cast<std::uint32_t>(engine.fixed_blocks());
    return;
  }
  if (!capacity) return;
  if (capacity->blocks > UINT32_MAX) {
    problems.push_back(
        {"memory.too_many_blocks",
         fmt::format("engine.workers.aggregated.kv_cache.block_size: gives {} blocks, more than {}",
                     capacity->blocks, UINT32_MAX),
         place_of(config, "engine.workers.aggregated.kv_cache"), "use larger blocks"});
    return;
  }
  rank.blocks = static_cast<std::uint32_t>(capacity->blocks);
  deployed.memory = *capacity;
}

}  // namespace

std::uint32_t pass_tokens_max(const Engine& engine) {
  const std::uint32_t tokens = engine.rank.max_batched_tokens;
  return engine.rank.sglang ? tokens / engine.parallelism.attention_data : tokens;
}

Result<Deployed> deploy(const Config& config) {
  const Engine& engine = config.engine;
  Problems problems;
  auto model = model_of(engine);
  auto system = system_of(engine);
  if (!model) add(problems, std::move(model.error()), config, "engine.model");
  if (!system) add(problems, std::move(system.error()), config, "engine.hardware");
  if (!problems.empty()) return tl::unexpected(std::move(problems));

  Deployed deployed;
  deployed.placement = {.model = std::move(*model),
                        .system = std::move(*system),
                        .engine = engine.backend,
                        .parallelism = engine.parallelism,
                        .precisions = {},
                        .engine_version = engine.backend_version.value_or("")};
  deployed.placement.precisions =
      engine.precisions.value_or(perf::precisions_of(deployed.placement.model));
  add(problems, perf::check(deployed.placement), config, "engine.workers.aggregated");
  check_context(config, deployed.placement.model, problems);
  if (!problems.empty()) return tl::unexpected(std::move(problems));

  deployed.deployment.workers = engine.replicas;
  deployed.deployment.ranks_per_worker = engine.parallelism.attention_data;
  deployed.deployment.gpus_per_worker =
      static_cast<std::uint32_t>(perf::gpus_per_worker(engine.parallelism));
  deployed.deployment.rank = engine.rank;
  deployed.deployment.rank.max_model_len =
      engine.context_length.value_or(deployed.placement.model.context_max);
  deployed.deployment.router = config.router;
  deployed.deployment.kv_eviction_policy = config.kv_eviction_policy;
  if (!deployed.placement.system.measured && engine.timing.kind == Timing::Kind::Default)
    deployed.warnings.push_back(
        fmt::format("no measurement stands behind the times on {}: its card holds datasheet values",
                    deployed.placement.system.name));
  set_capacity(config, deployed, problems);
  Result<perf::Timer> timer = timer_of(config, deployed);
  if (!timer) add(problems, std::move(timer.error()), config, "engine.workers.aggregated.timing");
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  deployed.deployment.timer = std::move(*timer);
  if (warns_of_version(engine, deployed))
    deployed.warnings.push_back(
        fmt::format("no measurement tells {} {} from other versions: pass times are those of {} at "
                    "large",
                    to_string(engine.backend), *engine.backend_version, to_string(engine.backend)));
  return deployed;
}

}  // namespace servecast::config
