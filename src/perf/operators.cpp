// SPDX-License-Identifier: Apache-2.0
#include "perf/operators.hpp"

#include "perf/precision.hpp"

namespace servecast::perf {
double heads_of_rank(std::uint32_t heads, std::uint32_t tensor) {
  return static_cast<double>((heads + tensor - 1) / tensor);
}

Work matrix_work(const Matrix& matrix) {
  const double size = bytes_per_element(matrix.precision);
  const auto out = static_cast<double>(matrix.out);
  const auto in = static_cast<double>(matrix.in);
  return {.bytes = size * out * in,
          .bytes_per_token = size * (out + in),
          .flops_per_token = 2.0 * out * in};
}

Work elementwise_work(double elements_in, double elements_out) {
  return {.bytes_per_token = 2.0 * (elements_in + elements_out)};
}

AttentionWork attention_work(const catalog::GroupedAttention& attention, std::uint32_t tensor,
                             double kv_element_bytes) {
  const double query = heads_of_rank(attention.heads, tensor) * attention.head_dim;
  const double key = heads_of_rank(attention.kv_heads, tensor) * attention.head_dim;
  return {.prefill_flops_per_pair = 2.0 * query,
          .prefill_bytes_per_new = 4.0 * query,
          .prefill_bytes_per_context = 2.0 * key * kv_element_bytes,
          .decode_flops_per_context = 4.0 * query,
          .decode_bytes_per_context = 2.0 * key * kv_element_bytes,
          .decode_bytes_per_request = 4.0 * query};
}

AttentionWork attention_work(const catalog::LatentAttention& attention, std::uint32_t tensor,
                             double kv_element_bytes) {
  const double heads = heads_of_rank(attention.heads, tensor);
  // Prefill expands K and V (nope + rope, value); decode works in the latent space (kv_rank + rope
  // for the scores, kv_rank for the output).
  const double expanded =
      attention.head_dim_nope + attention.head_dim_rope + attention.head_dim_value;
  const double latent = 2.0 * attention.kv_rank + attention.head_dim_rope;
  const double entry = double(attention.kv_rank) + attention.head_dim_rope;
  AttentionWork work{.prefill_flops_per_pair = heads * expanded,
                     .prefill_bytes_per_new = 2.0 * heads * expanded,
                     .prefill_bytes_per_context = heads * expanded * kv_element_bytes,
                     .decode_flops_per_context = 2.0 * heads * latent,
                     .decode_bytes_per_context = entry * kv_element_bytes,
                     .decode_bytes_per_request = 2.0 * heads * latent};
  if (!attention.index) return work;
  // A sparse layer prefills in the latent space too (4.7).
  work.prefill_flops_per_pair = heads * latent;
  work.prefill_bytes_per_context = entry * kv_element_bytes;
  const double width = attention.index->head_dim;
  work.index_flops_per_context = 2.0 * attention.index->heads * width;
  work.index_bytes_per_context = width + 4.0 * ((attention.index->head_dim + 127) / 128);
  return work;
}

ExpertWork expert_work(const Placement& placement, const ExpertShard& shard) {
  const catalog::Experts& experts = placement.model.experts.value();
  const double size = bytes_per_element(placement.precisions.experts);
  const double hidden = placement.model.hidden;
  const auto width = static_cast<double>(shard.width);
  const auto held = static_cast<double>(shard.experts);
  // Experts of this rank that one token visits, if tokens choose evenly.
  const double visits = double(experts.per_token) / placement.parallelism.moe_expert;
  return {.all = {.bytes = held * 3.0 * hidden * width * size,
                  .bytes_per_token = size * visits * (2.0 * hidden + 3.0 * width),
                  .flops_per_token = 6.0 * visits * hidden * width},
          .share_missed = 1.0 - double(experts.per_token) / experts.count};
}

double share_touched(double share_missed, std::uint64_t tokens) {
  // Powers by squaring: the same on every machine, which a library's pow is not.
  double missed = 1.0;
  double square = share_missed;
  for (std::uint64_t left = tokens; left > 0 && missed > 0.0; left >>= 1) {
    if ((left & 1) != 0) missed *= square;
    square *= square;
  }
  return 1.0 - missed;
}

double link_bytes_per_s(const catalog::SystemCard& system, std::uint64_t gpus) {
  if (gpus <= system.gpus_per_node) return static_cast<double>(system.intra_node_bytes_per_s);
  if (!system.rack || gpus <= system.rack->gpus)
    return static_cast<double>(system.inter_node_bytes_per_s);
  return static_cast<double>(system.rack->inter_rack_bytes_per_s);
}

double all_reduce_bytes(double bytes, std::uint64_t gpus) {
  return 2.0 * gather_bytes(bytes, gpus);
}

double gather_bytes(double bytes, std::uint64_t gpus) {
  const auto n = static_cast<double>(gpus);
  return bytes * (n - 1.0) / n;
}

}  // namespace servecast::perf
