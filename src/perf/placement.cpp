// SPDX-License-Identifier: Apache-2.0
#include "perf/placement.hpp"

#include <fmt/core.h>

#include <array>
#include <utility>
#include <variant>

#include "perf/precision.hpp"

namespace servecast::perf {
namespace {

using catalog::EngineKind;
using catalog::Precision;

class Rules {
 public:
  explicit Rules(Problems& problems) : problems_(problems) {}
  void require(bool holds, const char* code, std::string message, std::string hint = {}) {
    if (holds) return;
    problems_.push_back(
        {.code = code, .message = std::move(message), .place = {}, .hint = std::move(hint)});
  }

 private:
  Problems& problems_;
};

std::uint32_t heads_of(const catalog::ModelCard& model) {
  return std::visit([](const auto& attention) { return attention.heads; }, model.attention);
}

void check_axes(const Parallelism& p, Rules& rules) {
  const std::array<std::pair<const char*, std::uint32_t>, 6> axes{
      {{"tensor", p.tensor},
       {"pipeline", p.pipeline},
       {"attention_data", p.attention_data},
       {"moe_tensor", p.moe_tensor},
       {"moe_expert", p.moe_expert},
       {"context", p.context}}};
  for (const auto& [name, ranks] : axes)
    rules.require(ranks >= 1, "parallelism.zero",
                  fmt::format("parallelism.{} is 0; it must be 1 or more", name));
}

void check_model(const Placement& placement, Rules& rules) {
  const catalog::ModelCard& model = placement.model;
  const Parallelism& p = placement.parallelism;
  rules.require(heads_of(model) % p.tensor == 0, "parallelism.heads",
                fmt::format("parallelism.tensor is {}; it must divide the {} attention heads of {}",
                            p.tensor, heads_of(model), model.name));
  rules.require(p.pipeline <= model.layers, "parallelism.layers",
                fmt::format("parallelism.pipeline is {}; {} has {} layers", p.pipeline, model.name,
                            model.layers));
  if (!model.experts) {
    rules.require(p.moe_tensor == 1 && p.moe_expert == 1, "parallelism.dense",
                  fmt::format("parallelism.moe_tensor is {} and parallelism.moe_expert is {}; both "
                              "must be 1 for {}, which has no experts",
                              p.moe_tensor, p.moe_expert, model.name));
    return;
  }
  const std::uint64_t ranks = std::uint64_t{p.tensor} * p.attention_data * p.context;
  rules.require(std::uint64_t{p.moe_tensor} * p.moe_expert == ranks, "parallelism.experts",
                fmt::format("parallelism.moe_tensor * moe_expert is {} * {}; it must equal tensor "
                            "* attention_data * context, which is {} * {} * {}",
                            p.moe_tensor, p.moe_expert, p.tensor, p.attention_data, p.context));
  rules.require(p.moe_expert <= model.experts->count, "parallelism.experts",
                fmt::format("parallelism.moe_expert is {}; {} has {} experts", p.moe_expert,
                            model.name, model.experts->count));
  if (placement.precisions.experts != Precision::Fp8Block) return;
  const std::uint32_t block = model.weights.block > 0 ? model.weights.block : 128;
  const std::uint32_t shard = model.experts->intermediate / p.moe_tensor;
  rules.require(shard % block == 0, "parallelism.block",
                fmt::format("parallelism.moe_tensor is {}: the experts' width {} gives shards of "
                            "{}, which fp8_block needs to be a multiple of {}",
                            p.moe_tensor, model.experts->intermediate, shard, block),
                "use moe_expert in place of moe_tensor");
}

void check_engine(const Placement& placement, Rules& rules) {
  const Parallelism& p = placement.parallelism;
  const EngineKind engine = placement.engine;
  rules.require(engine != EngineKind::TensorRtLlm || p.attention_data == 1 || p.tensor == 1,
                "parallelism.engine",
                fmt::format("trtllm takes attention_data or tensor, not both: attention_data is "
                            "{}, tensor is {}",
                            p.attention_data, p.tensor));
  rules.require(
      engine != EngineKind::Vllm || p.moe_tensor == 1 || p.moe_expert == 1, "parallelism.engine",
      fmt::format("vllm takes moe_tensor or moe_expert, not both: moe_tensor is {}, moe_expert "
                  "is {}",
                  p.moe_tensor, p.moe_expert));
  if (p.context == 1) return;
  rules.require(engine == EngineKind::Sglang, "parallelism.engine",
                fmt::format("parallelism.context is {}; only sglang has it, the engine is {}",
                            p.context, to_string(engine)));
  rules.require(p.tensor == 1 && p.attention_data == 1, "parallelism.engine",
                fmt::format("parallelism.context is {}; tensor and attention_data must be 1 then, "
                            "they are {} and {}",
                            p.context, p.tensor, p.attention_data));
}

void check_precisions(const Placement& placement, Rules& rules) {
  const Precisions& precisions = placement.precisions;
  const auto message = [&](const char* part, Precision precision) {
    return fmt::format("{} has no tensor-core rate for the {} in {}", placement.system.name, part,
                       to_string(precision));
  };
  rules.require(peak_flops_linear(placement.system, precisions.linear).has_value(),
                "precision.unsupported", message("weights", precisions.linear));
  if (placement.model.experts)
    rules.require(peak_flops(placement.system, precisions.experts).has_value(),
                  "precision.unsupported", message("experts", precisions.experts));
  rules.require(precisions.kv_cache == Precision::Bfloat16 || precisions.kv_cache == Precision::Fp8,
                "precision.kv_cache",
                fmt::format("the KV cache cannot be {}; it can be bfloat16 or fp8",
                            to_string(precisions.kv_cache)));
}

}  // namespace

std::uint64_t gpus_per_worker(const Parallelism& p) {
  return std::uint64_t{p.tensor} * p.pipeline * p.attention_data * p.context;
}

Precisions precisions_of(const catalog::ModelCard& model) {
  const Precision linear = model.weights.linear;
  const bool kv_fp8 =
      linear == Precision::Fp8 || linear == Precision::Fp8Block || linear == Precision::Nvfp4;
  return {.linear = linear,
          .experts = model.weights.experts,
          .kv_cache = kv_fp8 ? Precision::Fp8 : Precision::Bfloat16};
}

Problems check(const Placement& placement) {
  Problems problems;
  Rules rules(problems);
  check_axes(placement.parallelism, rules);
  if (!problems.empty()) return problems;  // the other rules divide by them
  check_model(placement, rules);
  check_engine(placement, rules);
  check_precisions(placement, rules);
  return problems;
}

std::uint32_t layers_of_fullest_stage(const Placement& placement) {
  const std::uint32_t stages = placement.parallelism.pipeline;
  return (placement.model.layers + stages - 1) / stages;
}

}  // namespace servecast::perf
