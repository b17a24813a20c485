// SPDX-License-Identifier: Apache-2.0
// Closed lists of names that cards and configurations use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servecast::catalog {

// How weights are stored and what they are multiplied in (perfmodel.md 2.2). "Weights only": the
// activations stay bfloat16, and so does the rate.
enum class Precision : std::uint8_t {
  Bfloat16,      // 2 bytes
  Fp8,           // 1 byte; scales of activations are found for each token
  Fp8Static,     // 1 byte; one scale per tensor, known beforehand
  Fp8Block,      // 1 byte, one scale per block of 128 x 128
  Mxfp8,         // 1 byte and an 8-bit scale for each 32: 33/32 byte
  Int8,          // 1 byte, weights only
  Int4,          // 4 bits and a 16-bit scale for each 32: 9/16 byte, weights only
  Int4Fp8,       // 4 bits and a 16-bit scale for each 128: 33/64 byte; multiplied in fp8
  Nvfp4,         // 4 bits and an 8-bit scale for each 16: 9/16 byte
  Nvfp4Weights,  // as Nvfp4, weights only
  Mxfp4,         // 4 bits and an 8-bit scale for each 32: 17/32 byte, weights only
  Mxfp4Mxfp8,    // as Mxfp4; multiplied in fp8
};
std::string_view to_string(Precision precision);                 // "fp8_block"
std::optional<Precision> precision_from(std::string_view name);  // nothing for any other name
const std::vector<std::string>& precision_names();               // in the order of the enumerators

enum class EngineKind : std::uint8_t { Vllm, Sglang, TensorRtLlm };
std::string_view to_string(EngineKind engine);  // "vllm", "sglang", "trtllm"
std::optional<EngineKind> engine_from(std::string_view name);

// Which list of operators a model is (perfmodel.md 2.1).
enum class Family : std::uint8_t {
  Gpt,
  Llama,
  Moe,
  DeepSeek,
  DeepSeekV32,
  DeepSeekV4,
  KimiK25,
  KimiK3,
  NemotronNas,
  NemotronH,
  MiniMaxM3,
  Step3p7,
  HybridMoe,
  Qwen35,
  Gemma4,
  Qwen3Vl,
  Qwen3VlMoe,
};
std::string_view to_string(Family family);  // "deepseek_v32"

// The family of an architecture, such as "LlamaForCausalLM"; nothing when it has no mapping.
std::optional<Family> family_of(std::string_view architecture);
const std::vector<std::string>& known_architectures();  // all that family_of maps

}  // namespace servecast::catalog
