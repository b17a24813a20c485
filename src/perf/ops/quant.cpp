// SPDX-License-Identifier: Apache-2.0
#include "perf/ops/quant.hpp"

#include <array>
#include <cstddef>

namespace servecast::perf {
namespace {

constexpr double kNvfp4Bytes = 9.0 / 16.0;  // 4 bits and an 8-bit scale for each 16 numbers

// In the order of Quant.
constexpr std::array<QuantFacts, 19> kFacts = {{
    {"bfloat16", 2, 1, MathType::Bf16},
    {"float16", 2, 1, MathType::Bf16},
    {"half", 2, 1, MathType::Bf16},
    {"int8", 1, 2, MathType::Int8},
    {"int8_wo", 1, 1, MathType::Bf16},
    {"int4_wo", 0.5, 1, MathType::Bf16},
    {"fp8", 1, 2, MathType::Fp8},
    {"fp8_static", 1, 2, MathType::Fp8},
    {"fp8_block", 1, 2, MathType::Fp8},
    {"fp8_ootb", 1, 2, MathType::Fp8},
    {"sq", 1, 2, MathType::Int8},
    {"nvfp4", kNvfp4Bytes, 4, MathType::Fp4},
    {"nvfp4_wo", kNvfp4Bytes, 1, MathType::Bf16},
    {"w4a16_nvfp4", kNvfp4Bytes, 1, MathType::Bf16},
    {"w4afp8", 0.5, 2, MathType::Fp8},
    {"w4a16_mxfp4", 0.5, 1, MathType::Bf16},
    {"w4a16_mxfp4_cutlass", 0.5, 1, MathType::Bf16},
    {"w4a8_mxfp4_mxfp8", 0.5, 2, MathType::Fp8},
    {"w4a8_mxfp4_mxfp8_trtllm", 0.5, 2, MathType::Fp8},
}};
static_assert(kFacts.size() == static_cast<std::size_t>(Quant::W4a8Mxfp4Mxfp8Trtllm) + 1);

}  // namespace

const QuantFacts& facts(Quant quant) {
  return kFacts[static_cast<std::size_t>(quant)];
}

std::optional<Quant> quant_from(std::string_view name) {
  for (std::size_t i = 0; i < kFacts.size(); ++i) {
    if (kFacts[i].name == name) return static_cast<Quant>(i);
  }
  return std::nullopt;
}

Quant quant_of(catalog::Precision precision) {
  switch (precision) {
    case catalog::Precision::Bfloat16:
      return Quant::Bfloat16;
    case catalog::Precision::Fp8:
      return Quant::Fp8;
    case catalog::Precision::Fp8Static:
      return Quant::Fp8Static;
    case catalog::Precision::Fp8Block:
    case catalog::Precision::Mxfp8:
      return Quant::Fp8Block;
    case catalog::Precision::Int8:
      return Quant::Int8Wo;
    case catalog::Precision::Int4:
      return Quant::Int4Wo;
    case catalog::Precision::Int4Fp8:
      return Quant::W4afp8;
    case catalog::Precision::Nvfp4:
      return Quant::Nvfp4;
    case catalog::Precision::Nvfp4Weights:
      return Quant::Nvfp4Wo;
    case catalog::Precision::Mxfp4:
      return Quant::W4a16Mxfp4;
    case catalog::Precision::Mxfp4Mxfp8:
      return Quant::W4a8Mxfp4Mxfp8;
  }
  return Quant::Bfloat16;
}

std::string_view to_string(MathType math) {
  switch (math) {
    case MathType::Bf16:
      return "bf16";
    case MathType::Int8:
      return "int8";
    case MathType::Fp8:
      return "fp8";
    case MathType::Fp4:
      return "fp4";
  }
  return "";
}

std::optional<double> peak_flops(const catalog::SystemCard& system, MathType math) {
  const catalog::PeakRates& rates = system.flops_per_s;
  const auto rate = math == MathType::Bf16   ? rates.bf16
                    : math == MathType::Int8 ? rates.int8
                    : math == MathType::Fp8  ? rates.fp8
                                             : rates.fp4;
  if (!rate || *rate == 0) return std::nullopt;
  return static_cast<double>(*rate);
}

}  // namespace servecast::perf
