// SPDX-License-Identifier: Apache-2.0
#include "perf/coefficients.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <variant>

#include "base/check.hpp"

namespace servecast::perf {
namespace {

using catalog::Coefficient;
using catalog::Label;
using catalog::Precision;

// Formats that kernels treat alike. 4-bit weights that are multiplied in a wider format than their
// own are one class, whatever their scales.
std::string_view width_of(Precision precision) {
  switch (precision) {
    case Precision::Bfloat16:
      return "bf16";
    case Precision::Fp8:
    case Precision::Fp8Static:
    case Precision::Fp8Block:
    case Precision::Mxfp8:
    case Precision::Int8:
      return "fp8";
    case Precision::Nvfp4:
      return "fp4";
    case Precision::Nvfp4Weights:
    case Precision::Mxfp4:
    case Precision::Mxfp4Mxfp8:
    case Precision::Int4:
    case Precision::Int4Fp8:
      return "mxfp4";
  }
  check_failed("precision is one of its enumerators", __FILE__, __LINE__);
}

// The two measured generations: up to compute capability 9.x (and GPUs without one), and 10.0 and
// later. Ampere, Ada and other makers' GPUs take the first, for want of measurements.
bool is_blackwell(const catalog::SystemCard& system) {
  return system.sm.value_or(0) >= 100;
}

template <class... Mixers>
bool has_any(const catalog::ModelCard& model) {
  return ((model.mixer<Mixers>() != nullptr) || ...);
}

bool has_window(const catalog::ModelCard& model) {
  return std::any_of(model.groups.begin(), model.groups.end(), [](const auto& group) {
    const auto* grouped = std::get_if<catalog::GroupedAttention>(&group.mixer);
    return grouped != nullptr && grouped->window > 0;
  });
}

// The measured kind that a model's layers are nearest to.
std::string kind_of(const catalog::ModelCard& model) {
  if (has_any<catalog::GatedDelta, catalog::KimiDelta, catalog::Mamba2>(model)) return "linear";
  if (has_any<catalog::CompressedAttention, catalog::BlockSparseAttention>(model)) return "sparse";
  if (const auto* latent = model.mixer<catalog::LatentAttention>())
    return latent->index ? "sparse" : "latent";
  if (model.experts() == nullptr) return "dense";
  return has_window(model) ? "windowed_moe" : "moe";
}

bool is_share(Coefficient coefficient) {
  return (coefficient >= Coefficient::LinearMemory && coefficient <= Coefficient::PrefillFlops) ||
         coefficient == Coefficient::LinkShare;
}

}  // namespace

catalog::Precision main_precision(const Placement& placement) {
  return placement.model.experts() != nullptr ? placement.precisions.attention
                                              : placement.precisions.dense;
}

catalog::LabelValues labels_of(const Placement& placement) {
  const catalog::ModelCard& model = placement.model;
  catalog::LabelValues labels;
  labels[Label::Kind] = kind_of(model);
  labels[Label::Attention] =
      has_any<catalog::LatentAttention, catalog::CompressedAttention>(model) ? "latent" : "grouped";
  labels[Label::Generation] = is_blackwell(placement.system) ? "blackwell" : "hopper";
  labels[Label::Engine] = to_string(placement.engine);
  labels[Label::System] = placement.system.name;
  labels[Label::Version] = placement.engine_version;
  labels[Label::Network] =
      fmt::format("{}/{}x{}", model.architecture, model.layers(), model.hidden);
  labels[Label::Linear] = width_of(main_precision(placement));
  labels[Label::Experts] =
      model.experts() != nullptr ? std::string(width_of(placement.precisions.experts)) : "none";
  labels[Label::Formats] = labels[Label::Linear] + "/" + labels[Label::Experts];
  labels[Label::ExpertParallel] = placement.parallelism.moe_expert > 1 ? "yes" : "no";
  return labels;
}

Coefficients::Coefficients(const catalog::StepModel& model, const catalog::LabelValues& labels) {
  values_.fill(1.0);
  for (const catalog::Effect& effect : model.effects) {
    if (effect.applies(labels))
      values_[static_cast<std::size_t>(effect.coefficient)] *= effect.factor;
  }
  for (std::size_t i = 0; i < values_.size(); ++i) set(static_cast<Coefficient>(i), values_[i]);
}

void Coefficients::set(Coefficient c, double value) {
  values_[static_cast<std::size_t>(c)] = is_share(c) ? std::min(value, 1.0) : value;
}

double collective_growth(std::uint64_t gpus) {
  const std::uint64_t n = std::max<std::uint64_t>(gpus, 2);
  const auto power = static_cast<double>(std::bit_floor(n));
  const auto doublings = static_cast<double>(std::bit_width(n)) - 2.0;
  const double between = (static_cast<double>(n) - power) / power;
  return 1.0 + (doublings + between) / 4.0;
}

std::string group_of(const Placement& placement) {
  const catalog::LabelValues labels = labels_of(placement);
  return fmt::format("{} {} {} {}", labels[Label::Network], placement.system.name,
                     labels[Label::Engine], labels[Label::Formats]);
}

}  // namespace servecast::perf
