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

using catalog::Coefficient;
using catalog::Precision;

// A layer's mixer and feed-forward part: 2, or 1 where it has only one of them.
double sublayers_of(const catalog::LayerGroup& group) {
  return (std::holds_alternative<catalog::NoMixer>(group.mixer) ? 0.0 : 1.0) +
         (std::holds_alternative<catalog::NoFeedForward>(group.feed_forward) ? 0.0 : 1.0);
}

// What the few matrices reach that are not measured apart: router, output head, shared experts in
// another format than the rest; decode attention that computes more than it reads. From tables of
// measured kernels (accuracy-notes.md 4).
constexpr double kOtherMemory = 0.8;
constexpr double kOtherFlops = 0.6;

// How much of the hardware's peaks the work of a pass reaches.
struct Reach {
  const Coefficients& of;
  double other_memory = kOtherMemory;
  double other_flops = kOtherFlops;
  double elementwise_memory = 1.0;
  double peer_latency_ms = 0.0;

  double operator[](Coefficient c) const { return of[c]; }
};

double memory_rate(const Placement& placement, double share) {
  return static_cast<double>(placement.system.memory_bytes_per_s) * share;
}
double bf16_rate(const Placement& placement, double share) {
  return static_cast<double>(placement.system.flops_per_s.bf16.value()) * share;
}
// The rate exists: check(placement) is empty.
double flops_of(const Placement& placement, Precision precision) {
  return static_cast<double>(peak_flops_linear(placement.system, precision).value());
}

// Weights alone: what activations move is small beside them, or hidden by the operations.
Line weights_line(const Matrix& matrix, const Rates& rates, double layers) {
  Work work = matrix_work(matrix);
  work.bytes_per_token = 0.0;
  return line_of(work, rates, layers);
}

void add(Line& sum, const Line& line) {
  sum.fixed_ms += line.fixed_ms;
  sum.per_token_ms += line.per_token_ms;
  sum.math_per_token_ms += line.math_per_token_ms;
}

void add_line(PartName part, const Line& line, PassCost& cost) {
  cost.tokens.push_back(line);
  cost.token_parts.push_back(part);
}

