// SPDX-License-Identifier: Apache-2.0
// The operators of a pass by model family (perfmodel.md 3).
//
//   auto lists = op_lists(facts, {.tp = 8, .moe_ep = 8}, modes, {.engine = EngineKind::Vllm});
//   auto time = estimator.time(lists->context, shape);
#pragma once

#include <cstdint>
#include <string>

#include "base/problem.hpp"
#include "perf/ops/op.hpp"

namespace servecast::perf {

enum class Family : std::uint8_t {
  Dense,          // Llama, Qwen2, Qwen3
  Experts,        // Mixtral, Qwen3-MoE, GPT-OSS, MiniMax-M2
  LatentExperts,  // DeepSeek-V3, Kimi-K2.5: latent attention and routed experts beside a shared one
  SparseExperts,  // DeepSeek-V3.2, GLM-5: as before, but attention chooses its tokens
};

// What an operator list needs to know of a model. Counts of the whole model, before sharding.
struct ModelFacts {
  Family family = Family::Dense;
  std::string architecture = {};
  std::int64_t layers = 0, hidden = 0, vocab = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t inter = 0;  // of a dense feed-forward
  bool qk_norm = false;
  std::int64_t window = 0, windowed_layers = 0;
  std::int64_t experts = 0, topk = 0, expert_inter = 0;
  std::int64_t shared_experts = 0, dense_layers = 0;  // dense_layers: before the first routed one
  // Latent and sparse attention.
  std::int64_t q_lora = 0, kv_lora = 0, rope = 0, nope = 0, v = 0;
  std::int64_t index_heads = 0, index_dim = 0, index_topk = 0;
  double own_indexer_share = 1.0;  // of layers that run their own indexer
};

struct Sharding {
  std::int64_t tp = 1, pp = 1, dp = 1, moe_tp = 1, moe_ep = 1;
};

struct OpModes {
  Quant gemm = Quant::Bfloat16, experts = Quant::Bfloat16;
  Quant attention = Quant::Bfloat16, kv = Quant::Bfloat16;
};

struct ListSettings {
  catalog::EngineKind engine = catalog::EngineKind::Vllm;
  std::int64_t draft_tokens = 0;  // of speculative decoding
  // The public estimators' lists, gaps included: no logits after a prefill of experts, leading
  // dense layers priced as routed ones.
  bool parity = false;
};

struct OpLists {
  OpList context, generation;
};

// Problems: "placement.invalid_sharding" where counts do not divide.
Result<OpLists> op_lists(const ModelFacts& facts, const Sharding& sharding, const OpModes& modes,
                         const ListSettings& settings);

}  // namespace servecast::perf
