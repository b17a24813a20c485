// SPDX-License-Identifier: Apache-2.0
#include "perf/ops/sol.hpp"

#include <cmath>

#include "perf/ops/sol_internal.hpp"

namespace servecast::perf {
namespace detail {

OpResult<double> math_ms(const catalog::SystemCard& system, MathType math, double flops) {
  const auto rate = peak_flops(system, math);
  if (!rate)
    return tl::unexpected(Miss{Miss::Kind::MissingSystemFlops,
                               "system " + system.name + " has no " + std::string(to_string(math)) +
                                   " tensor-core rate; it cannot run this precision"});
  return flops / *rate * 1000.0;
}

OpResult<Sol> bound(const catalog::SystemCard& system, MathType math, double flops, double bytes) {
  return math_ms(system, math, flops).map([&](double ms) {
    return Sol{ms, mem_ms(system, bytes)};
  });
}

MathType generation_math(const catalog::SystemCard& system, Quant kv) {
  const bool fp8 = kv == Quant::Fp8 && system.sm.value_or(0) >= 89;
  return fp8 ? MathType::Fp8 : MathType::Bf16;
}

OpResult<Sol> sol(const Elementwise& op, const OpShape& q, const catalog::SystemCard& system) {
  const auto x = real(split_tokens(q.tokens, op.token_divisor, op.sequence_split));
  return Sol{0.0, mem_ms(system, x * real(op.in + op.out) * 2.0)};
}

OpResult<Sol> sol(const Embedding& op, const OpShape& q, const catalog::SystemCard& system) {
  return Sol{0.0, mem_ms(system, real(q.tokens) * real(op.width) * 2.0)};
}

OpResult<Sol> sol(const Gemm& op, const OpShape& q, const catalog::SystemCard& system) {
  const auto m = real(split_tokens(q.tokens, op.token_divisor, op.sequence_split));
  if (m == 0.0) return Sol{};
  const double n = real(op.n);
  const double k = real(op.k);
  return bound(system, facts(op.quant).math, 2.0 * m * n * k,
               bytes_of(op.quant) * (m * n + m * k + n * k));
}

// Whole-number division as the tables' authors wrote it, so that bounds agree to the last digit.
OpResult<Sol> sol(const Experts& op, const OpShape& q, const catalog::SystemCard& system) {
  const std::int64_t routed = q.tokens * op.attention_dp * op.topk;
  const std::int64_t matrices = op.gated ? 3 : 2;
  const std::int64_t flops = routed * op.hidden * op.inter * matrices * 2 / op.ep / op.tp;
  const std::int64_t local = routed / op.ep;
  const std::int64_t numbers =
      local * op.hidden * 2 + local * op.inter * matrices / op.tp +
      op.hidden * op.inter * matrices / op.tp * std::min(op.experts / op.ep, local);
  return bound(system, facts(op.quant).math, real(flops), bytes_of(op.quant) * real(numbers));
}

namespace {

OpResult<Sol> sum(const OpList& list, const OpShape& q, const catalog::SystemCard& system) {
  Sol total;
  for (const OpStep& step : list) {
    OpShape shape = q;
    if (step.tokens == TokensFrom::Sequences) shape.tokens = q.batch;
    const auto one = perf::sol(step.op, shape, system);
    if (!one) return one;
    total.math_ms += step.scale * one->math_ms;
    total.mem_ms += step.scale * one->mem_ms;
  }
  return total;
}

}  // namespace

OpResult<Sol> sol(const Overlap& op, const OpShape& q, const catalog::SystemCard& system) {
  const auto left = sum(op.left, q, system);
  const auto right = sum(op.right, q, system);
  if (!left) return left;
  if (!right) return right;
  return left->ms() >= right->ms() ? left : right;
}

OpResult<Sol> sol(const Fallback& op, const OpShape& q, const catalog::SystemCard& system) {
  return sum(op.primary, q, system);
}

}  // namespace detail

std::int64_t split_tokens(std::int64_t tokens, std::int64_t divisor, std::int64_t split) {
  return (tokens / divisor + split - 1) / split;
}

OpResult<Sol> sol(const Op& op, const OpShape& shape, const catalog::SystemCard& system) {
  return std::visit([&](const auto& one) { return detail::sol(one, shape, system); }, op);
}

}  // namespace servecast::perf
