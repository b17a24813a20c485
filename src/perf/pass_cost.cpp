// SPDX-License-Identifier: Apache-2.0
#include "perf/pass_cost.hpp"

#include <algorithm>
#include <variant>
#include <vector>

#include "base/check.hpp"
#include "perf/matrices.hpp"
#include "perf/operators.hpp"
#include "perf/precision.hpp"

namespace servecast::perf {
namespace {

using catalog::Precision;

// A layer's mixer and feed-forward part: 2, or 1 where it has only one of them.
double parts_of(const catalog::LayerGroup& group) {
  return (std::holds_alternative<catalog::NoMixer>(group.mixer) ? 0.0 : 1.0) +
         (std::holds_alternative<catalog::NoFeedForward>(group.feed_forward) ? 0.0 : 1.0);
}

double memory_rate(const Placement& placement, double efficiency) {
  return static_cast<double>(placement.system.memory_bytes_per_s) * efficiency;
}
double bf16_rate(const Placement& placement, double efficiency) {
  return static_cast<double>(placement.system.flops_per_s.bf16.value()) * efficiency;
}

// The rates exist: check(placement) is empty.
Rates matrix_rates(const Placement& placement, Precision precision) {
  const MatrixShare share = matrix_share(placement.system, precision);
  const auto peak = static_cast<double>(peak_flops_linear(placement.system, precision).value());
  return {memory_rate(placement, share.memory), peak * share.flops};
}

void add_matrices(const Placement& placement, const RankMatrices& list, PassCost& cost) {
  const auto add = [&](const std::vector<Matrix>& matrices, double layers) {
    for (const Matrix& m : matrices)
      cost.tokens.push_back(line_of(matrix_work(m), matrix_rates(placement, m.precision), layers));
  };
  for (const LayerMatrices& layer : list.groups) {
    add(layer.mixer, layer.count);
    add(layer.dense, layer.count);
    add(layer.mixture, layer.count);
  }
  cost.head = line_of(matrix_work(list.head), matrix_rates(placement, list.head.precision), 1.0);
}

// Positions, norms and the KV write of one layer (4.3).
double position_bytes(const catalog::Mixer& mixer, const Placement& placement) {
  const auto* grouped = std::get_if<catalog::GroupedAttention>(&mixer);
  if (grouped == nullptr) return 0.0;
  const std::uint32_t tensor = placement.parallelism.tensor;
  const double query = heads_of_rank(grouped->heads, tensor) * grouped->head_dim;
  const double key = heads_of_rank(grouped->kv_heads, tensor) * grouped->head_dim;
  const double positions = elementwise_work(query + key, query + key).bytes_per_token;
  const double norms = grouped->qk_norm ? 2.0 * positions : 0.0;
  return positions + norms + 2.0 * key * bytes_per_element(placement.precisions.kv_cache);
}

// Embedding, an addition with normalisation before each mixer and feed-forward part, activation,
// positions and the KV write (perfmodel.md 3.1, 4.1, 4.3). Their fixed latencies are part of the
// launch cost per layer.
Line elementwise_line(const Placement& placement) {
  const catalog::ModelCard& model = placement.model;
  const double hidden = model.hidden;
  double bytes = elementwise_work(0.0, hidden).bytes_per_token;
  for (const catalog::LayerGroup& group : model.groups) {
    double layer = parts_of(group) * elementwise_work(2.0 * hidden, 2.0 * hidden).bytes_per_token;
    if (const auto* dense = std::get_if<catalog::Dense>(&group.feed_forward)) {
      const double width = double(dense->width) / placement.parallelism.tensor;
      layer += elementwise_work((dense->gated ? 2.0 : 1.0) * width, width).bytes_per_token;
    }
    bytes += group.count * (layer + position_bytes(group.mixer, placement));
  }
  const double rate = memory_rate(placement, placement.system.memory_efficiency);
  return {.per_token_ms = bytes / rate * 1000.0};
}

std::optional<ExpertLine> expert_line(const Placement& placement, const RankMatrices& list,
                                      const Efficiency& efficiency) {
  if (list.layers_mixture() == 0) return std::nullopt;
  const ExpertWork work = expert_work(placement, list.routed());
  const auto peak =
      static_cast<double>(peak_flops(placement.system, placement.precisions.experts).value());
  const Rates rates{memory_rate(placement, efficiency.expert_memory),
                    peak * efficiency.expert_flops};
  return ExpertLine{.all = line_of(work.all, rates, list.layers_mixture()),
                    .share_missed = work.share_missed,
                    .ranks = placement.parallelism.attention_data};
}

void add_part(const Placement& placement, const Efficiency& efficiency, const AttentionWork& work,
              double layers, AttentionLine& line) {
  const double memory_ms = layers * 1000.0 / memory_rate(placement, efficiency.kv_memory);
  const double decode_ms = layers * 1000.0 / bf16_rate(placement, efficiency.bf16_flops);
  const double prefill_ms = layers * 1000.0 / bf16_rate(placement, efficiency.prefill_flops);
  line.prefill_math_ms_per_pair += work.prefill_flops_per_pair * prefill_ms;
  line.prefill_ms_per_new += work.prefill_bytes_per_new * memory_ms;
  line.prefill_ms_per_context += work.prefill_bytes_per_context * memory_ms;
  line.decode_math_ms_per_context += work.decode_flops_per_context * decode_ms;
  line.decode_ms_per_context += work.decode_bytes_per_context * memory_ms;
  line.decode_ms_per_request += work.decode_bytes_per_request * memory_ms;
  line.index_math_ms_per_context += work.index_flops_per_context * prefill_ms;
  line.index_ms_per_context += work.index_bytes_per_context * memory_ms;
}

// Layers whose queries reach equally far are one line.
void add_attention(const Placement& placement, const Efficiency& efficiency, PassCost& cost) {
  std::vector<std::uint64_t> windows;
  for (const catalog::LayerGroup& group : placement.model.groups) {
    for (const MixerPart& part : mixer_parts(group.mixer, placement.parallelism.tensor,
                                             bytes_per_element(placement.precisions.kv_cache))) {
      auto at = std::find(windows.begin(), windows.end(), part.window);
      if (at == windows.end()) at = windows.insert(windows.end(), part.window);
      SERVECAST_CHECK(windows.size() <= kWindowsMax);
      AttentionLine& line = cost.attention[static_cast<std::size_t>(at - windows.begin())];
      line.window = part.window;
      add_part(placement, efficiency, part.work, group.count, line);
    }
  }
}

// A collective over `gpus` GPUs, `count` times a pass: small messages wait for the latency, large
// ones for the link.
Line collective_line(const Placement& placement, const PassCost& cost, const Efficiency& efficiency,
                     double bytes_per_token, std::uint64_t gpus, double count) {
  const bool leaves_node = gpus > placement.system.gpus_per_node;
  const double latency = cost.host.per_collective * collective_growth(gpus) +
                         (leaves_node ? placement.system.peer_latency_s * 1000.0 : 0.0);
  const double rate = link_bytes_per_s(placement.system, gpus) * efficiency.link;
  return {.fixed_ms = latency * count,
          .math_per_token_ms = bytes_per_token / rate * 1000.0 * count};
}

// perfmodel.md 3.1-3.3 and 4.10: an all-reduce over the tensor ranks after attention, after every
// feed-forward part and after the embedding. With attention-data ranks, experts gather the tokens
// of all ranks before and scatter them after. Pipeline stages hand the hidden state on.
void add_collectives(const Placement& placement, const RankMatrices& list,
                     const Efficiency& efficiency, PassCost& cost) {
  const Parallelism& p = placement.parallelism;
  const double message = 2.0 * placement.model.hidden;  // bytes per token
  double parts = 0.0;
  for (const catalog::LayerGroup& group : placement.model.groups)
    parts += group.count * parts_of(group);
  if (p.tensor > 1)
    cost.tokens.push_back(collective_line(
        placement, cost, efficiency, all_reduce_bytes(message, p.tensor), p.tensor, parts + 1.0));
  if (p.attention_data > 1 && list.layers_mixture() > 0) {
    const std::uint64_t group = std::uint64_t{p.tensor} * p.attention_data;
    cost.tokens.push_back(collective_line(placement, cost, efficiency,
                                          gather_bytes(message * p.attention_data, group), group,
                                          2.0 * list.layers_mixture()));
  }
  if (p.pipeline > 1) {
    const double rate = link_bytes_per_s(placement.system, gpus_per_worker(p));
    const double hops = p.pipeline - 1.0;
    cost.tokens.push_back({.fixed_ms = placement.system.peer_latency_s * 1000.0 * hops,
                           .per_token_ms = message / rate * 1000.0 * hops});
  }
}

}  // namespace

double PassCost::batch_ms(std::uint64_t tokens_new, std::uint64_t sequences,
                          std::uint64_t sampled) const {
  double ms =
      host.per_pass + host.per_sequence * as_double(sequences) + head.at(as_double(sampled));
  for (const Line& line : tokens) ms += line.at(as_double(tokens_new));
  return experts ? ms + experts->at(tokens_new) : ms;
}

DecodeBatch PassCost::decode_batch(std::uint32_t requests, std::uint32_t tokens_each) const {
  const std::uint64_t computed = std::uint64_t{requests} * tokens_each;
  DecodeBatch batch{.batch_ms = batch_ms(computed, requests, computed)};
  for (std::size_t i = 0; i < attention.size(); ++i)
    batch.attention[i] = attention[i].decode(requests);
  return batch;
}

double PassCost::prefill_attention_ms(std::uint64_t fresh, std::uint64_t context,
                                      std::uint64_t pairs) const {
  double ms = 0.0;
  for (const AttentionLine& line : attention) ms += line.prefill(fresh, context, pairs);
  return ms;
}

PassCost pass_cost_of(const Placement& placement) {
  const RankMatrices list = matrices_of(placement);
  const Efficiency efficiency = efficiency_of(placement);
  PassCost cost;
  cost.host = host_cost_of(placement);
  add_matrices(placement, list, cost);
  cost.tokens.push_back(elementwise_line(placement));
  cost.experts = expert_line(placement, list, efficiency);
  add_attention(placement, efficiency, cost);
  add_collectives(placement, list, efficiency, cost);
  return cost;
}

}  // namespace servecast::perf
