// SPDX-License-Identifier: Apache-2.0
// Source of every number here, unless its line says otherwise: a fit of 1,501 public served
// measurements of aggregated deployments on H100, H200, B200 and B300 (aiconfigurator 095f58a
// silicon_sample.csv, Apache-2.0), accuracy-notes.md section 3. The docs repeat the table:
// docs/reference/performance-model.md.
#include "perf/coefficients.hpp"

#include <algorithm>
#include <bit>
#include <variant>

#include "base/check.hpp"

namespace servecast::perf {
namespace {

using catalog::EngineKind;
using catalog::Precision;

// The two fitted generations: up to compute capability 9.x (and GPUs without one), and 10.0 and
// later. Ampere, Ada and Intel GPUs take the first, for want of measurements.
bool is_blackwell(const catalog::SystemCard& system) {
  return system.sm.value_or(0) >= 100;
}

// A value by generation.
struct Pair {
  double hopper;
  double blackwell;
  double of(bool blackwell_gpu) const { return blackwell_gpu ? blackwell : hopper; }
};

enum class Width : std::uint8_t { Bf16, Fp8, Fp4 };

Width width_of(Precision precision) {
  switch (precision) {
    case Precision::Bfloat16:
      return Width::Bf16;
    case Precision::Fp8:
    case Precision::Fp8Static:
    case Precision::Fp8Block:
    case Precision::Mxfp8:
    case Precision::Int8:
      return Width::Fp8;
    case Precision::Int4:
    case Precision::Int4Fp8:
    case Precision::Nvfp4:
    case Precision::Nvfp4Weights:
    case Precision::Mxfp4:
    case Precision::Mxfp4Mxfp8:
      return Width::Fp4;
  }
  check_failed("precision is one of its enumerators", __FILE__, __LINE__);
}

Pair linear_memory(Width width) {
  switch (width) {
    case Width::Bf16:
      return {0.91, 0.85};
    case Width::Fp8:
      return {0.84, 0.73};
    case Width::Fp4:
      return {0.84, 0.52};  // Hopper: no row; as fp8
  }
  check_failed("width is one of its enumerators", __FILE__, __LINE__);
}

Pair linear_flops(Width width) {
  switch (width) {
    case Width::Bf16:
      return {0.75, 0.70};
    case Width::Fp8:
      return {0.48, 0.47};
    case Width::Fp4:
      return {0.48, 0.49};  // Hopper: no row; as fp8
  }
  check_failed("width is one of its enumerators", __FILE__, __LINE__);
}

Pair expert_memory(Width width) {
  switch (width) {
    case Width::Bf16:
      return {0.70, 0.90};  // Hopper: no row, as fp8; Blackwell: fitted 1.2
    case Width::Fp8:
      return {0.70, 0.79};
    case Width::Fp4:
      // Blackwell: fitted 1.09. Fits above 1 make up for skewed routing, which touches fewer
      // experts than even choice; a share of the peak stays below 1 here.
      return {0.66, 0.90};
  }
  check_failed("width is one of its enumerators", __FILE__, __LINE__);
}

Pair expert_flops(Width width) {
  switch (width) {
    case Width::Bf16:
      return {0.17, 0.22};
    case Width::Fp8:
      return {0.105, 0.11};
    case Width::Fp4:
      return {0.17, 0.15};  // Hopper: mxfp4 weights at the bfloat16 rate
  }
  check_failed("width is one of its enumerators", __FILE__, __LINE__);
}

enum class Family : std::uint8_t { Dense, WindowedMixture, Mixture, LatentMixture, SparseMixture };

bool has_window(const catalog::ModelCard& model) {
  return std::any_of(model.groups.begin(), model.groups.end(), [](const auto& group) {
    const auto* attention = std::get_if<catalog::GroupedAttention>(&group.mixer);
    return attention != nullptr && attention->window > 0;
  });
}

// Models of other families than the fitted ones take the nearest: that of their attention.
Family family_of(const catalog::ModelCard& model) {
  if (const auto* latent = model.mixer<catalog::LatentAttention>())
    return latent->index ? Family::SparseMixture : Family::LatentMixture;
  if (model.mixer<catalog::CompressedAttention>() != nullptr ||
      model.mixer<catalog::BlockSparseAttention>() != nullptr)
    return Family::SparseMixture;
  if (model.experts() == nullptr) return Family::Dense;
  return has_window(model) && model.family == catalog::Family::Moe ? Family::WindowedMixture
                                                                   : Family::Mixture;
}

// Layers that have a mixer and a feed-forward part; a layer with one of them counts half.
double whole_layers(const catalog::ModelCard& model) {
  double halves = 0.0;
  for (const catalog::LayerGroup& group : model.groups)
    halves += group.count * ((std::holds_alternative<catalog::NoMixer>(group.mixer) ? 0.0 : 1.0) +
                             (group.feed_forward.index() == 0 ? 0.0 : 1.0));
  return halves / 2.0;
}

// Launches of one layer in CUDA graphs, and what a pass with prompts adds to it; ms.
struct LayerLaunch {
  double graph;
  double prefill;
};

LayerLaunch layer_launch(Family family) {
  switch (family) {
    case Family::Dense:
      return {0.022, 0.17};
    case Family::WindowedMixture:
      return {0.021, 0.10};
    case Family::Mixture:
      return {0.051, 0.27};
    case Family::LatentMixture:
      return {0.078, 0.44};
    case Family::SparseMixture:
      return {0.149, 0.50};
  }
  check_failed("family is one of its enumerators", __FILE__, __LINE__);
}

struct EngineFactors {
  double pass_ms;
  double sequence_ms;
  double launch;
  double prefill_launch;
  double expert_memory;
  double kv_memory;
};

EngineFactors engine_factors(EngineKind engine) {
  switch (engine) {
    case EngineKind::Vllm:
      return {1.2, 0.023, 1.15, 1.19, 0.83, 1.0};
    case EngineKind::Sglang:
      return {0.42, 0.011, 1.00, 0.93, 0.94, 1.0};
    case EngineKind::TensorRtLlm:
      return {0.58, 0.026, 1.04, 0.80, 1.0, 0.76};
  }
  check_failed("engine is one of its enumerators", __FILE__, __LINE__);
}

Pair kv_memory(bool latent) {
  return latent ? Pair{0.97, 0.44} : Pair{0.72, 0.95};
}

Pair prefill_flops(Family family) {
  switch (family) {
    case Family::Dense:
    case Family::WindowedMixture:
    case Family::Mixture:
      return {0.51, 0.46};
    case Family::LatentMixture:
      return {0.37, 0.53};
    case Family::SparseMixture:
      return {0.19, 0.17};
  }
  check_failed("family is one of its enumerators", __FILE__, __LINE__);
}

}  // namespace

Efficiency efficiency_of(const Placement& placement) {
  const bool blackwell = is_blackwell(placement.system);
  const Family family = family_of(placement.model);
  const EngineFactors engine = engine_factors(placement.engine);
  const Width experts = width_of(placement.precisions.experts);
  const bool latent = family == Family::LatentMixture || family == Family::SparseMixture;
  return {.expert_memory = expert_memory(experts).of(blackwell) * engine.expert_memory,
          .expert_flops = expert_flops(experts).of(blackwell),
          .bf16_flops = linear_flops(Width::Bf16).of(blackwell),
          .kv_memory = kv_memory(latent).of(blackwell) * engine.kv_memory,
          .prefill_flops = prefill_flops(family).of(blackwell),
          .link = Pair{0.58, 0.33}.of(blackwell)};
}

MatrixShare matrix_share(const catalog::SystemCard& system, Precision precision) {
  const Width width = width_of(precision);
  return {.memory = linear_memory(width).of(is_blackwell(system)),
          .flops = linear_flops(width).of(is_blackwell(system))};
}

HostCost host_cost_of(const Placement& placement) {
  const LayerLaunch launch = layer_launch(family_of(placement.model));
  const EngineFactors engine = engine_factors(placement.engine);
  const double layers = whole_layers(placement.model);
  return {.per_pass = engine.pass_ms + layers * engine.launch * launch.graph,
          .per_sequence = engine.sequence_ms,
          .per_prefill_pass = layers * engine.prefill_launch * launch.prefill,
          .per_collective = Pair{0.0104, 0.0078}.of(is_blackwell(placement.system))};
}

double collective_growth(std::uint64_t gpus) {
  // log2 between powers of two by a line: exact, monotone and the same on every machine.
  const std::uint64_t n = std::max<std::uint64_t>(gpus, 2);
  const auto power = static_cast<double>(std::bit_floor(n));
  const auto doublings = static_cast<double>(std::bit_width(n)) - 2.0;
  const double between = (static_cast<double>(n) - power) / power;
  return 1.0 + (doublings + between) / 4.0;
}

}  // namespace servecast::perf
