// SPDX-License-Identifier: Apache-2.0
// The operators of a forward pass as small structs with explicit shapes (perfmodel.md 4). What is
// fixed by the model and its sharding stands in the operator; what changes from pass to pass stands
// in OpShape.
//
//   OpList list = {{.name = "qkv", .op = Gemm{.n = 768, .k = 4096}, .scale = 32}};
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "catalog/kinds.hpp"
#include "perf/ops/quant.hpp"

namespace servecast::perf {

// What one rank computes in one pass.
struct OpShape {
  std::int64_t tokens = 0;  // x: tokens that enter token-parallel operators
  std::int64_t batch = 0;   // sequences
  // Context: new tokens of each sequence; generation: tokens that the query sees, itself included.
  // Not whole for a batch that is described by sums.
  double length = 0.0;
  double prefix = 0.0;  // context: tokens of each sequence that are cached already
};

enum class Phase : std::uint8_t { Context, Generation, Verify };

// Reads `in` and writes `out` two-byte numbers a token.
struct Elementwise {
  std::int64_t in = 0, out = 0;
  std::int64_t token_divisor = 1, sequence_split = 1;
};

struct Embedding {
  std::int64_t width = 0;
};

// [m, k] x [k, n]; m is the number of tokens.
struct Gemm {
  std::int64_t n = 0, k = 0;
  Quant quant = Quant::Bfloat16;
  bool input_is_quantised = false;  // matters for fp8_static only
  std::int64_t token_divisor = 1, sequence_split = 1;
};

// Heads of one rank. `window` 0 attends to everything.
struct ContextAttention {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  Quant math = Quant::Bfloat16, kv = Quant::Bfloat16;
  bool qk_norm = false;
};

struct GenerationAttention {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  Quant kv = Quant::Bfloat16;
};

struct EncoderAttention {
  std::int64_t heads = 0, head_dim = 0;
  Quant math = Quant::Bfloat16;
};

// Latent attention of DeepSeek's dimensions: 192 wide queries, a latent of 512 and 64 rotary
// numbers. The module is the whole block from down projection to output projection, which tables
// hold as one.
struct MlaContext {
  std::int64_t heads = 0;
  Quant math = Quant::Bfloat16, kv = Quant::Bfloat16;
  bool module = false;
  Quant gemm = Quant::Bfloat16;  // of the module's matrices
};

struct MlaGeneration {
  std::int64_t heads = 0;
  Quant kv = Quant::Bfloat16;
  bool module = false;
  Quant gemm = Quant::Bfloat16;
};

// Absorbed weights, before (`pre`) or after attention.
struct MlaBmm {
  std::int64_t heads = 0;
  Quant quant = Quant::Bfloat16;
  bool pre = true;
};

// Sparse attention of DeepSeek-V3.2 and GLM-5: projections, indexer and attention as one block.
struct DsaModule {
  Phase phase = Phase::Context;
  std::string architecture = {};
  std::int64_t heads = 0, hidden = 0;
  std::int64_t q_lora = 0, kv_lora = 0, rope = 0, nope = 0, v = 0;
  std::int64_t index_heads = 0, index_dim = 0, topk = 0;
  Quant gemm = Quant::Bfloat16, math = Quant::Bfloat16, kv = Quant::Bfloat16;
  bool skip_indexer = false;  // reuses the choice of an earlier layer
};

// Kernels of linear attention. Heads as the table stores them.
struct Mamba2Kernel {
  enum class Part : std::uint8_t { Convolution, Scan };
  Part part = Part::Convolution;
  Phase phase = Phase::Context;
  std::int64_t heads = 0, head_dim = 0, groups = 0, state = 0, conv = 0;
};

struct GdnKernel {
  enum class Part : std::uint8_t { Convolution, Scan };
  Part part = Part::Convolution;
  Phase phase = Phase::Context;
  std::int64_t k_heads = 0, k_dim = 0, v_heads = 0, v_dim = 0, conv = 0;
};

struct KdaKernel {
  enum class Part : std::uint8_t { Convolution, Scan };
  Part part = Part::Convolution;
  Phase phase = Phase::Context;
  std::int64_t heads = 0, k_dim = 0, v_dim = 0, conv = 0;
  std::int64_t draft_tokens = 1;  // tokens of a sequence that a verify pass checks
};

// Routed experts of one rank.
struct Experts {
  std::int64_t hidden = 0, inter = 0, topk = 0, experts = 0, tp = 1, ep = 1;
  Quant quant = Quant::Bfloat16;
  std::string distribution = {};    // of tokens over experts, by the table's name
  bool gated = true;                // three matrices, not two
  std::int64_t attention_dp = 1;    // ranks whose tokens are gathered
  bool balanced_by_copies = false;  // EPLB in SGLang's prefill
};

// All-reduce of `width` two-byte numbers a token by the engine's own kernel.
struct CustomAllReduce {
  std::int64_t ranks = 1, width = 0;
};

enum class Collective : std::uint8_t { AllReduce, AllGather, ReduceScatter, AllToAll };

struct Nccl {
  Collective kind = Collective::AllReduce;
  std::int64_t ranks = 1, width = 0;
  Quant quant = Quant::Half;
};

struct PeerToPeer {
  std::int64_t width = 0;
};

// Moves tokens to the experts' ranks (`before`) or back; which collectives that takes depends on
// the engine.
struct Dispatch {
  catalog::EngineKind engine = catalog::EngineKind::Vllm;
  Phase phase = Phase::Context;
  bool before = true;
  std::int64_t width = 0;
  std::int64_t moe_tp = 1, moe_ep = 1, attention_dp = 1, attention_cp = 1;
  bool attention_reduced_apart = false;  // the list prices the attention's all-reduce itself
  Quant quant = Quant::Bfloat16;
};

struct OpStep;
using OpList = std::vector<OpStep>;

// Two groups on two streams: the longer one counts.
struct Overlap {
  OpList left, right;
};

// `primary` where a table holds it, else the finer operators.
struct Fallback {
  OpList primary, secondary;
};

using Op = std::variant<Elementwise, Embedding, Gemm, ContextAttention, GenerationAttention,
                        EncoderAttention, MlaContext, MlaGeneration, MlaBmm, DsaModule,
                        Mamba2Kernel, GdnKernel, KdaKernel, Experts, CustomAllReduce, Nccl,
                        PeerToPeer, Dispatch, Overlap, Fallback>;

// Which count of the pass an operator sees as its tokens.
enum class TokensFrom : std::uint8_t { Tokens, Sequences };

struct OpStep {
  std::string name;
  Op op;
  double scale = 1.0;  // times per pass
  TokensFrom tokens = TokensFrom::Tokens;
};

}  // namespace servecast::perf
