// SPDX-License-Identifier: Apache-2.0
#include "cli/static_estimate.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <variant>

#include "config/places.hpp"
#include "perf/coefficients.hpp"
#include "perf/kv_bytes.hpp"

namespace servecast::cli {
namespace {

using catalog::Coefficient;
using config::Config;

std::uint64_t div_ceil(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

Problem traffic_problem(const Config& config, const char* path, const char* rule) {
  return {"estimate.traffic", fmt::format("{}: {}", path, rule), config::place_of(config, path),
          "give --isl, --osl and --batch"};
}

// Lengths and load as numbers.
Result<perf::StaticBatch> batch_of(const Config& config, std::uint64_t ranks) {
  using Kind = workload::Length::Kind;
  const auto* source = std::get_if<workload::SyntheticSource>(&config.traffic.source);
  if (source == nullptr || source->input.kind != Kind::Fixed || source->output.kind != Kind::Fixed)
    return fail(traffic_problem(config, "traffic.source",
                                "an estimate is of requests of one length, type: synthetic with "
                                "input_tokens and output_tokens"));
  if (config.traffic.load.kind != workload::Load::Kind::Concurrency)
    return fail(
        traffic_problem(config, "traffic.load", "an estimate is of one batch, type: concurrency"));
  const std::uint64_t requests = div_ceil(config.traffic.load.concurrency, ranks);
  return perf::StaticBatch{.input_tokens = source->input.fixed,
                           .output_tokens = source->output.fixed,
                           .requests = static_cast<std::uint32_t>(requests)};
}

// KV blocks of a request at its full length; requires: a pool of blocks of one size.
std::uint64_t blocks_of_request(const scheduler::RankConfig& rank, std::uint64_t tokens) {
  return div_ceil(tokens, rank.block_tokens) + (rank.state ? rank.state->blocks : 0);
}

// How many requests of full length the cache of a rank holds.
void set_room(Estimate& found) {
  const scheduler::RankConfig& rank = found.deployed.deployment.rank;
  const std::uint64_t tokens = std::uint64_t{found.batch.input_tokens} + found.batch.output_tokens;
  found.request_kv_bytes = perf::kv_sequence_bytes(found.deployed.placement, tokens);
  found.requests_max = rank.grouped ? rank.grouped->capacity_bytes /
                                          std::max<std::uint64_t>(found.request_kv_bytes, 1)
                                    : rank.blocks / blocks_of_request(rank, tokens);
}

// bugs.md A43: no latency for a batch that the cache does not hold.
std::optional<Problem> room_problem(const Config& config, const Estimate& found) {
  if (found.batch.requests <= found.requests_max) return std::nullopt;
  const config::Deployed& deployed = found.deployed;
  const scheduler::RankConfig& rank = deployed.deployment.rank;
  const std::uint64_t tokens = std::uint64_t{found.batch.input_tokens} + found.batch.output_tokens;
  std::uint64_t request = found.request_kv_bytes;
  std::uint64_t available = rank.grouped ? rank.grouped->capacity_bytes : 0;
  if (!rank.grouped) {
    const std::uint64_t block =
        deployed.memory ? deployed.memory->kv_bytes / rank.blocks
                        : perf::kv_sequence_bytes(deployed.placement, rank.block_tokens);
    request = blocks_of_request(rank, tokens) * block;
    available = rank.blocks * block;
  }
  return Problem{
      "memory.batch_does_not_fit",
      fmt::format("traffic.load.concurrency: {} requests of {} tokens on each rank do not fit: one "
                  "{} GPU needs {} bytes of KV cache, available are {} bytes, which hold {} "
                  "requests",
                  found.batch.requests, tokens, deployed.placement.system.name,
                  found.batch.requests * request, available, found.requests_max),
      config::place_of(config, "traffic.load.concurrency"),
      "use a smaller batch, shorter requests or more GPUs per worker"};
}

// Where a run makes other passes than an estimate.
void add_warnings(const Config& config, Estimate& found) {
  const auto add = [&](const std::vector<std::string>& lines) {
    found.warnings.insert(found.warnings.end(), lines.begin(), lines.end());
  };
  add(found.deployed.warnings);
  const std::uint64_t prompts = std::uint64_t{found.batch.requests} * found.batch.input_tokens;
  const std::uint64_t budget = config::pass_tokens_max(config.engine);
  if (prompts > budget)
    found.warnings.push_back(fmt::format(
        "TTFT is of one pass of {} prompt tokens; passes of this engine take at most {}", prompts,
        budget));
  if (const std::uint32_t seats = config.engine.rank.max_sequences; found.batch.requests > seats)
    found.warnings.push_back(
        fmt::format("{} requests are in the batch of a rank; this engine runs at most {} at a time",
                    found.batch.requests, seats));
  if (config.traffic.load.concurrency % found.ranks != 0)
    found.warnings.push_back(
        fmt::format("concurrency {} is not the same on all {} ranks; {} on each are taken",
                    config.traffic.load.concurrency, found.ranks, found.batch.requests));
  const auto& source = std::get<workload::SyntheticSource>(config.traffic.source);
  if (source.cached_prefix_tokens > 0)
    found.warnings.push_back("an estimate computes prompts whole: cached_prefix_tokens is ignored");
}

std::vector<Applied> applied(const catalog::StepModel& model, const catalog::LabelValues& labels) {
  const perf::Coefficients values(model, labels);
  std::vector<Applied> all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Coefficient::ClientConstant); ++i) {
    const auto coefficient = static_cast<Coefficient>(i);
    Applied& one = all.emplace_back(Applied{coefficient, values[coefficient]});
    for (const catalog::Effect& effect : model.effects) {
      if (effect.coefficient == coefficient && effect.applies(labels))
        one.effects.push_back(effect);
    }
  }
  return all;
}

Evidence evidence_of(const catalog::StepModel& model, const perf::Placement& placement) {
  const catalog::LabelValues labels = perf::labels_of(placement);
  Evidence evidence{.support = fit::support_of(labels, perf::group_of(placement), model.groups),
                    .source = model.source,
                    .licence = model.licence,
                    .coefficients = applied(model, labels)};
  if (const auto* interval = fit::interval_of(model, evidence.support))
    evidence.interval = *interval;
  return evidence;
}

// One pass in parts, where the timer knows operators.
perf::Breakdown part_times(const Estimate& found, const std::optional<perf::PassCost>& cost,
                           const perf::PassCost& peak, const perf::StepShape& shape) {
  const Duration total = found.deployed.deployment.timer->time(shape).sum();
  if (cost) return perf::breakdown_of(*cost, peak, shape, total);
  return {.total = total, .bound_ms = perf::bound_ms(peak, shape)};
}

void set_times(Estimate& found) {
  const perf::Placement& placement = found.deployed.placement;
  found.times = perf::static_times(*found.deployed.deployment.timer, found.batch);
  std::optional<perf::PassCost> cost;
  if (const auto& model = found.deployed.step_model) {
    cost = perf::pass_cost_of(placement, perf::Coefficients(*model, perf::labels_of(placement)));
    found.evidence = evidence_of(*model, placement);
  }
  const perf::PassCost peak = perf::peak_cost_of(placement);
  found.prefill = part_times(found, cost, peak, perf::prefill_shape(found.batch));
  found.ttft_bound_ms = found.prefill.bound_ms;
  const std::uint32_t passes = found.batch.decode_passes();
  if (passes == 0) return;
  found.decode =
      part_times(found, cost, peak, perf::decode_shape(found.batch, found.decode_pass()));
  for (std::uint32_t pass = 0; pass < passes; ++pass)
    found.tpot_bound_ms += perf::bound_ms(peak, perf::decode_shape(found.batch, pass)) / passes;
}

}  // namespace

