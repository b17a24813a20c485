// SPDX-License-Identifier: Apache-2.0
#include "perf/matrices.hpp"

#include <algorithm>
#include <variant>

#include "base/check.hpp"

namespace servecast::perf {
namespace {

using catalog::Precision;
using Matrices = std::vector<Matrix>;

std::uint64_t div_ceil(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

// The matrices of one layer's mixer on one of `tensor` ranks.
struct MixerMatrices {
  std::uint64_t hidden;
  std::uint64_t tensor;
  Precision precision;

  std::uint64_t share(std::uint64_t width) const { return div_ceil(width, tensor); }
  Matrix matrix(std::uint64_t out, std::uint64_t in) const { return {out, in, precision}; }

  Matrices operator()(const catalog::NoMixer&) const { return {}; }

  Matrices operator()(const catalog::GroupedAttention& a) const {
    const std::uint64_t query = share(std::uint64_t{a.heads} * a.head_dim);
    const std::uint64_t key = share(a.kv_heads) * a.head_dim;
    const std::uint64_t value = a.key_is_value ? 0 : share(a.kv_heads) * a.head_dim_value;
    const std::uint64_t output = share(std::uint64_t{a.heads} * a.head_dim_value);
    return {matrix((a.output_gate ? 2 : 1) * query + key + value, hidden), matrix(hidden, output)};
  }

  Matrices operator()(const catalog::LatentAttention& a) const {
    const std::uint64_t heads = share(a.heads);
    const std::uint64_t query = heads * (a.head_dim_nope + a.head_dim_rope);
    Matrices list;
    // Down-projections to the latent ranks, the same on every rank.
    list.push_back(matrix(std::uint64_t{a.query_rank} + a.kv_rank + a.head_dim_rope, hidden));
    list.push_back(matrix(query, a.query_rank > 0 ? a.query_rank : hidden));
    // Up-projection of K and V; decode absorbs it into Q and the output with as many operations.
    list.push_back(matrix(heads * (a.head_dim_nope + a.head_dim_value), a.kv_rank));
    if (a.output_gate) list.push_back(matrix(heads * a.head_dim_value, hidden));
    list.push_back(matrix(hidden, heads * a.head_dim_value));
    if (a.index && a.index->own) {
      list.push_back(matrix(std::uint64_t{a.index->heads} * a.index->head_dim, a.query_rank));
      list.push_back(matrix(std::uint64_t{a.index->head_dim} + a.index->heads, hidden));
    }
    return list;
  }

  Matrices operator()(const catalog::GatedDelta& a) const {  // perfmodel.md 3.8
    const std::uint64_t keys = std::uint64_t{a.key_heads} * a.key_dim;
    const std::uint64_t values = std::uint64_t{a.value_heads} * a.value_dim;
    return {matrix(share(2 * keys + 2 * values), hidden),
            matrix(share(2 * std::uint64_t{a.value_heads}), hidden), matrix(hidden, share(values))};
  }

  Matrices operator()(const catalog::KimiDelta& a) const {  // perfmodel.md 3.9
    const std::uint64_t width = share(std::uint64_t{a.heads} * a.head_dim);
    return {matrix(4 * width, hidden), matrix(std::uint64_t{a.heads} + a.head_dim, hidden),
            matrix(width, a.head_dim), matrix(hidden, width)};
  }

  Matrices operator()(const catalog::Mamba2& a) const {  // perfmodel.md 3.7
    const std::uint64_t heads = share(a.heads);
    const std::uint64_t inner = heads * a.head_dim;
    const std::uint64_t groups = std::max<std::uint64_t>(a.groups / tensor, 1);
    return {matrix(2 * inner + 2 * groups * a.state + heads, hidden), matrix(hidden, inner)};
  }

  // Q through its rank, one shared K/V head, and an output of one low rank a group of heads. A
  // compressor has a projection and a gate, twice as wide where blocks of 4 overlap.
  Matrices operator()(const catalog::CompressedAttention& a) const {
    const std::uint64_t query = share(std::uint64_t{a.heads} * a.head_dim);
    const std::uint64_t ranks =
        std::max<std::uint64_t>(a.output_groups / tensor, 1) * a.output_rank;
    const std::uint64_t overlap = a.ratio == 4 ? 2 : 1;
    Matrices list{matrix(std::uint64_t{a.query_rank} + a.head_dim, hidden),
                  matrix(query, a.query_rank), matrix(query, a.output_rank), matrix(hidden, ranks)};
    if (a.ratio > 0) list.push_back(matrix(2 * overlap * a.head_dim, hidden));
    if (a.index) {
      list.push_back(matrix(std::uint64_t{a.index->heads} * a.index->head_dim, a.query_rank));
      list.push_back(matrix(a.index->heads + 2 * overlap * a.index->head_dim, hidden));
    }
    return list;
  }

  Matrices operator()(const catalog::BlockSparseAttention& a) const {
    Matrices list = (*this)(a.grouped);
    // Q of the indexer, and its one K.
    list.push_back(matrix((std::uint64_t{a.index_heads} + 1) * a.index_dim, hidden));
    return list;
  }
};

// Gate and up as one matrix, or up alone, then down.
Matrices feed_forward(std::uint64_t width, std::uint64_t hidden, bool gated, Precision precision) {
  return {{(gated ? 2 : 1) * width, hidden, precision}, {hidden, width, precision}};
}

LayerMatrices layer_matrices(const catalog::LayerGroup& group, const Placement& placement) {
  const Parallelism& p = placement.parallelism;
  const std::uint64_t hidden = placement.model.hidden;
  LayerMatrices layer{.count = group.count};
  layer.mixer =
      std::visit(MixerMatrices{hidden, p.tensor, placement.precisions.attention}, group.mixer);
  if (const auto* dense = std::get_if<catalog::Dense>(&group.feed_forward))
    layer.dense = feed_forward(div_ceil(dense->width, p.tensor), hidden, dense->gated,
                               placement.precisions.dense);
  const auto* experts = std::get_if<catalog::Experts>(&group.feed_forward);
  if (experts == nullptr) return layer;
  if (experts->dense_width > 0)
    layer.dense = feed_forward(div_ceil(experts->dense_width, p.tensor), hidden, experts->gated,
                               placement.precisions.dense);
  layer.mixture.push_back({experts->count, hidden, Precision::Bfloat16});
  if (experts->shared_width > 0) {
    for (const Matrix& m : feed_forward(div_ceil(experts->shared_width, p.tensor), hidden,
                                        experts->gated, placement.precisions.shared_experts))
      layer.mixture.push_back(m);
  }
  if (experts->latent > 0) {  // perfmodel.md 3.7, 3.9: bfloat16
    const std::uint64_t latent = div_ceil(experts->latent, p.tensor);
    layer.mixture.push_back({latent, hidden, Precision::Bfloat16});
    layer.mixture.push_back({hidden, latent, Precision::Bfloat16});
  }
  layer.routed = {.experts = div_ceil(experts->count, p.moe_expert),
                  .width = div_ceil(experts->width, p.moe_tensor),
                  .hidden = experts->latent > 0 ? experts->latent : hidden,
                  .matrices = experts->gated ? 3u : 2u};
  return layer;
}

std::uint64_t elements_of(const Matrices& list) {
  std::uint64_t sum = 0;
  for (const Matrix& m : list) sum += m.out * m.in;
  return sum;
}

}  // namespace

std::uint32_t RankMatrices::layers_mixture() const {
  std::uint32_t sum = 0;
  for (const LayerMatrices& layer : groups) {
    if (layer.routed.experts > 0) sum += layer.count;
  }
  return sum;
}

const ExpertShard& RankMatrices::routed() const {
  const auto found = std::find_if(groups.begin(), groups.end(), [](const LayerMatrices& layer) {
    return layer.routed.experts > 0;
  });
  SERVECAST_CHECK(found != groups.end());
  return found->routed;
}

RankMatrices matrices_of(const Placement& placement) {
  const catalog::ModelCard& model = placement.model;
  RankMatrices list;
  for (const catalog::LayerGroup& group : model.groups)
    list.groups.push_back(layer_matrices(group, placement));
  const std::uint64_t vocab = div_ceil(model.vocab, placement.parallelism.tensor);
  list.embedding = {vocab, model.hidden, Precision::Bfloat16};
  list.head = {vocab, model.hidden, placement.precisions.head};
  return list;
}

std::uint64_t parameters_of(const catalog::ModelCard& model) {
  Placement whole;
  whole.model = model;
  const RankMatrices list = matrices_of(whole);
  std::uint64_t sum = list.embedding.out * list.embedding.in * (model.embeddings_tied ? 1 : 2);
  for (const LayerMatrices& layer : list.groups)
    sum += layer.count * (elements_of(layer.mixer) + elements_of(layer.dense) +
                          elements_of(layer.mixture) + layer.routed.elements());
  return sum;
}

}  // namespace servecast::perf
