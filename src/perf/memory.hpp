// SPDX-License-Identifier: Apache-2.0
// How much memory a rank needs, and how many KV blocks the rest holds (perfmodel.md 9).
//
//   auto capacity = perf::kv_capacity(placement, {.max_batched_tokens = 8192, .block_tokens = 64});
//   if (!capacity) return print(capacity.error().sentence);  // "... does not fit ..."
//   rank.blocks = capacity->blocks;
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "perf/kv_bytes.hpp"
#include "perf/placement.hpp"

namespace servecast::perf {

// Bytes of one GPU that hold no KV cache.
struct MemoryParts {
  std::uint64_t weights = 0;
  std::uint64_t activations = 0;
  std::uint64_t collectives = 0;  // held by communication libraries
  std::uint64_t others = 0;       // driver, runtime, fragmentation
  std::uint64_t cuda_graphs = 0;
  std::uint64_t sum() const;
};

struct MemorySettings {
  std::uint32_t max_batched_tokens = 8192;  // token budget of a pass; sizes the activations
  std::uint32_t block_tokens = 64;          // >= 1
  // Longest request; sizes what vLLM counts where layers have windows. Nothing: the model's limit.
  std::optional<std::uint32_t> max_model_len = std::nullopt;
  // Share of the GPU that the engine may fill, in (0, 1]. Nothing: default_memory_fraction.
  std::optional<double> memory_fraction = std::nullopt;
  std::uint64_t cuda_graph_reserved_bytes = 0;
  // Of one token on one GPU. Nothing: as the model and the precision say.
  std::optional<std::uint64_t> kv_bytes_per_token = std::nullopt;
  double tolerance = 0.0;  // share of the memory that a search keeps back, in [0, 1)
};

struct KvCapacity {
  std::uint64_t gpu_bytes = 0;
  double memory_fraction = 0.0;  // the one used
  MemoryParts parts;
  std::uint64_t kv_bytes = 0;            // what is left for the cache
  std::uint64_t kv_bytes_per_token = 0;  // kv_token_bytes, or what the settings say
  std::uint64_t tokens = 0;              // that kv_bytes hold, as the engine counts them
  std::uint64_t blocks = 0;              // whole blocks of these tokens
};

// A legitimate answer, not an error: no latency exists for such a deployment.
struct DoesNotFit {
  std::uint64_t needed_bytes = 0;  // parts that the engine counts, and one KV block
  std::uint64_t available_bytes = 0;
  std::string sentence;
};

// requires for all: check(placement) is empty.

// Weights of the fullest pipeline stage.
std::uint64_t weight_bytes(const Placement& placement);
// Working memory of a pass of `tokens` tokens.
std::uint64_t activation_bytes(const Placement& placement, std::uint64_t tokens);
MemoryParts memory_parts(const Placement& placement, const MemorySettings& settings);

// The "GPU KV cache size" in tokens of vLLM's log: requests of the longest length that fit at once,
// times that length. Layers with a window and layers without share one pool of blocks, in groups of
// equally many layers; a request holds a block of each group, of a windowed one only those that its
// window and one pass reach (realdata.md 2.5). Where layers keep unequal bytes: as
// kv_sequence_tokens, in whole blocks.
std::uint64_t vllm_kv_tokens(const Placement& placement, std::uint64_t bytes,
                             const MemorySettings& settings);

// product.md 9.7: vLLM and TensorRT-LLM 0.9, SGLang 0.88.
double default_memory_fraction(catalog::EngineKind engine);

// What the engine itself takes when nobody sets a fraction (perfmodel.md 9.3). vLLM: 0.9, from 0.22
// on 0.92. SGLang: what it leaves of the GPU after reserves for a prefill chunk, CUDA graphs of its
// largest batch and its ranks. `version` is "0.19.1" or the like; empty: the newest.
double engine_memory_fraction(const Placement& placement, std::string_view version = {});

// Bytes for the KV cache; negative when the parts alone pass what the engine may fill. `scale`
// multiplies the memory that the fraction is taken of (1 in plain use). decisions.md 30a:
//   vllm    capacity * fraction * scale - parts
//   sglang  capacity * fraction * scale - (parts without activations)
//   trtllm  (capacity - parts) * fraction * scale
double kv_budget(catalog::EngineKind engine, std::uint64_t capacity, const MemoryParts& parts,
                 double fraction, double scale = 1.0);

// requires: settings are in their ranges.
tl::expected<KvCapacity, DoesNotFit> kv_capacity(const Placement& placement,
                                                 const MemorySettings& settings);

}  // namespace servecast::perf