std::uint64_t Estimate::gpus() const {
  return std::uint64_t{deployed.deployment.workers} * deployed.deployment.gpus_per_worker;
}

double Estimate::requests_per_s() const {
  const Duration latency = times.request();
  return latency.ns > 0 ? static_cast<double>(requests()) / (to_ms(latency) / 1000.0) : 0.0;
}

double Estimate::output_tokens_per_s() const {
  return requests_per_s() * batch.output_tokens;
}

std::optional<double> Estimate::tokens_per_s_of_user() const {
  if (times.decode.ns <= 0) return std::nullopt;
  return 1000.0 / times.tpot_ms();
}

Result<Estimate> estimate(const Config& config) {
  if (config.engine.rank.speculation)
    return fail({"estimate.speculation",
                 "engine.nextn: an estimate knows no draft tokens, whose acceptance is drawn",
                 config::place_of(config, "engine.nextn"), "use servecast predict"});
  Estimate found;
  found.ranks = std::uint64_t{config.engine.replicas} * config.engine.parallelism.attention_data;
  Result<perf::StaticBatch> batch = batch_of(config, found.ranks);
  if (!batch) return tl::unexpected(std::move(batch.error()));
  Result<config::Deployed> deployed = config::deploy(config);
  if (!deployed) return tl::unexpected(std::move(deployed.error()));
  found.batch = *batch;
  found.deployed = std::move(*deployed);
  const scheduler::RankConfig& rank = found.deployed.deployment.rank;
  if (!rank.grouped) found.batch.capacity_tokens = std::uint64_t{rank.blocks} * rank.block_tokens;
  set_room(found);
  if (const auto problem = room_problem(config, found)) return fail(*problem);
  add_warnings(config, found);
  set_times(found);
  return found;
}

}  // namespace servecast::cli
