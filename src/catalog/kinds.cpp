// SPDX-License-Identifier: Apache-2.0
#include "catalog/kinds.hpp"

#include "base/check.hpp"

namespace servecast::catalog {

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::Bfloat16:
      return "bfloat16";
    case Precision::Fp8:
      return "fp8";
    case Precision::Fp8Block:
      return "fp8_block";
    case Precision::Nvfp4:
      return "nvfp4";
    case Precision::Mxfp4:
      return "mxfp4";
  }
  check_failed("precision is one of its enumerators", __FILE__, __LINE__);
}

std::optional<Precision> precision_from(std::string_view name) {
  for (const Precision p : {Precision::Bfloat16, Precision::Fp8, Precision::Fp8Block,
                            Precision::Nvfp4, Precision::Mxfp4}) {
    if (name == to_string(p)) return p;
  }
  return std::nullopt;
}

std::string_view to_string(EngineKind engine) {
  switch (engine) {
    case EngineKind::Vllm:
      return "vllm";
    case EngineKind::Sglang:
      return "sglang";
    case EngineKind::TensorRtLlm:
      return "trtllm";
  }
  check_failed("engine is one of its enumerators", __FILE__, __LINE__);
}

std::optional<EngineKind> engine_from(std::string_view name) {
  for (const EngineKind e : {EngineKind::Vllm, EngineKind::Sglang, EngineKind::TensorRtLlm}) {
    if (name == to_string(e)) return e;
  }
  return std::nullopt;
}

}  // namespace servecast::catalog
