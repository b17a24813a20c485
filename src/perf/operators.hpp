// SPDX-License-Identifier: Apache-2.0
// The work of each operator of a pass: bytes that must move and operations that must run, whatever
// the kernel (perfmodel.md 4). How fast the hardware gets through it stands elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "catalog/model_card.hpp"
#include "catalog/system_card.hpp"
#include "perf/matrices.hpp"

namespace servecast::perf {

// Work on t tokens: bytes + bytes_per_token * t to move, flops_per_token * t to run.
struct Work {
  double bytes = 0.0;
  double bytes_per_token = 0.0;
  double flops_per_token = 0.0;
};

// Multiplication of t rows with a matrix (4.2). Activations move in the weights' precision.
Work matrix_work(const Matrix& matrix);

// Reading `elements_in` and writing `elements_out` numbers of 2 bytes per token (4.1).
Work elementwise_work(double elements_in, double elements_out);

// Heads of one of `tensor` ranks, rounded up.
double heads_of_rank(std::uint32_t heads, std::uint32_t tensor);

// Attention of one rank in one layer over `heads` query and `kv_heads` KV heads (4.3, 4.4, 4.6).
// Prefill counts the pairs of StepShape::prefill_attention, that is twice the causal pairs; decode
// counts pairs of one query with one KV entry.
struct AttentionWork {
  double prefill_flops_per_pair = 0.0;
  double prefill_bytes_per_new = 0.0;      // Q in and output out, per new token
  double prefill_bytes_per_context = 0.0;  // KV read, per token known when the pass ends
  double decode_flops_per_context = 0.0;   // per KV entry attended
  double decode_bytes_per_context = 0.0;
  double decode_bytes_per_request = 0.0;  // Q in and output out
  // A sparse layer's indexer, which reads every entry of the context.
  double index_flops_per_context = 0.0;
  double index_bytes_per_context = 0.0;
};
AttentionWork attention_work(const catalog::GroupedAttention& attention, std::uint32_t tensor,
                             double kv_element_bytes);
AttentionWork attention_work(const catalog::LatentAttention& attention, std::uint32_t tensor,
                             double kv_element_bytes);

// Different windows of the parts of one model: everything, a sliding window, and what an indexer
// picks of a compressed past. check(placement) refuses more.
constexpr std::size_t kWindowsMax = 3;

// A part of a layer's mixer. `window` is how many tokens a query reaches at most; 0: all.
struct MixerPart {
  std::uint64_t window = 0;
  AttentionWork work;
};
// The parts of any mixer: one, but for attention that sees a window and a compressed past. Linear
// mixers read and write a state for each request, whatever the context (4.8).
std::vector<MixerPart> mixer_parts(const catalog::Mixer& mixer, std::uint32_t tensor,
                                   double kv_element_bytes);

// Routed experts of one rank in one layer (4.9) for t tokens that enter the whole expert group.
struct ExpertWork {
  Work all;                   // as if every pass read all experts of the rank
  double share_missed = 0.0;  // share of the experts that one token does not visit
};
// requires: the model has experts.
ExpertWork expert_work(const Placement& placement, const ExpertShard& shard);

// Share of the experts that at least one of `tokens` tokens visits, if each chooses evenly.
double share_touched(double share_missed, std::uint64_t tokens);

// Rate of a link inside a group of `gpus` GPUs, bytes/s (4.10).
double link_bytes_per_s(const catalog::SystemCard& system, std::uint64_t gpus);

// Bytes that each GPU of a ring moves for messages of `bytes` (4.10); 0 for one GPU.
double all_reduce_bytes(double bytes, std::uint64_t gpus);
double gather_bytes(double bytes, std::uint64_t gpus);  // all-gather or reduce-scatter

}  // namespace servecast::perf
