// SPDX-License-Identifier: Apache-2.0
// How much of the hardware's peak real kernels reach, and what a pass costs on the host. Every
// number of this room that was measured rather than derived stands in coefficients.cpp, with its
// source.
#pragma once

#include "perf/placement.hpp"

namespace servecast::perf {

// Shares of a peak, in (0, 1].
struct Efficiency {
  double expert_memory = 1.0;  // reading the weights of routed experts
  double expert_flops = 1.0;
  double bf16_flops = 1.0;     // bfloat16 matrices
  double kv_memory = 1.0;      // decode reading the KV cache
  double prefill_flops = 1.0;  // of the bfloat16 peak
  double link = 1.0;           // large messages of a collective
};

// The same of a matrix by the precision of its weights: reading them, and multiplying.
struct MatrixShare {
  double memory = 1.0;
  double flops = 1.0;
};

// Costs that do not depend on the hardware's rates, in ms.
struct HostCost {
  double per_pass = 0.0;          // host, and kernel launches of all layers
  double per_sequence = 0.0;      // sampling and bookkeeping, per request in the pass
  double per_prefill_pass = 0.0;  // launches outside CUDA graphs when prompts are in the pass
  double per_collective = 0.0;    // of a small collective between two GPUs
};

Efficiency efficiency_of(const Placement& placement);
MatrixShare matrix_share(const catalog::SystemCard& system, catalog::Precision precision);
HostCost host_cost_of(const Placement& placement);

// Latency of a small collective over `gpus` GPUs relative to two: a quarter more for each doubling.
double collective_growth(std::uint64_t gpus);

}  // namespace servecast::perf
