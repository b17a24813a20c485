// SPDX-License-Identifier: Apache-2.0
// Kernels of linear attention: bound by the bytes that they move (perfmodel.md 4.8).
#include <algorithm>
#include <cmath>

#include "perf/ops/sol_internal.hpp"

namespace servecast::perf::detail {
namespace {

constexpr double kScanChunk = 64.0;  // tokens between two states that a chunked scan writes

double tokens_of(Phase phase, const OpShape& q) {
  return phase == Phase::Generation ? real(q.batch) : real(q.batch) * q.length;
}

double convolution_bytes(double x, double channels, std::int64_t width) {
  return x * channels * real(width + 1) * 2.0 + x * channels * 2.0;
}

Sol of_bytes(const catalog::SystemCard& system, double bytes) {
  return {0.0, mem_ms(system, bytes)};
}

double kda_scan_bytes(const KdaKernel& op, const OpShape& q) {
  const double b = real(q.batch);
  const double x = tokens_of(op.phase, q);
  const double wide = real(op.heads * op.v_dim);
  const double state = real(op.heads * op.k_dim * op.v_dim) * 4.0;
  if (op.phase == Phase::Verify) {
    // One sequence is read for all its draft tokens, and a state is written for each of them.
    const double requests = std::max(1.0, std::nearbyint(b / real(op.draft_tokens)));
    return 8.0 * x * wide + state * requests + 2.0 * x * wide + state * x;
  }
  const double chunks = op.phase == Phase::Context ? std::floor(q.length / kScanChunk) : 0.0;
  const double states = state * b + chunks * state * b;
  return 8.0 * x * wide + states + 2.0 * x * wide + states;
}

}  // namespace

OpResult<Sol> sol(const Mamba2Kernel& op, const OpShape& q, const catalog::SystemCard& system) {
  const double x = tokens_of(op.phase, q);
  const double inner = real(op.heads * op.head_dim);
  const double channels = inner + 2.0 * real(op.groups * op.state);
  if (op.part == Mamba2Kernel::Part::Convolution)
    return of_bytes(system, convolution_bytes(x, channels, op.conv));
  return of_bytes(system, x * (channels + real(op.heads)) * 2.0 + x * inner * 2.0);
}

OpResult<Sol> sol(const GdnKernel& op, const OpShape& q, const catalog::SystemCard& system) {
  const double x = tokens_of(op.phase, q);
  const double b = real(q.batch);
  const double wide = real(op.v_heads * op.v_dim);
  const double channels = 2.0 * real(op.k_heads * op.k_dim) + wide;
  if (op.part == GdnKernel::Part::Convolution)
    return of_bytes(system, convolution_bytes(x, channels, op.conv));
  const double state = real(op.v_heads * op.k_dim * op.v_dim);
  const double chunks = op.phase == Phase::Context ? std::floor(q.length / kScanChunk) : 0.0;
  const double states = 4.0 * state * b + chunks * state * 2.0 * b;
  return of_bytes(system, x * channels * 2.0 + states + x * wide * 2.0 + states);
}

OpResult<Sol> sol(const KdaKernel& op, const OpShape& q, const catalog::SystemCard& system) {
  const double x = tokens_of(op.phase, q);
  const double wide = real(op.heads * op.v_dim);
  if (op.part == KdaKernel::Part::Convolution)  // of queries, keys and values
    return of_bytes(system, 3.0 * convolution_bytes(x, wide, op.conv));
  return of_bytes(system, kda_scan_bytes(op, q));
}

}  // namespace servecast::perf::detail
