// SPDX-License-Identifier: Apache-2.0
// Quantisation modes by the names that measured tables use (perfmodel.md 2.2).
//
//   QuantFacts f = facts(Quant::Nvfp4);   // 9/16 byte a number, multiplied at the fp4 rate
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "catalog/kinds.hpp"
#include "catalog/system_card.hpp"

namespace servecast::perf {

enum class Quant : std::uint8_t {
  Bfloat16,
  Float16,
  Half,
  Int8,
  Int8Wo,
  Int4Wo,
  Fp8,
  Fp8Static,
  Fp8Block,
  Fp8Ootb,
  Sq,
  Nvfp4,
  Nvfp4Wo,
  W4a16Nvfp4,
  W4afp8,
  W4a16Mxfp4,
  W4a16Mxfp4Cutlass,
  W4a8Mxfp4Mxfp8,
  W4a8Mxfp4Mxfp8Trtllm,
};

// Operand type whose tensor-core rate bounds a mode.
enum class MathType : std::uint8_t { Bf16, Int8, Fp8, Fp4 };

struct QuantFacts {
  std::string_view name;
  double bytes = 0.0;  // per number
  int compute = 1;     // rate as a multiple of bfloat16's, for efficiency levels
  MathType math = MathType::Bf16;
};

const QuantFacts& facts(Quant quant);
std::optional<Quant> quant_from(std::string_view name);  // nothing for any other name
inline double bytes_of(Quant quant) {
  return facts(quant).bytes;
}
// The mode in which a matrix of a model card is stored.
Quant quant_of(catalog::Precision precision);

std::string_view to_string(MathType math);
// FLOP/s; nothing where the system has no such rate. Never derived from another one.
std::optional<double> peak_flops(const catalog::SystemCard& system, MathType math);

}  // namespace servecast::perf
