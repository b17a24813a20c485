// SPDX-License-Identifier: Apache-2.0
#include "perf/operators.hpp"

#include <algorithm>
#include <variant>

#include "base/check.hpp"
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
  const double width = double(attention.head_dim) + attention.head_dim_value;
  const double query = heads_of_rank(attention.heads, tensor) * width;
  const double key = heads_of_rank(attention.kv_heads, tensor) * width;
  return {.prefill_flops_per_pair = query,
          .prefill_bytes_per_new = 2.0 * query,
          .prefill_bytes_per_context = key * kv_element_bytes,
          .decode_flops_per_context = 2.0 * query,
          .decode_bytes_per_context = key * kv_element_bytes,
          .decode_bytes_per_request = 2.0 * query};
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
  if (!attention.index->own) return work;
  const double width = attention.index->head_dim;
  work.index_flops_per_context = 2.0 * attention.index->heads * width;
  work.index_bytes_per_context = width + 4.0 * ((attention.index->head_dim + 127) / 128);
  return work;
}

namespace {

// A kernel over a short window of channels: reads the window and writes, for each token.
double conv_bytes(double channels, std::uint32_t conv_width) {
  return channels * (conv_width + 1.0) * 2.0 + channels * 2.0;
}

constexpr double kChunkTokens = 64.0;  // a scan keeps one state for each chunk of a prompt

// Work of a linear mixer: per token, and per request that decodes. Bytes bound it.
AttentionWork state_work(double bytes_per_token, double state_bytes, double chunk_state_bytes) {
  return {.prefill_bytes_per_new = bytes_per_token + 2.0 * chunk_state_bytes / kChunkTokens,
          .decode_bytes_per_request = bytes_per_token + 2.0 * state_bytes};
}

struct MixerParts {
  std::uint32_t tensor;
  double kv_element_bytes;

  using Parts = std::vector<MixerPart>;

  Parts operator()(const catalog::NoMixer&) const { return {}; }

  Parts operator()(const catalog::GroupedAttention& a) const {
    return {{a.window, attention_work(a, tensor, kv_element_bytes)}};
  }

  Parts operator()(const catalog::LatentAttention& a) const {
    return {{a.index ? a.index->tokens : 0u, attention_work(a, tensor, kv_element_bytes)}};
  }

  Parts operator()(const catalog::GatedDelta& a) const {
    const double keys = heads_of_rank(a.key_heads, tensor) * a.key_dim;
    const double values = heads_of_rank(a.value_heads, tensor) * a.value_dim;
    const double channels = 2.0 * keys + values;
    const double state = values * a.key_dim;
    return {{0, state_work(conv_bytes(channels, a.conv_width) + 2.0 * (channels + values),
                           4.0 * state, 2.0 * state)}};
  }

  Parts operator()(const catalog::KimiDelta& a) const {
    const double width = heads_of_rank(a.heads, tensor) * a.head_dim;
    const double state = 4.0 * width * a.head_dim;
    return {{0, state_work(3.0 * conv_bytes(width, a.conv_width) + 10.0 * width, state, state)}};
  }

  Parts operator()(const catalog::Mamba2& a) const {
    const double heads = heads_of_rank(a.heads, tensor);
    const double inner = heads * a.head_dim;
    const double shared = 2.0 * std::max(1.0, double(a.groups) / tensor) * a.state;
    const double state = 4.0 * inner * a.state;
    return {{0, state_work(
                    conv_bytes(inner + shared, a.conv_width) + 2.0 * (2.0 * inner + shared + heads),
                    state, 0.0)}};
  }

  Parts operator()(const catalog::CompressedAttention& a) const {
    const double query = heads_of_rank(a.heads, tensor) * a.head_dim;
    const double entry = a.head_dim * kv_element_bytes;  // K is V
    Parts parts{{a.window,
                 {.prefill_flops_per_pair = 2.0 * query,
                  .prefill_bytes_per_new = 4.0 * query,
                  .prefill_bytes_per_context = entry,
                  .decode_flops_per_context = 4.0 * query,
                  .decode_bytes_per_context = entry,
                  .decode_bytes_per_request = 4.0 * query}}};
    if (a.ratio == 0) return parts;
    const double share = 1.0 / a.ratio;  // compressed entries per token
    AttentionWork past{.prefill_flops_per_pair = 2.0 * query * share,
                       .prefill_bytes_per_context = entry * share,
                       .decode_flops_per_context = 4.0 * query * share,
                       .decode_bytes_per_context = entry * share};
    if (a.index) {
      past.index_flops_per_context = 2.0 * a.index->heads * a.index->head_dim * share;
      past.index_bytes_per_context = 0.5 * a.index->head_dim * share;  // 4-bit keys
    }
    parts.push_back({a.index ? std::uint64_t{a.index->tokens} * a.ratio : 0, past});
    return parts;
  }

  Parts operator()(const catalog::BlockSparseAttention& a) const {
    AttentionWork work = attention_work(a.grouped, tensor, kv_element_bytes);
    work.index_flops_per_context = 2.0 * a.index_heads * a.index_dim;
    work.index_bytes_per_context = a.index_dim * kv_element_bytes;
    return {{std::uint64_t{a.blocks} * a.block_tokens, work}};
  }
};

}  // namespace

std::vector<MixerPart> mixer_parts(const catalog::Mixer& mixer, std::uint32_t tensor,
                                   double kv_element_bytes) {
  return std::visit(MixerParts{tensor, kv_element_bytes}, mixer);
}

ExpertWork expert_work(const Placement& placement, const ExpertShard& shard) {
  const catalog::Experts* experts = placement.model.experts();
  SERVECAST_CHECK(experts != nullptr);
  const double size = bytes_per_element(placement.precisions.experts);
  const auto hidden = static_cast<double>(shard.hidden);
  const auto width = static_cast<double>(shard.width);
  const auto matrices = static_cast<double>(shard.matrices);
  const auto held = static_cast<double>(shard.experts);
  // Experts of this rank that one token visits, if tokens choose evenly.
  const double visits = double(experts->per_token) / placement.parallelism.moe_expert;
  return {.all = {.bytes = held * matrices * hidden * width * size,
                  .bytes_per_token = size * visits * (2.0 * hidden + matrices * width),
                  .flops_per_token = 2.0 * matrices * visits * hidden * width},
          .share_missed = 1.0 - double(experts->per_token) / experts->count};
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
