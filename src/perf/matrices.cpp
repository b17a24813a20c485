// SPDX-License-Identifier: Apache-2.0
#include "perf/matrices.hpp"

#include <variant>

namespace servecast::perf {
namespace {

using catalog::GroupedAttention;
using catalog::LatentAttention;
using catalog::Precision;

std::uint64_t div_ceil(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

std::vector<Matrix> attention_of(const GroupedAttention& a, std::uint64_t hidden, std::uint64_t tp,
                                 Precision precision) {
  const std::uint64_t query = div_ceil(std::uint64_t{a.heads} * a.head_dim, tp);
  const std::uint64_t key = div_ceil(a.kv_heads, tp) * a.head_dim;
  return {{query + 2 * key, hidden, precision}, {hidden, query, precision}};
}

std::vector<Matrix> attention_of(const LatentAttention& a, std::uint64_t hidden, std::uint64_t tp,
                                 Precision precision) {
  const std::uint64_t heads = div_ceil(a.heads, tp);
  std::vector<Matrix> list{
      // Down-projections to the latent ranks, the same on every rank.
      {std::uint64_t{a.query_rank} + a.kv_rank + a.head_dim_rope, hidden, precision},
      {heads * (a.head_dim_nope + a.head_dim_rope), a.query_rank, precision},
      // Up-projection of K and V; decode absorbs it into Q and the output with as many operations.
      {heads * (a.head_dim_nope + a.head_dim_value), a.kv_rank, precision},
      {hidden, heads * a.head_dim_value, precision}};
  if (a.index) {
    const std::uint64_t index_heads = a.index->heads;
    list.push_back({index_heads * a.index->head_dim, a.query_rank, precision});
    list.push_back({a.index->head_dim + index_heads, hidden, precision});
  }
  return list;
}

// Gate and up as one matrix, then down.
std::vector<Matrix> feed_forward(std::uint64_t width, std::uint64_t hidden, Precision precision) {
  return {{2 * width, hidden, precision}, {hidden, width, precision}};
}

}  // namespace

RankMatrices matrices_of(const Placement& placement) {
  const catalog::ModelCard& model = placement.model;
  const Parallelism& p = placement.parallelism;
  RankMatrices list;
  list.attention = std::visit(
      [&](const auto& attention) {
        return attention_of(attention, model.hidden, p.tensor, placement.precisions.linear);
      },
      model.attention);
  list.dense = feed_forward(div_ceil(model.intermediate, p.tensor), model.hidden,
                            placement.precisions.linear);
  list.head = {div_ceil(model.vocab, p.tensor), model.hidden, Precision::Bfloat16};
  list.layers_dense = model.layers;
  if (!model.experts) return list;
  const catalog::Experts& experts = *model.experts;
  list.layers_dense = experts.layers_dense_first;
  list.layers_mixture = model.layers - experts.layers_dense_first;
  list.mixture.push_back({experts.count, model.hidden, Precision::Bfloat16});
  if (experts.shared > 0) {
    const std::uint64_t width =
        div_ceil(std::uint64_t{experts.shared} * experts.intermediate, p.tensor);
    for (const Matrix& m : feed_forward(width, model.hidden, placement.precisions.experts))
      list.mixture.push_back(m);
  }
  list.routed = {.experts = div_ceil(experts.count, p.moe_expert),
                 .width = div_ceil(experts.intermediate, p.moe_tensor)};
  return list;
}

}  // namespace servecast::perf
