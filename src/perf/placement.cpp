// SPDX-License-Identifier: Apache-2.0
#include "perf/placement.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "perf/operators.hpp"
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

// Heads of one mixer that tensor ranks share, with what they are called.
std::vector<std::pair<std::uint32_t, const char*>> heads_of(const catalog::Mixer& mixer) {
  if (const auto* a = std::get_if<catalog::GroupedAttention>(&mixer))
    return {{a->heads, "attention heads"}};
  if (const auto* a = std::get_if<catalog::LatentAttention>(&mixer))
    return {{a->heads, "attention heads"}};
  if (const auto* a = std::get_if<catalog::CompressedAttention>(&mixer))
    return {{a->heads, "attention heads"}};
  if (const auto* a = std::get_if<catalog::BlockSparseAttention>(&mixer))
    return {{a->grouped.heads, "attention heads"}};
  if (const auto* a = std::get_if<catalog::GatedDelta>(&mixer))
    return {{a->key_heads, "linear key heads"}, {a->value_heads, "linear value heads"}};
  if (const auto* a = std::get_if<catalog::KimiDelta>(&mixer))
    return {{a->heads, "linear attention heads"}};
  if (const auto* a = std::get_if<catalog::Mamba2>(&mixer)) return {{a->heads, "Mamba heads"}};
  return {};
}

void check_experts(const Placement& placement, Rules& rules) {
  const catalog::ModelCard& model = placement.model;
  const catalog::Experts* experts = model.experts();
  const Parallelism& p = placement.parallelism;
  if (experts == nullptr) {
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
  rules.require(p.moe_expert <= experts->count, "parallelism.experts",
                fmt::format("parallelism.moe_expert is {}; {} has {} experts", p.moe_expert,
                            model.name, experts->count));
  if (placement.precisions.experts != Precision::Fp8Block) return;
  const std::uint32_t block = model.precision.block > 0 ? model.precision.block : 128;
  const std::uint32_t shard = experts->width / p.moe_tensor;
  rules.require(shard % block == 0, "parallelism.block",
                fmt::format("parallelism.moe_tensor is {}: the experts' width {} gives shards of "
                            "{}, which fp8_block needs to be a multiple of {}",
                            p.moe_tensor, experts->width, shard, block),
                "use moe_expert in place of moe_tensor");
}

void check_model(const Placement& placement, Rules& rules) {
  const catalog::ModelCard& model = placement.model;
  const Parallelism& p = placement.parallelism;
  std::set<std::string> said;  // groups of layers share their heads
  for (const catalog::LayerGroup& group : model.groups) {
    for (const auto& [heads, what] : heads_of(group.mixer)) {
      if (heads % p.tensor == 0) continue;
      std::string message = fmt::format("parallelism.tensor is {}; it must divide the {} {} of {}",
                                        p.tensor, heads, what, model.name);
      if (said.insert(message).second) rules.require(false, "parallelism.heads", message);
    }
  }
  rules.require(p.pipeline <= model.layers(), "parallelism.layers",
                fmt::format("parallelism.pipeline is {}; {} has {} layers", p.pipeline, model.name,
                            model.layers()));
  check_experts(placement, rules);
  std::set<std::uint64_t> windows;
  for (const catalog::LayerGroup& group : model.groups) {
    for (const MixerPart& part : mixer_parts(group.mixer, 1, 1.0)) windows.insert(part.window);
  }
  rules.require(windows.size() <= kWindowsMax, "model.windows",
                fmt::format("{} has layers with {} different windows; at most {}", model.name,
                            windows.size(), kWindowsMax));
}

// perfmodel.md 2.3.
bool takes_context_ranks(catalog::Family family) {
  using F = catalog::Family;
  constexpr std::array kFamilies{F::Llama,     F::Moe,         F::Gemma4,
                                 F::HybridMoe, F::DeepSeekV32, F::DeepSeekV4};
  return std::find(kFamilies.begin(), kFamilies.end(), family) != kFamilies.end();
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
  rules.require(takes_context_ranks(placement.model.family), "parallelism.engine",
                fmt::format("parallelism.context is {}; the family {} of {} does not have it",
                            p.context, to_string(placement.model.family), placement.model.name));
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
  const std::array<std::pair<const char*, Precision>, 4> linear{
      {{"attention weights", precisions.attention},
       {"dense weights", precisions.dense},
       {"shared experts", precisions.shared_experts},
       {"output head", precisions.head}}};
  for (const auto& [part, precision] : linear)
    rules.require(peak_flops_linear(placement.system, precision).has_value(),
                  "precision.unsupported", message(part, precision));
  if (placement.model.experts() != nullptr)
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
  const catalog::WeightPrecision& p = model.precision;
  return {.attention = p.attention,
          .dense = p.dense,
          .shared_experts = p.shared_experts,
          .experts = p.experts,
          .head = p.head,
          .kv_cache = p.kv_cache};
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

std::vector<StageLayers> stages_of(const Placement& placement) {
  const catalog::ModelCard& model = placement.model;
  const std::uint32_t stages = placement.parallelism.pipeline;
  const std::uint32_t left = model.layers() % stages;
  std::vector<StageLayers> list(stages);
  std::uint32_t layer = 0;
  for (std::uint32_t s = 0; s < stages; ++s) {
    StageLayers& stage = list[s];
    stage.of_group.resize(model.groups.size());
    stage.has_embedding = s == 0;
    stage.has_head = s + 1 == stages;
    const bool takes_one_more = s + 1 < stages && s + 1 + left >= stages;
    const std::uint32_t end = layer + model.layers() / stages + (takes_one_more ? 1 : 0);
    for (; layer < end; ++layer) ++stage.of_group[model.group_of(layer)];
  }
  SERVECAST_CHECK(layer == model.layers());
  return list;
}

}  // namespace servecast::perf