void add_matrices(const Placement& placement, const RankMatrices& list, const Reach& reach,
                  PassCost& cost) {
  const Precision linear = main_precision(placement);
  Line main, other;
  const auto add_all = [&](const std::vector<Matrix>& matrices, double layers) {
    for (const Matrix& m : matrices) {
      const bool is_main = m.precision == linear;
      const double memory = is_main ? reach[Coefficient::LinearMemory] : reach.other_memory;
      const double math = is_main ? reach[Coefficient::LinearFlops] : reach.other_flops;
      const Rates rates{memory_rate(placement, memory), flops_of(placement, m.precision) * math};
      add(is_main ? main : other, weights_line(m, rates, layers));
    }
  };
  for (const LayerMatrices& layer : list.groups) {
    add_all(layer.mixer, layer.count);
    add_all(layer.dense, layer.count);
    add_all(layer.mixture, layer.count);
  }
  add_line(PartName::DenseWeights, main, cost);
  add_line(PartName::OtherWeights, other, cost);
  cost.head = weights_line(list.head,
                           {memory_rate(placement, reach.other_memory),
                            flops_of(placement, list.head.precision) * reach.other_flops},
                           1.0);
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
Line elementwise_line(const Placement& placement, const Reach& reach) {
  const catalog::ModelCard& model = placement.model;
  const double hidden = model.hidden;
  double bytes = elementwise_work(0.0, hidden).bytes_per_token;
  for (const catalog::LayerGroup& group : model.groups) {
    double layer =
        sublayers_of(group) * elementwise_work(2.0 * hidden, 2.0 * hidden).bytes_per_token;
    if (const auto* dense = std::get_if<catalog::Dense>(&group.feed_forward)) {
      const double width = double(dense->width) / placement.parallelism.tensor;
      layer += elementwise_work((dense->gated ? 2.0 : 1.0) * width, width).bytes_per_token;
    }
    bytes += group.count * (layer + position_bytes(group.mixer, placement));
  }
  const double rate = memory_rate(placement, reach.elementwise_memory);
  return {.per_token_ms = bytes / rate * 1000.0};
}

std::optional<ExpertLine> expert_line(const Placement& placement, const RankMatrices& list,
                                      const Reach& reach) {
  if (list.layers_mixture() == 0) return std::nullopt;
  const ExpertWork work = expert_work(placement, list.routed());
  const auto peak =
      static_cast<double>(peak_flops(placement.system, placement.precisions.experts).value());
  const Line all = line_of(work.all,
                           {memory_rate(placement, reach[Coefficient::ExpertMemory]),
                            peak * reach[Coefficient::ExpertFlops]},
                           list.layers_mixture());
  return ExpertLine{.read_all_ms = all.fixed_ms,
                    .math_per_token_ms = all.math_per_token_ms,
                    .share_missed = work.share_missed,
                    .ranks = placement.parallelism.attention_data};
}

void add_part(const Placement& placement, const Reach& reach, const AttentionWork& work,
              double layers, AttentionLine& line) {
  const double memory_ms = layers * 1000.0 / memory_rate(placement, reach[Coefficient::KvMemory]);
  const double decode_ms = layers * 1000.0 / bf16_rate(placement, reach.other_flops);
  const double share = reach[Coefficient::PrefillFlops];
  const double prefill_ms = layers * 1000.0 / bf16_rate(placement, share);
  // An indexer computes in fp8 where the GPU can (perfmodel.md 4.7).
  const auto& peaks = placement.system.flops_per_s;
  const double index_ms =
      layers * 1000.0 / (static_cast<double>(peaks.fp8.value_or(*peaks.bf16)) * share);
  line.prefill_math_ms_per_pair += work.prefill_flops_per_pair * prefill_ms;
  line.prefill_ms_per_new += work.prefill_bytes_per_new * memory_ms;
  line.prefill_ms_per_context += work.prefill_bytes_per_context * memory_ms;
  line.decode_math_ms_per_context += work.decode_flops_per_context * decode_ms;
  line.decode_ms_per_context += work.decode_bytes_per_context * memory_ms;
  line.decode_ms_per_request += work.decode_bytes_per_request * memory_ms;
  line.index_math_ms_per_context += work.index_flops_per_context * index_ms;
  line.index_ms_per_context += work.index_bytes_per_context * memory_ms;
}

// Layers whose queries reach equally far are one line.
void add_attention(const Placement& placement, const Reach& reach, PassCost& cost) {
  std::vector<std::uint64_t> windows;
  for (const catalog::LayerGroup& group : placement.model.groups) {
    for (const MixerPart& part : mixer_parts(group.mixer, placement.parallelism.tensor,
                                             bytes_per_element(placement.precisions.kv_cache))) {
      auto at = std::find(windows.begin(), windows.end(), part.window);
      if (at == windows.end()) at = windows.insert(windows.end(), part.window);
      SERVECAST_CHECK(windows.size() <= kWindowsMax);
      AttentionLine& line = cost.attention[static_cast<std::size_t>(at - windows.begin())];
      line.window = part.window;
      add_part(placement, reach, part.work, group.count, line);
    }
  }
}

// A collective over `gpus` GPUs, `count` times a pass: small messages wait for the latency, large
// ones for the link.
Line collective_line(const Placement& placement, const Reach& reach, double bytes_per_token,
                     std::uint64_t gpus, double count) {
  const bool leaves_node = gpus > placement.system.gpus_per_node;
  const double latency = reach[Coefficient::CollectiveLatency] * collective_growth(gpus) +
                         (leaves_node ? reach.peer_latency_ms : 0.0);
  const double rate = link_bytes_per_s(placement.system, gpus) * reach[Coefficient::LinkShare];
  return {.fixed_ms = latency * count,
          .math_per_token_ms = bytes_per_token / rate * 1000.0 * count};
}

// Tokens go to the ranks of their experts and come back: one copy for each rank visited, half of
// them in a narrower format.
Line exchange_line(const Placement& placement, const Reach& reach, double layers_mixture) {
  const Parallelism& p = placement.parallelism;
  const std::uint64_t group = std::uint64_t{p.tensor} * p.attention_data;
  const double copies =
      std::min<double>(placement.model.experts()->per_token, static_cast<double>(group) - 1.0);
  Line line = collective_line(placement, reach, 3.0 * placement.model.hidden * copies, group,
                              layers_mixture);
  line.fixed_ms *= reach[Coefficient::DataParallelLatency];
  return {.fixed_ms = line.fixed_ms, .per_token_ms = line.math_per_token_ms};
}

// perfmodel.md 3.1-3.3 and 4.10: an all-reduce over the tensor ranks after attention, after every
// feed-forward part and after the embedding. With attention-data ranks tokens travel to the experts
// and back. Pipeline stages hand the hidden state on.
void add_collectives(const Placement& placement, const RankMatrices& list, const Reach& reach,
                     PassCost& cost) {
  const Parallelism& p = placement.parallelism;
  const double message = 2.0 * placement.model.hidden;  // bytes per token
  double sublayers = 0.0;
  for (const catalog::LayerGroup& group : placement.model.groups)
    sublayers += group.count * sublayers_of(group);
  if (p.tensor > 1)
    add_line(PartName::AllReduce,
             collective_line(placement, reach, all_reduce_bytes(message, p.tensor), p.tensor,
                             sublayers + 1.0),
             cost);
  if (p.attention_data > 1 && list.layers_mixture() > 0)
    add_line(PartName::ExpertExchange, exchange_line(placement, reach, list.layers_mixture()),
             cost);
  if (p.pipeline > 1) {
    const double rate = link_bytes_per_s(placement.system, gpus_per_worker(p));
    const double hops = p.pipeline - 1.0;
    add_line(
        PartName::PipelineHops,
        {.fixed_ms = reach.peer_latency_ms * hops, .per_token_ms = message / rate * 1000.0 * hops},
        cost);
  }
}

PassCost cost_of(const Placement& placement, const Reach& reach) {
  const RankMatrices list = matrices_of(placement);
  const double layers = placement.model.layers();
  PassCost cost;
  cost.host_ms = reach[Coefficient::HostPerPass] + layers * reach[Coefficient::LaunchPerLayer];
  cost.verify_factor = reach[Coefficient::SpeculationLaunch];
  cost.per_sequence_ms = reach[Coefficient::PerSequence];
  cost.per_prefill_pass_ms = layers * reach[Coefficient::PrefillLaunchPerLayer];
  add_matrices(placement, list, reach, cost);
  add_line(PartName::Elementwise, elementwise_line(placement, reach), cost);
  cost.experts = expert_line(placement, list, reach);
  add_attention(placement, reach, cost);
  add_collectives(placement, list, reach, cost);
  return cost;
}

}  // namespace

