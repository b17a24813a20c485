// SPDX-License-Identifier: Apache-2.0
// What requests keep on a GPU: KV cache and states, by kind of layer (perfmodel.md 9.2).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "perf/placement.hpp"

namespace servecast::perf {

// What one layer keeps of a sequence of s tokens on one rank: bytes * floor(min(s, window) / ratio)
// + bytes_per_request.
struct KvPart {
  std::uint64_t bytes = 0;   // of one entry
  std::uint64_t window = 0;  // 0: all tokens
  std::uint64_t ratio = 1;   // tokens of one entry
  std::uint64_t bytes_per_request = 0;
};

// Parts of one layer. requires: kv_cache is Bfloat16 or Fp8.
std::vector<KvPart> kv_parts(const catalog::Mixer& mixer, const Placement& placement);

// requires for all: check(placement) is empty. All count the pipeline stage that keeps most.

// One sequence of `tokens` tokens on one GPU. Windowed layers keep their window only.
std::uint64_t kv_sequence_bytes(const Placement& placement, std::uint64_t tokens);
// What a token adds while no window is full, without states: the size that moves with it.
std::uint64_t kv_token_bytes(const Placement& placement);
// State of linear layers, that a request keeps whatever its length; 0 for most models.
std::uint64_t state_request_bytes(const Placement& placement);
// The longest sequence whose kv_sequence_bytes is at most `bytes`. Where a sequence stops growing
// because every layer has a window: as many tokens as if none had.
std::uint64_t kv_sequence_tokens(const Placement& placement, std::uint64_t bytes);

// Layers of that stage with and without a window, where all keep the same bytes a token: vLLM puts
// them into one pool of blocks.
struct KvLayers {
  std::uint64_t global = 0;
  std::uint64_t windowed = 0;
  std::uint64_t window = 0;       // tokens
  std::uint64_t layer_bytes = 0;  // a token and layer
};
// Nothing where layers differ in more than one window.
std::optional<KvLayers> kv_layers(const Placement& placement);

}  // namespace servecast::perf
