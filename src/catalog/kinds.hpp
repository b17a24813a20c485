// SPDX-License-Identifier: Apache-2.0
// Closed lists of names that cards and configurations use.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace servecast::catalog {

// How numbers are stored and multiplied.
enum class Precision : std::uint8_t {
  Bfloat16,  // 2 bytes
  Fp8,       // 1 byte, one scale per tensor or token
  Fp8Block,  // 1 byte, one scale per block of 128 x 128
  Nvfp4,     // 4 bits and an 8-bit scale for each 16: 9/16 byte
  Mxfp4,     // 4 bits and an 8-bit scale for each 32: 17/32 byte; multiplied in bfloat16
};
std::string_view to_string(Precision precision);                 // "fp8_block"
std::optional<Precision> precision_from(std::string_view name);  // nothing for any other name

enum class EngineKind : std::uint8_t { Vllm, Sglang, TensorRtLlm };
std::string_view to_string(EngineKind engine);  // "vllm", "sglang", "trtllm"
std::optional<EngineKind> engine_from(std::string_view name);

}  // namespace servecast::catalog
