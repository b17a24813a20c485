// SPDX-License-Identifier: Apache-2.0
// How published offline peaks were measured: what TensorRT-LLM's performance overview says of its
// runs beside its tables (editions 1.0 and of 2026), and its rows do not.
#pragma once

#include <cstdint>

#include "perf/placement.hpp"

namespace servecast::fit {

// Requests of one run: the shorter they are, the more, so that filling and draining do not count.
std::uint32_t offline_requests(std::uint32_t input_tokens, std::uint32_t output_tokens);

// Mixtures ran with attention data parallelism over the ranks that are filed as tensor ranks, their
// experts spread over the same.
perf::Parallelism offline_widths(const perf::Parallelism& filed, bool has_experts);

// Where nothing says how many GPUs a worker has: the fewest tensor ranks, a power of two up to
// `gpus`, whose memory the weights fill to half or so; KV needs the rest. `placement` has one rank.
std::uint32_t likely_tensor(const perf::Placement& placement, std::uint32_t gpus);

}  // namespace servecast::fit
