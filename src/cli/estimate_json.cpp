// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "cli/estimate_report.hpp"
#include "cli/prediction.hpp"
#include "report/value.hpp"

namespace servecast::cli {
namespace {

using report::Array;
using report::Object;
using report::Value;

Object model_section(const Estimate& found) {
  const perf::Placement& placement = found.deployed.placement;
  return {{"card", placement.model.name},
          {"hardware", placement.system.name},
          {"backend", to_string(placement.engine)},
          {"backend_version",
           placement.engine_version.empty() ? Value() : Value(placement.engine_version)},
          {"context_length", found.deployed.deployment.rank.max_model_len}};
}

Object precisions_section(const perf::Precisions& precisions) {
  return {{"attention", to_string(precisions.attention)},
          {"dense", to_string(precisions.dense)},
          {"shared_experts", to_string(precisions.shared_experts)},
          {"experts", to_string(precisions.experts)},
          {"head", to_string(precisions.head)},
          {"kv_cache", to_string(precisions.kv_cache)}};
}

Object deployment_section(const Estimate& found) {
  const perf::Parallelism& p = found.deployed.placement.parallelism;
  return {{"workers", found.deployed.deployment.workers},
          {"gpus_per_worker", found.deployed.deployment.gpus_per_worker},
          {"gpus", found.gpus()},
          {"tensor", p.tensor},
          {"pipeline", p.pipeline},
          {"attention_data", p.attention_data},
          {"moe_tensor", p.moe_tensor},
          {"moe_expert", p.moe_expert},
          {"precisions", precisions_section(found.deployed.placement.precisions)}};
}

Object shape_section(const Estimate& found) {
  return {{"input_tokens", found.batch.input_tokens},
          {"output_tokens", found.batch.output_tokens},
          {"batch_per_rank", found.batch.requests},
          {"ranks", found.ranks},
          {"concurrency", found.requests()}};
}

Value interval_value(double value, const std::optional<double>& half_width) {
  if (!half_width) return nullptr;
  const Range range = range_of(value, *half_width);
  return Array{range.low, range.high};
}

// ms with its bound and interval.
Object latency(double ms, double bound_ms, const std::optional<double>& half_width) {
  return {{"ms", ms}, {"bound_ms", bound_ms}, {"interval_90_ms", interval_value(ms, half_width)}};
}

Object latency_section(const Estimate& found) {
  std::optional<double> ttft, tpot;
  if (found.evidence && found.evidence->interval) {
    ttft = found.evidence->interval->ttft;
    tpot = found.evidence->interval->tpot;
  }
  Object section{
      {"ttft", latency(to_ms(found.times.prefill), found.ttft_bound_ms, ttft)},
      {"tpot", nullptr},
      {"request", latency(to_ms(found.times.request()), found.request_bound_ms(), std::nullopt)}};
  if (found.decode) section[1].value = latency(found.times.tpot_ms(), found.tpot_bound_ms, tpot);
  return section;
}

Object throughput_section(const Estimate& found) {
  const double tokens = found.output_tokens_per_s();
  return {{"request_throughput_rps", found.requests_per_s()},
          {"output_throughput_tok_s", tokens},
          {"output_throughput_tok_s_per_gpu", tokens / static_cast<double>(found.gpus())},
          {"output_throughput_tok_s_per_user", found.tokens_per_s_of_user()}};
}

Object kv_section(const Estimate& found) {
  const scheduler::RankConfig& rank = found.deployed.deployment.rank;
  return {
      {"blocks", rank.grouped ? Value() : Value(rank.blocks)},
      {"block_tokens", rank.grouped ? Value() : Value(rank.block_tokens)},
      {"tokens", found.batch.capacity_tokens > 0 ? Value(found.batch.capacity_tokens) : Value()},
      {"request_bytes", found.request_kv_bytes},
      {"batch_bytes", found.request_kv_bytes * found.batch.requests},
      {"batch_per_rank_max", found.requests_max}};
}

Object pass_section(const perf::Breakdown& pass) {
  Array parts;
  for (const perf::PartTime& part : pass.parts)
    parts.emplace_back(Object{
        {"name", to_string(part.name)}, {"ms", to_ms(part.time)}, {"bound_ms", part.bound_ms}});
  return {{"ms", to_ms(pass.total)}, {"bound_ms", pass.bound_ms}, {"parts", std::move(parts)}};
}

Object passes_section(const Estimate& found) {
  const perf::StepShape prefill = perf::prefill_shape(found.batch);
  Object first = pass_section(found.prefill);
  first.push_back({"new_tokens", prefill.prefill_isl});
  Object section{{"prefill", std::move(first)}, {"decode", nullptr}};
  if (!found.decode) return section;
  Object middle = pass_section(*found.decode);
  const perf::StepShape decode = perf::decode_shape(found.batch, found.decode_pass());
  middle.push_back({"new_tokens", decode.decode_requests});
  middle.push_back({"context_tokens", decode.decode_context});
  middle.push_back({"pass", found.decode_pass() + 1});
  middle.push_back({"passes", found.batch.decode_passes()});
  section[1].value = std::move(middle);
  return section;
}

Array effects_of(const Applied& applied) {
  Array rows;
  for (const catalog::Effect& effect : applied.effects) {
    Object when;
    for (const auto& [label, value] : effect.when)
      when.push_back({std::string(to_string(label)), value});
    rows.emplace_back(
        Object{{"when", std::move(when)}, {"factor", effect.factor}, {"rows", effect.rows}});
  }
  return rows;
}

Object evidence_section(const Estimate& found, Detail detail) {
  Object section{{"timing", perf::to_string(found.deployed.deployment.timer->provenance())},
                 {"support", nullptr},
                 {"step_model", nullptr}};
  if (!found.evidence) return section;
  section[1].value = to_string(found.evidence->support);
  Object model{{"source", found.evidence->source}, {"licence", found.evidence->licence}};
  if (detail == Detail::Full) {
    Array coefficients;
    for (const Applied& each : found.evidence->coefficients)
      coefficients.emplace_back(Object{{"coefficient", to_string(each.coefficient)},
                                       {"value", each.value},
                                       {"effects", effects_of(each)}});
    model.push_back({"coefficients", std::move(coefficients)});
  }
  section[2].value = std::move(model);
  return section;
}

}  // namespace

std::string estimate_json(const Estimate& found, Detail detail) {
  Array warnings;
  for (const std::string& line : found.warnings) warnings.emplace_back(line);
  Object memory;
  if (found.deployed.memory) memory = memory_section(*found.deployed.memory);
  const Object all{{"schema_version", "1.0"},
                   {"model", model_section(found)},
                   {"deployment", deployment_section(found)},
                   {"shape", shape_section(found)},
                   {"latency", latency_section(found)},
                   {"throughput", throughput_section(found)},
                   {"memory", found.deployed.memory ? Value(std::move(memory)) : Value()},
                   {"kv_cache", kv_section(found)},
                   {"energy", nullptr},
                   {"energy_reason", energy_reason()},
                   {"passes", passes_section(found)},
                   {"provenance", evidence_section(found, detail)},
                   {"warnings", std::move(warnings)}};
  return report::to_json(all, report::Layout::Indented) + "\n";
}

}  // namespace servecast::cli
