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
// A submission's throughput is that of a long run: its last requests must not count.
constexpr double kSubmissionSeconds = 600;
constexpr double kSubmissionRequests = 60'000;
constexpr std::uint32_t kRequestsPerPlace = 10;  // realdata.md 2.2
constexpr std::uint32_t kHeldPasses = 30;        // TensorRT-LLM's batching of context requests

std::uint32_t part_of(std::uint32_t tokens, double factor) {
  return std::max(static_cast<std::uint32_t>(std::lround(tokens * factor)), 1U);
}

Length length_of(std::uint32_t tokens, const JudgedRow& judged) {
  const Protocol protocol = judged.protocol;
  // Of a data set only the mean is known; its lengths are far from equal.
  if (judged.row.is_submission)
    return {.kind = Length::Kind::Uniform, .min = 1, .max = 2 * tokens - 1};
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
    if (row.is_submission)
      requests = std::max<std::uint64_t>(
          requests, std::llround(std::min(*rate * kSubmissionSeconds, kSubmissionRequests)));
    load = {.kind = Load::Kind::Poisson, .per_second = *rate};
  }
  return workload::Spec{
      .source = workload::SyntheticSource{.input = length_of(*row.input_tokens, judged),
                                          .output = length_of(*row.output_tokens, judged)},
      .load = load,
      .stop = {.count = requests}};
}

NoCase unanswerable(std::string reason) {
  return {Status::Unanswerable, std::move(reason)};
}

// The sentence of a Problem without the account that follows in brackets: reasons are counted.
NoCase refused(const Problem& problem) {
  return unanswerable(problem.message.substr(0, problem.message.find(" (")));
}

// What ran, as far as the row or its protocol tells.
tl::expected<perf::Placement, NoCase> placement_of(const JudgedRow& judged, std::string& repaired) {
  const MeasuredRow& row = judged.row;
  const auto engine = catalog::engine_from(row.engine);
  if (!engine) return tl::unexpected(unanswerable(fmt::format("unknown engine {}", row.engine)));
  const auto model = model_of(row.model);
  if (!model) return tl::unexpected(unanswerable(model.error()));
  const auto system = system_of(row.system);
  if (!system) return tl::unexpected(unanswerable(system.error()));
  const bool has_experts = model->experts() != nullptr;
  RealWidths widths = real_widths(row.widths, has_experts);
  if (!widths.impossible.empty())
    return tl::unexpected(NoCase{Status::Impossible, std::move(widths.impossible)});
  repaired = std::move(widths.repaired);
  const auto precisions = precisions_of(row, *model, *system, *engine, widths.parallelism);
  if (!precisions) return tl::unexpected(unanswerable(precisions.error()));
  perf::Placement placement{.model = *model,
                            .system = *system,
                            .engine = *engine,
                            .parallelism = widths.parallelism,
                            .precisions = *precisions};
  perf::Parallelism& p = placement.parallelism;
  if (row.is_submission && !row.widths.tensor) {
    p.tensor = likely_tensor(placement, row.gpus.value_or(1));
    p.moe_tensor = has_experts ? p.tensor : 1;
  }
  if (judged.protocol == Protocol::Offline && *engine == EngineKind::TensorRtLlm)
    p = offline_widths(p, has_experts);
  return placement;
}

// Workers that share the load of a submission.
std::uint32_t copies_of(const MeasuredRow& row, const perf::Parallelism& widths) {
  if (!row.is_submission) return 1;
  const auto gpus = static_cast<std::uint32_t>(perf::gpus_per_worker(widths));
  return std::max(row.gpus.value_or(gpus) / gpus, 1U);
}

// Requests that a rank has at a time when all places are taken.
std::uint32_t requests_per_rank(const workload::Spec& traffic, std::uint32_t ranks) {
  if (traffic.load.kind != Load::Kind::Concurrency) return 0;
  return (traffic.load.concurrency + ranks - 1) / ranks;
}

void set_scheduler(const JudgedRow& judged, const workload::Spec& traffic, config::Engine& engine) {
  constexpr std::uint32_t kSeats = 256;       // of each engine, unless the run needs more
  constexpr std::uint32_t kPeakSeats = 2048;  // where throughput is what counts
  constexpr std::uint32_t kVllmTokens = 8192, kTrtllmTokens = 8192, kSglangTokens = 16384;
  scheduler::RankConfig& rank = engine.rank;
  const auto& source = std::get<workload::SyntheticSource>(traffic.source);
  const std::uint32_t seats = requests_per_rank(traffic, engine.parallelism.attention_data);
  const std::uint32_t prompt = longest(source.input);
  rank.prefix_caching = false;
  const bool is_peak = judged.protocol == Protocol::Offline || judged.row.is_submission;
  rank.max_sequences =
      judged.row.max_sequences.value_or(is_peak ? kPeakSeats : std::max(seats, kSeats));
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

}  // namespace

tl::expected<RowCase, NoCase> case_of(const JudgedRow& judged, const StepModelPointer& step_model) {
  const MeasuredRow& row = judged.row;
  RowCase made;
  const auto placement = placement_of(judged, made.repaired);
  if (!placement) return tl::unexpected(placement.error());
  auto traffic = traffic_of(judged);
  if (!traffic) return tl::unexpected(unanswerable(fmt::format("rate {} is no number", row.rate)));

  config::Engine& of = made.config.engine;
  of.model = placement->model.name;
  of.hardware = placement->system.name;
  of.backend = placement->engine;
  of.backend_version = row.version;
  of.timing.step_model = step_model;
  of.parallelism = placement->parallelism;
  of.precisions = placement->precisions;
  of.context_length = context_of(row, *traffic, placement->model);
  of.capacity.memory_fraction =
      row.memory_fraction.value_or(memory_fraction_of(of.backend, judged.protocol));
  set_scheduler(judged, *traffic, of);
  if (of.backend == EngineKind::Vllm && !of.rank.speculation && of.parallelism.pipeline == 1)
    of.grouped.groups = kv_groups_of(*placement, of.rank.block_tokens);
  if (judged.protocol == Protocol::Offline) {
    made.streams = of.parallelism.pipeline;
    const std::uint32_t copies = copies_of(row, of.parallelism);
    *traffic->stop.count *= copies;
    traffic->load.concurrency *= copies;
  }
  of.replicas = made.streams * copies_of(row, of.parallelism);
  made.config.traffic = std::move(*traffic);
  auto deployed = config::deploy(made.config);
  if (!deployed) return tl::unexpected(refused(deployed.error().front()));
  made.deployed = std::move(*deployed);
  made.deployed.deployment.rank.blocks /= made.streams;
  return made;
}

}  // namespace servecast::fit
