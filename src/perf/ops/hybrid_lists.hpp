// SPDX-License-Identifier: Apache-2.0
// The operators of a pass of models whose layers differ in kind (perfmodel.md 3.7, 3.8, 3.10), and
// of those without a gate (3.1).
//
//   auto lists = hybrid_lists({.family = HybridFamily::Mamba, .mamba_layers = 54, ...},
//                             {.tp = 8}, modes, {.engine = EngineKind::Vllm});
#pragma once

#include <cstdint>
#include <string>

#include "perf/ops/op_lists.hpp"

namespace servecast::perf {

enum class HybridFamily : std::uint8_t {
  Gpt,          // full attention and a feed-forward without a gate
  Mamba,        // Nemotron-H: state-space, attention, dense and routed layers
  GatedDelta,   // Qwen3.5: gated-delta layers between full ones
  Interleaved,  // Llama 4, MiMo-V2: a window or not, experts or not
};

// Counts of the whole model, before sharding. Layers of a kind that a family lacks are 0.
struct HybridFacts {
  HybridFamily family = HybridFamily::Gpt;
  std::int64_t layers = 0, hidden = 0, vocab = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;  // value_dim 0: head_dim
  std::int64_t inter = 0;                                             // of a dense feed-forward
  bool qk_norm = false;
  // Mamba: attention_layers attend, dense_layers and expert_layers feed forward.
  std::int64_t mamba_layers = 0, attention_layers = 0, dense_layers = 0, expert_layers = 0;
  std::int64_t linear_layers = 0;  // GatedDelta; the others attend to everything
  // Interleaved: layers by what they attend to and how they feed forward.
  std::int64_t global_experts = 0, global_dense = 0, sliding_experts = 0, sliding_dense = 0;
  std::int64_t window = 0, sliding_kv_heads = 0, sliding_head_dim = 0;  // 0: as the global layers
  // Routed experts. A latent width 0 means that they work in the hidden one.
  std::int64_t experts = 0, topk = 0, expert_inter = 0, shared_inter = 0, latent = 0;
  bool gated_experts = true;
  // State-space layers.
  std::int64_t mamba_heads = 0, mamba_head_dim = 0, groups = 0, state = 0;
  // Gated-delta layers.
  std::int64_t linear_k_heads = 0, linear_k_dim = 0, linear_v_heads = 0, linear_v_dim = 0;
  std::int64_t conv = 4;
};

// Problems: "placement.invalid_sharding" as op_lists; also for heads of linear layers.
Result<OpLists> hybrid_lists(const HybridFacts& facts, const Sharding& sharding,
                             const OpModes& modes, const ListSettings& settings);

}  // namespace servecast::perf
