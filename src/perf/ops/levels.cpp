// SPDX-License-Identifier: Apache-2.0
#include "perf/ops/levels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace servecast::perf {
namespace {

struct Level {
  double bytes;
  int compute;
  double share;
};

constexpr double kNvfp4 = 9.0 / 16.0;

constexpr std::array<Level, 9> kGemm = {{{2, 1, .70},
                                         {1, 1, .55},
                                         {kNvfp4, 1, .45},
                                         {.5, 1, .45},
                                         {1, 2, .45},
                                         {.5, 2, .35},
                                         {1, 4, .30},
                                         {.5, 4, .30},
                                         {kNvfp4, 4, .30}}};
constexpr double kGemmOther = .45;

constexpr std::array<Level, 9> kExperts = {{{2, 1, .53},
                                            {1, 1, .45},
                                            {kNvfp4, 1, .07},
                                            {.5, 1, .07},
                                            {1, 2, .40},
                                            {.5, 2, .15},
                                            {1, 4, .30},
                                            {.5, 4, .23},
                                            {kNvfp4, 4, .23}}};
constexpr double kExpertsOther = .30;

double share(std::span<const Level> levels, Quant quant, double otherwise) {
  const QuantFacts& f = facts(quant);
  for (const Level& level : levels) {
    if (level.bytes == f.bytes && level.compute == f.compute) return level.share;
  }
  return otherwise;
}

constexpr std::array<double, 5> kHeads = {64, 128, 192, 256, 512};
constexpr std::array<double, 5> kVllm = {.60, 1, 1.27, 1.51, 1.60};
constexpr std::array<double, 5> kSglang = {.60, 1, 1.18, 1.32, 1.38};
constexpr std::array<double, 5> kTrtllm = {.58, 1, 1.10, 1.17, 1.20};

}  // namespace

double gemm_level(Quant quant) {
  return share(kGemm, quant, kGemmOther);
}
double expert_level(Quant quant) {
  return share(kExperts, quant, kExpertsOther);
}

double prefill_head_ratio(catalog::EngineKind engine, std::int64_t head_dim) {
  const auto& ratios = engine == catalog::EngineKind::Vllm     ? kVllm
                       : engine == catalog::EngineKind::Sglang ? kSglang
                                                               : kTrtllm;
  const double size = std::clamp(static_cast<double>(head_dim), kHeads.front(), kHeads.back());
  std::size_t high = 1;
  while (kHeads[high] < size) ++high;
  const double low = std::log2(kHeads[high - 1]);
  const double weight = (std::log2(size) - low) / (std::log2(kHeads[high]) - low);
  return ratios[high - 1] + weight * (ratios[high] - ratios[high - 1]);
}

}  // namespace servecast::perf
