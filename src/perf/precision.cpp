// SPDX-License-Identifier: Apache-2.0
#include "perf/precision.hpp"

#include "base/check.hpp"

namespace servecast::perf {
namespace {

using catalog::Precision;

struct Size {
  std::uint64_t bytes;
  std::uint64_t elements;
};

Size size_of(Precision precision) {
  switch (precision) {
    case Precision::Bfloat16:
      return {2, 1};
    case Precision::Fp8:
    case Precision::Fp8Static:
    case Precision::Fp8Block:
    case Precision::Int8:
      return {1, 1};
    case Precision::Mxfp8:
      return {33, 32};
    case Precision::Int4:
    case Precision::Nvfp4:
    case Precision::Nvfp4Weights:
      return {9, 16};
    case Precision::Int4Fp8:
      return {33, 64};
    case Precision::Mxfp4:
    case Precision::Mxfp4Mxfp8:
      return {17, 32};
  }
  check_failed("precision is one of its enumerators", __FILE__, __LINE__);
}

}  // namespace

std::uint64_t bytes_of(Precision precision, std::uint64_t elements) {
  const Size size = size_of(precision);
  return (elements * size.bytes + size.elements - 1) / size.elements;
}

double bytes_per_element(Precision precision) {
  const Size size = size_of(precision);
  return static_cast<double>(size.bytes) / static_cast<double>(size.elements);
}

std::optional<std::uint64_t> peak_flops(const catalog::SystemCard& system, Precision precision) {
  switch (precision) {
    case Precision::Bfloat16:
    case Precision::Int8:
    case Precision::Int4:
    case Precision::Nvfp4Weights:
    case Precision::Mxfp4:
      return system.flops_per_s.bf16;
    case Precision::Fp8:
    case Precision::Fp8Static:
    case Precision::Fp8Block:
    case Precision::Mxfp8:
    case Precision::Int4Fp8:
      return system.flops_per_s.fp8;
    case Precision::Mxfp4Mxfp8:  // before compute capability 10.0 engines keep bfloat16 activations
      return system.sm.value_or(100) < 100 ? system.flops_per_s.bf16 : system.flops_per_s.fp8;
    case Precision::Nvfp4:
      return system.flops_per_s.fp4;
  }
  check_failed("precision is one of its enumerators", __FILE__, __LINE__);
}

std::optional<std::uint64_t> peak_flops_linear(const catalog::SystemCard& system,
                                               Precision precision) {
  const bool weights_only = precision == Precision::Nvfp4 && system.sm.value_or(0) < 100;
  return peak_flops(system, weights_only ? Precision::Bfloat16 : precision);
}

}  // namespace servecast::perf