std::string_view to_string(PartName part) {
  static constexpr std::array<std::string_view, kPartNames> kNames{"host_and_launches",
                                                                   "sequences",
                                                                   "prefill_launches",
                                                                   "dense_weights",
                                                                   "other_weights",
                                                                   "elementwise",
                                                                   "experts",
                                                                   "prompt_attention",
                                                                   "decode_attention",
                                                                   "all_reduce",
                                                                   "expert_exchange",
                                                                   "pipeline_hops",
                                                                   "head"};
  return kNames.at(static_cast<std::size_t>(part));
}

double PassCost::batch_ms(const BatchCounts& counts) const {
  double ms = (counts.verifies ? host_ms * verify_factor : host_ms) +
              per_sequence_ms * as_double(counts.sequences) + head.at(as_double(counts.sampled));
  const double fresh = as_double(counts.tokens);
  for (const Line& line : tokens) ms += line.at(fresh);
  return experts ? ms + experts->at(counts.group) : ms;
}

DecodeBatch PassCost::decode_batch(std::uint32_t requests, std::uint32_t tokens_each,
                                   std::uint64_t group) const {
  const std::uint64_t computed = std::uint64_t{requests} * tokens_each;
  DecodeBatch batch{.batch_ms = batch_ms({.tokens = computed,
                                          .group = group,
                                          .sequences = requests,
                                          .sampled = computed,
                                          .verifies = tokens_each > 1})};
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

PassParts parts_of(const PassCost& cost, const StepShape& shape) {
  PassParts parts;
  const std::uint64_t decoded = std::uint64_t{shape.decode_requests} * shape.decode_tokens_each;
  const std::uint64_t fresh = shape.prefill_isl - std::min(shape.prefill_isl, shape.prefill_prefix);
  const bool prefills = shape.prefill_requests > 0 && fresh > 0;
  double attention_ms = 0.0;
  if (shape.decode_requests > 0) {
    const std::uint64_t others = shape.group_tokens - std::min(shape.group_tokens, decoded + fresh);
    const std::uint64_t group = shape.group_tokens > 0 ? decoded + others : cost.group_of(decoded);
    const DecodeBatch batch =
        cost.decode_batch(shape.decode_requests, shape.decode_tokens_each, group);
    attention_ms = batch.attention_ms(as_double(shape.decode_context));
    parts.decode_ms = batch.batch_ms + attention_ms;
    parts.total_ms = parts.decode_ms;
  }
  if (!prefills) return parts;
  // One fused batch: weights are read once for prompts and decodes together.
  const std::uint64_t tokens = fresh + decoded;
  const double total_ms =
      cost.batch_ms({.tokens = tokens,
                     .group = shape.group_tokens > 0 ? std::max(shape.group_tokens, tokens)
                                                     : cost.group_of(tokens),
                     .sequences = std::uint64_t{shape.prefill_requests} + shape.decode_requests,
                     .sampled = shape.prefill_requests + decoded,
                     .verifies = shape.decode_requests > 0 && shape.decode_tokens_each > 1}) +
      cost.per_prefill_pass_ms +
      cost.prefill_attention_ms(fresh, shape.prefill_isl, shape.prefill_attention) + attention_ms;
  parts.total_ms = std::max(total_ms, parts.decode_ms);
  return parts;
}

PassCost pass_cost_of(const Placement& placement, const Coefficients& coefficients) {
  return cost_of(placement, {.of = coefficients,
                             .elementwise_memory = placement.system.memory_efficiency,
                             .peer_latency_ms = placement.system.peer_latency_s * 1000.0});
}

PassCost peak_cost_of(const Placement& placement) {
  Coefficients peaks({}, {});  // without effects all are 1, which the shares keep
  for (const Coefficient c : {Coefficient::HostPerPass, Coefficient::LaunchPerLayer,
                              Coefficient::PerSequence, Coefficient::PrefillLaunchPerLayer,
                              Coefficient::CollectiveLatency, Coefficient::DataParallelLatency})
    peaks.set(c, 0.0);
  return cost_of(placement, {.of = peaks, .other_memory = 1.0, .other_flops = 1.0});
}

}  // namespace servecast::perf
