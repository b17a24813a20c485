// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "perf/ops/sol_internal.hpp"

namespace servecast::perf {
namespace detail {
namespace {

// DeepSeek's latent attention: widths in numbers.
constexpr double kMlaQuery = 192, kMlaValue = 128, kMlaLatent = 512, kMlaRope = 64;

}  // namespace

OpResult<Sol> sol(const ContextAttention& op, const OpShape& q, const catalog::SystemCard& system) {
  const double b = real(q.batch);
  const double full = q.length + q.prefix;
  const double wide = real(op.heads * op.head_dim);
  const auto window = real(op.window);
  const bool windowed = op.window > 0 && full > window;
  const double flops = windowed ? 2.0 * b * q.length * window * wide * 2.0
                                : 2.0 * b * (full * full - q.prefix * q.prefix) * wide * 2.0 / 2.0;
  const double bytes = 2.0 * b * (2.0 * wide * q.length) +
                       bytes_of(op.kv) * b * 2.0 * real(op.kv_heads * op.head_dim) * full;
  return bound(system, facts(op.math).math, flops, bytes);
}

OpResult<Sol> sol(const GenerationAttention& op, const OpShape& q,
                  const catalog::SystemCard& system) {
  const double b = real(q.batch);
  double kv = q.length - 1.0;
  if (op.window > 0) kv = std::min(kv, real(op.window));
  const double wide = real(op.heads * op.head_dim);
  const double flops = 2.0 * b * wide * 2.0 * kv;
  const double bytes =
      b * (2.0 * wide * 2.0 + 2.0 * real(op.kv_heads * op.head_dim) * kv * bytes_of(op.kv));
  return bound(system, generation_math(system, op.kv), flops, bytes);
}

OpResult<Sol> sol(const EncoderAttention& op, const OpShape& q, const catalog::SystemCard& system) {
  const double b = real(q.batch);
  const double wide = real(op.heads * op.head_dim);
  return bound(system, facts(op.math).math, 2.0 * b * q.length * q.length * wide * 2.0,
               2.0 * b * (4.0 * wide * q.length));
}

OpResult<Sol> sol(const MlaContext& op, const OpShape& q, const catalog::SystemCard& system) {
  const double b = real(q.batch);
  const double n = real(op.heads);
  const double full = q.length + q.prefix;
  const double width = kMlaQuery + kMlaValue;
  return bound(system, facts(op.math).math, b * n * width * (full * full - q.prefix * q.prefix),
               b * n * (bytes_of(op.kv) * full * width + 2.0 * q.length * width));
}

OpResult<Sol> sol(const MlaGeneration& op, const OpShape& q, const catalog::SystemCard& system) {
  const double b = real(q.batch);
  const double n = real(op.heads);
  const double width = 2.0 * kMlaLatent + kMlaRope;
  auto attention =
      bound(system, generation_math(system, op.kv), 2.0 * b * n * width * q.length,
            b * (n * width * 2.0 + (q.length - 1.0) * (kMlaLatent + kMlaRope) * bytes_of(op.kv)));
  if (!attention || !op.module) return attention;
  const auto bmm = sol(MlaBmm{.heads = op.heads, .quant = op.gemm}, {.tokens = q.batch}, system);
  if (!bmm) return bmm;
  return Sol{attention->math_ms + 2.0 * bmm->math_ms, attention->mem_ms + 2.0 * bmm->mem_ms};
}

OpResult<Sol> sol(const MlaBmm& op, const OpShape& q, const catalog::SystemCard& system) {
  const double t = real(q.tokens);
  if (q.tokens == 0) return Sol{};
  const double n = real(op.heads);
  return bound(system, facts(op.quant).math, 2.0 * t * n * kMlaValue * kMlaLatent,
               n * (t * (kMlaValue + kMlaLatent) + kMlaValue * kMlaLatent) * bytes_of(op.quant));
}

namespace {

struct DsaWork {
  double gemm = 0, indexer = 0, attention = 0;             // operations
  double weights = 0, kv = 0, index_cache = 0, query = 0;  // bytes
};

DsaWork dsa_work(const DsaModule& op, const OpShape& q) {
  const bool context = op.phase == Phase::Context;
  const double b = real(q.batch);
  const double t = context ? b * q.length : b;
  const double full = context ? q.length + q.prefix : q.length;
  const double h = real(op.hidden), n = real(op.heads), q_lora = real(op.q_lora);
  const double latent = real(op.kv_lora + op.rope), qk = real(op.nope + op.rope);
  const double index = real(op.index_heads * op.index_dim), topk = real(op.topk);
  const double down = real(op.q_lora + op.kv_lora + op.rope + op.index_dim);
  DsaWork w;
  const double matrices =
      h * down + q_lora * n * qk + q_lora * index + h * real(op.index_heads) + n * real(op.v) * h;
  const double absorbed = n * real(op.nope * op.kv_lora) + n * real(op.kv_lora * op.v);
  w.gemm = 2.0 * t * (matrices + absorbed);
  w.weights = matrices * bytes_of(op.gemm);
  const bool indexes = !context || (full > topk && !op.skip_indexer);
  if (indexes) {
    w.indexer = 2.0 * t * index * full;
    const double scales = std::ceil(real(op.index_dim) / 128.0) * 4.0;
    w.index_cache = b * full * (real(op.index_dim) + scales);
  }
  const double pairs = context ? dsa_pairs(b, q.length, q.prefix, topk) : t * std::min(full, topk);
  w.attention = 2.0 * n * (latent + real(op.kv_lora)) * pairs;
  // Context kernels read the latent once for each head.
  w.kv = b * (context ? n : 1.0) * std::min(full, topk) * latent * bytes_of(op.kv);
  if (context) w.query = t * n * qk * bytes_of(op.math) * 2.0;
  return w;
}

}  // namespace

OpResult<Sol> sol(const DsaModule& op, const OpShape& q, const catalog::SystemCard& system) {
  const DsaWork w = dsa_work(op, q);
  const MathType attention = op.phase == Phase::Context ? facts(op.math).math : MathType::Bf16;
  const auto gemm = math_ms(system, facts(op.gemm).math, w.gemm);
  const auto pairs = math_ms(system, attention, w.attention);
  const auto indexer =
      w.indexer > 0.0 ? math_ms(system, MathType::Fp8, w.indexer) : OpResult<double>(0.0);
  for (const auto* part : {&gemm, &pairs, &indexer}) {
    if (!*part) return tl::unexpected(part->error());
  }
  return Sol{*gemm + *indexer + *pairs, mem_ms(system, w.weights + w.kv + w.index_cache + w.query)};
}

}  // namespace detail

double dsa_pairs(double batch, double s, double prefix, double topk) {
  const double full = s + prefix;
  if (full <= topk) return batch * (full * (full + 1.0) - prefix * (prefix + 1.0)) / 2.0;
  if (prefix >= topk) return batch * s * topk;
  return batch * (topk * (topk + 1.0) - prefix * (prefix + 1.0)) / 2.0 +
         batch * (full - topk) * topk;
}

}  // namespace servecast::perf
