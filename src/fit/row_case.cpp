// SPDX-License-Identifier: Apache-2.0
#include "fit/row_case.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fit/kv_groups.hpp"
#include "fit/offline.hpp"
#include "perf/memory.hpp"
#include "scheduler/rank_config.hpp"
#include "workload/spec.hpp"

namespace servecast::fit {
namespace {

using catalog::EngineKind;
using workload::Length;
using workload::Load;

constexpr std::uint32_t kOpenLoopRequests = 200;
constexpr std::uint32_t kRequestsPerPlace = 10;  // realdata.md 2.2
constexpr std::uint32_t kHeldPasses = 30;        // TensorRT-LLM's batching of context requests

std::uint32_t part_of(std::uint32_t tokens, double factor) {
  return std::max(static_cast<std::uint32_t>(std::lround(tokens * factor)), 1U);
}

Length length_of(std::uint32_t tokens, Protocol protocol) {
  switch (protocol) {
    case Protocol::InferenceMax:
      return {.kind = Length::Kind::Uniform,
              .min = std::max(static_cast<std::uint32_t>(std::floor(tokens * 0.8)), 1U),
              .max = tokens};
    case Protocol::Fixed:
    case Protocol::OpenLoop:
      return {.kind = Length::Kind::Uniform,
              .min = part_of(tokens, 0.89),
              .max = part_of(tokens, 1.11)};
    case Protocol::Static:
    case Protocol::Offline:
      break;
  }
  return {.fixed = tokens};
}

std::uint32_t longest(const Length& length) {
  return length.kind == Length::Kind::Fixed ? length.fixed : length.max;
}

std::optional<double> rate_of(const MeasuredRow& row) {
  char* end = nullptr;
  const double rate = std::strtod(row.rate.c_str(), &end);
  if (end == row.rate.c_str() || *end != '\0' || !std::isfinite(rate) || rate <= 0)
    return std::nullopt;
  return rate;
}

// The requests of the row and how they come. Nothing: its rate is no number.
std::optional<workload::Spec> traffic_of(const JudgedRow& judged) {
  const MeasuredRow& row = judged.row;
  const std::uint32_t places = row.concurrency.value_or(0);
  std::uint64_t requests = row.requests.value_or(kRequestsPerPlace * places);
  Load load{.kind = Load::Kind::Concurrency, .concurrency = places};
  if (judged.protocol == Protocol::Static) requests = places;
  if (judged.protocol == Protocol::Offline) {
    requests = row.requests.value_or(offline_requests(*row.input_tokens, *row.output_tokens));
    load.concurrency = static_cast<std::uint32_t>(requests);
  }
  if (judged.protocol == Protocol::OpenLoop) {
    const auto rate = rate_of(row);
    if (!rate) return std::nullopt;
    requests = row.requests.value_or(kOpenLoopRequests);
    load = {.kind = Load::Kind::Poisson, .per_second = *rate};
  }
  return workload::Spec{
      .source = workload::SyntheticSource{.input = length_of(*row.input_tokens, judged.protocol),
                                          .output = length_of(*row.output_tokens, judged.protocol)},
      .load = load,
      .stop = {.count = requests}};
}

// Requests that a rank has at a time when all places are taken.
std::uint32_t requests_per_rank(const workload::Spec& traffic, std::uint32_t ranks) {
  if (traffic.load.kind != Load::Kind::Concurrency) return 0;
  return (traffic.load.concurrency + ranks - 1) / ranks;
}

void set_scheduler(const JudgedRow& judged, const workload::Spec& traffic, config::Engine& engine) {
  constexpr std::uint32_t kSeats = 256;          // of each engine, unless the run needs more
  constexpr std::uint32_t kOfflineSeats = 2048;  // where throughput alone counts
  constexpr std::uint32_t kVllmTokens = 8192, kTrtllmTokens = 8192, kSglangTokens = 16384;
  scheduler::RankConfig& rank = engine.rank;
  const auto& source = std::get<workload::SyntheticSource>(traffic.source);
  const std::uint32_t seats = requests_per_rank(traffic, engine.parallelism.attention_data);
  const std::uint32_t prompt = longest(source.input);
  rank.prefix_caching = false;
  rank.max_sequences = judged.row.max_sequences.value_or(
      judged.protocol == Protocol::Offline ? kOfflineSeats : std::max(seats, kSeats));
  switch (engine.backend) {
    case EngineKind::Vllm:
      rank.block_tokens = 16;
      rank.max_batched_tokens = kVllmTokens;
      break;
    case EngineKind::TensorRtLlm:
      rank.rules = scheduler::kTrtllmRules;
      rank.block_tokens = 32;
      rank.chunked_prefill = false;
      // With attention data parallelism prompts are held back until every rank has one or 60 decode
      // passes are over (accuracy-notes.md 2.2): half of that on average, as a fixed interval.
      if (engine.parallelism.attention_data > 1) rank.prefill_schedule_interval = kHeldPasses;
      rank.max_batched_tokens = judged.protocol == Protocol::InferenceMax
                                    ? prompt + seats + 64
                                    : std::max(kTrtllmTokens, prompt + seats);
      break;
    case EngineKind::Sglang:
      rank.block_tokens = 1;
      rank.max_batched_tokens = kSglangTokens;
      break;
  }
  rank.max_batched_tokens = judged.row.max_batched_tokens.value_or(rank.max_batched_tokens);
  if (engine.backend == EngineKind::Sglang)
    rank.sglang = scheduler::SglangSettings{.chunked_prefill_size = rank.max_batched_tokens};
  if (judged.drafts.count > 0)
    rank.speculation = scheduler::Speculation{
        .rates = scheduler::rates_of_accepted(judged.drafts.accepted, judged.drafts.count)};
}

// The limit that the protocol sets on the server (realdata.md 2.2: a little above the longest).
std::uint32_t context_of(const MeasuredRow& row, const workload::Spec& traffic,
                         const catalog::ModelCard& model) {
  constexpr std::uint32_t kSpare = 256;
  const auto& source = std::get<workload::SyntheticSource>(traffic.source);
  const std::uint32_t needed = longest(source.input) + longest(source.output);
  const std::uint32_t wanted = std::max(row.max_model_len.value_or(needed + kSpare), needed);
  return std::min(wanted, model.context_max);
}

// What these servers were started with, not the engines' defaults: only so do the rows fit whose
// memory was full.
double memory_fraction_of(EngineKind engine, Protocol protocol) {
  switch (engine) {
    case EngineKind::Vllm:
      return 0.92;
    case EngineKind::Sglang:
      return 0.95;
    case EngineKind::TensorRtLlm:
      break;
  }
  return protocol == Protocol::Offline ? 0.95 : 0.9;
}

NoCase unanswerable(std::string reason) {
  return {Status::Unanswerable, std::move(reason)};
}

// The sentence of a Problem without the account that follows in brackets: reasons are counted.
NoCase refused(const Problem& problem) {
  return unanswerable(problem.message.substr(0, problem.message.find(" (")));
}

}  // namespace

tl::expected<RowCase, NoCase> case_of(const JudgedRow& judged, const StepModelPointer& step_model) {
  const MeasuredRow& row = judged.row;
  const auto engine = catalog::engine_from(row.engine);
  if (!engine) return tl::unexpected(unanswerable(fmt::format("unknown engine {}", row.engine)));
  const auto model = model_of(row.model);
  if (!model) return tl::unexpected(unanswerable(model.error()));
  const auto system = system_of(row.system);
  if (!system) return tl::unexpected(unanswerable(system.error()));
  RealWidths widths = real_widths(row.widths, model->experts() != nullptr);
  if (!widths.impossible.empty())
    return tl::unexpected(NoCase{Status::Impossible, std::move(widths.impossible)});
  if (judged.protocol == Protocol::Offline && *engine == EngineKind::TensorRtLlm)
    widths.parallelism = offline_widths(widths.parallelism, model->experts() != nullptr);
  const auto precisions = precisions_of(row, *model, *system, *engine, widths.parallelism);
  if (!precisions) return tl::unexpected(unanswerable(precisions.error()));
  auto traffic = traffic_of(judged);
  if (!traffic) return tl::unexpected(unanswerable(fmt::format("rate {} is no number", row.rate)));

  RowCase made{.config = {}, .deployed = {}, .repaired = std::move(widths.repaired)};
  config::Engine& of = made.config.engine;
  of.model = model->name;
  of.hardware = system->name;
  of.backend = *engine;
  of.backend_version = row.version;
  of.timing.step_model = step_model;
  of.parallelism = widths.parallelism;
  of.precisions = *precisions;
  of.context_length = context_of(row, *traffic, *model);
  of.capacity.memory_fraction =
      row.memory_fraction.value_or(memory_fraction_of(*engine, judged.protocol));
  set_scheduler(judged, *traffic, of);
  const std::uint32_t streams =
      judged.protocol == Protocol::Offline ? widths.parallelism.pipeline : 1;
  of.replicas = streams;
  if (*engine == EngineKind::Vllm && !of.rank.speculation && of.parallelism.pipeline == 1)
    of.grouped.groups = kv_groups_of({.model = *model,
                                      .system = *system,
                                      .engine = *engine,
                                      .parallelism = of.parallelism,
                                      .precisions = of.precisions.value()},
                                     of.rank.block_tokens);
  made.config.traffic = std::move(*traffic);
  auto deployed = config::deploy(made.config);
  if (!deployed) return tl::unexpected(refused(deployed.error().front()));
  made.deployed = std::move(*deployed);
  made.streams = streams;
  made.deployed.deployment.rank.blocks /= streams;
  return made;
}

}  // namespace servecast::fit
