// SPDX-License-Identifier: Apache-2.0
// Shared by the files that implement sol(). Not for other files.
#pragma once

#include <cstdint>

#include "perf/ops/sol.hpp"

namespace servecast::perf::detail {

inline double real(std::int64_t x) {
  return static_cast<double>(x);
}

inline double mem_ms(const catalog::SystemCard& system, double bytes) {
  return bytes / static_cast<double>(system.memory_bytes_per_s) * 1000.0;
}

OpResult<double> math_ms(const catalog::SystemCard& system, MathType math, double flops);
OpResult<Sol> bound(const catalog::SystemCard& system, MathType math, double flops, double bytes);

// Attention in generation multiplies in fp8 where the cache is fp8 and the GPU is of sm 89 or
// later.
MathType generation_math(const catalog::SystemCard& system, Quant kv);

OpResult<Sol> sol(const Elementwise& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const Embedding& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const Gemm& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const Experts& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const Overlap& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const Fallback& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const ContextAttention& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const GenerationAttention& op, const OpShape& q,
                  const catalog::SystemCard& system);
OpResult<Sol> sol(const EncoderAttention& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const MlaContext& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const MlaGeneration& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const MlaBmm& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const DsaModule& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const Mamba2Kernel& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const GdnKernel& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const KdaKernel& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const CustomAllReduce& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const Nccl& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const PeerToPeer& op, const OpShape& q, const catalog::SystemCard& system);
OpResult<Sol> sol(const Dispatch& op, const OpShape& q, const catalog::SystemCard& system);

}  // namespace servecast::perf::detail
