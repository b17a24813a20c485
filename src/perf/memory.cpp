// SPDX-License-Identifier: Apache-2.0
#include "perf/memory.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>

#include "base/check.hpp"
#include "base/int128.hpp"
#include "perf/matrices.hpp"
#include "perf/precision.hpp"

namespace servecast::perf {
namespace {

using catalog::EngineKind;
using catalog::GroupedAttention;
using catalog::LatentAttention;
using catalog::ModelCard;
using catalog::Precision;

// Share of free memory that TensorRT-LLM holds back (perfmodel.md 9.3).
constexpr double kTensorRtLlmReserve = 0.015;

std::uint64_t div_ceil(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

std::uint64_t bytes_of_matrices(const std::vector<Matrix>& list) {
  std::uint64_t bytes = 0;
  for (const Matrix& m : list) bytes += bytes_of(m.precision, m.out * m.in);
  return bytes;
}

// Elements of all heads of Q together: the width that the activation formula counts in. Latent
// attention counts the hidden width (its config gives hidden / heads as head width).
std::uint64_t attention_width(const ModelCard& model) {
  if (const auto* grouped = std::get_if<GroupedAttention>(&model.attention))
    return std::uint64_t{grouped->heads} * grouped->head_dim;
  return model.hidden;
}

std::uint64_t kv_bytes_of_layer(const Placement& placement) {
  const Precision precision = placement.precisions.kv_cache;
  if (const auto* grouped = std::get_if<GroupedAttention>(&placement.model.attention)) {
    const std::uint64_t heads = div_ceil(grouped->kv_heads, placement.parallelism.tensor);
    return bytes_of(precision, 2 * heads * grouped->head_dim);
  }
  const auto& latent = std::get<LatentAttention>(placement.model.attention);
  if (!latent.index)
    return bytes_of(precision, std::uint64_t{latent.kv_rank} + latent.head_dim_rope);
  // The part with position stays in 2 bytes; the indexer keeps 1 byte an element and a 4-byte scale
  // for each 128 (perfmodel.md 9.2).
  const std::uint64_t index = latent.index->head_dim + div_ceil(latent.index->head_dim, 128) * 4;
  return bytes_of(precision, latent.kv_rank) + 2 * std::uint64_t{latent.head_dim_rope} + index;
}

// Layers of the fullest stage that keep all tokens, and those that keep a window.
struct KvLayers {
  std::uint64_t global = 0;
  std::uint64_t windowed = 0;
  std::uint64_t window = 0;  // tokens
};

KvLayers kv_layers(const Placement& placement) {
  const std::uint64_t layers = layers_of_fullest_stage(placement);
  const auto* grouped = std::get_if<GroupedAttention>(&placement.model.attention);
  if (grouped == nullptr || !grouped->window) return {.global = layers};
  const std::uint64_t windowed = layers * grouped->window->layers / placement.model.layers;
  return {.global = layers - windowed, .windowed = windowed, .window = grouped->window->tokens};
}

// Twice the activations' factor of perfmodel.md 9.1 for 1, 2, 4 and 8 tensor ranks.
std::array<std::uint64_t, 4> activation_factors_doubled(const Placement& placement) {
  const bool sglang = placement.engine == EngineKind::Sglang;
  const bool experts = placement.model.experts.has_value();
  if (sglang && experts) return {56, 34, 26, 26};
  if (sglang) return {28, 17, 13, 13};
  if (experts) return {44, 26, 20, 20};
  return {22, 13, 10, 10};
}

// Of a count that the tables do not list, the nearest listed one below it.
std::size_t index_of_ranks(std::uint32_t tensor) {
  return tensor >= 8 ? 3 : tensor >= 4 ? 2 : tensor >= 2 ? 1 : 0;
}

std::uint64_t collectives_bytes(const Placement& placement) {
  const auto& reserve = placement.system.reserve_collectives_bytes;
  const auto above = reserve.upper_bound(placement.parallelism.tensor);
  SERVECAST_CHECK(above != reserve.begin());  // the card lists 1
  return std::prev(above)->second;
}

double scale_of(const Placement& placement, const MemorySettings& settings) {
  const double kept = placement.engine == EngineKind::TensorRtLlm ? kTensorRtLlmReserve : 0.0;
  return (1.0 - kept) * (1.0 - settings.tolerance);
}

std::uint64_t counted_parts(EngineKind engine, const MemoryParts& parts) {
  return engine == EngineKind::Sglang ? parts.sum() - parts.activations : parts.sum();
}

DoesNotFit does_not_fit(const Placement& placement, const KvCapacity& found,
                        std::uint64_t block_bytes, double scale) {
  const MemoryParts& parts = found.parts;
  const bool of_free = placement.engine == EngineKind::TensorRtLlm;
  DoesNotFit answer;
  answer.needed_bytes = counted_parts(placement.engine, parts) + block_bytes;
  answer.available_bytes =
      of_free ? found.gpu_bytes
              : static_cast<std::uint64_t>(std::floor(static_cast<double>(found.gpu_bytes) *
                                                      found.memory_fraction * scale));
  answer.sentence = fmt::format(
      "{} does not fit: one {} GPU of {} needs {} bytes (weights {}, activations {}, collectives "
      "{}, others {}, CUDA graphs {}, one KV block {}); available are {} bytes",
      placement.model.name, placement.system.name, gpus_per_worker(placement.parallelism),
      answer.needed_bytes, parts.weights,
      placement.engine == EngineKind::Sglang ? 0 : parts.activations, parts.collectives,
      parts.others, parts.cuda_graphs, block_bytes, answer.available_bytes);
  return answer;
}

}  // namespace

std::uint64_t MemoryParts::sum() const {
  return weights + activations + collectives + others + cuda_graphs;
}

std::uint64_t weight_bytes(const Placement& placement) {
  const ModelCard& model = placement.model;
  const RankMatrices list = matrices_of(placement);
  const std::uint64_t dense = bytes_of_matrices(list.dense);
  const std::uint64_t mixture =
      bytes_of_matrices(list.mixture) +
      bytes_of(placement.precisions.experts,
               list.routed.experts * 3 * model.hidden * list.routed.width);

  // The fullest stage has as many of the heavier layers as there are.
  const std::uint64_t layers = layers_of_fullest_stage(placement);
  const bool mixture_heavier = mixture > dense;
  const std::uint64_t heavier =
      std::min<std::uint64_t>(layers, mixture_heavier ? list.layers_mixture : list.layers_dense);
  const std::uint64_t feed_forward =
      heavier * std::max(mixture, dense) + (layers - heavier) * std::min(mixture, dense);

  const std::uint64_t vocab = bytes_of(list.head.precision, list.head.out * list.head.in);
  // With stages the embedding stands in the first and the head in the last.
  const bool both = placement.parallelism.pipeline == 1 && !model.embeddings_tied;
  return layers * bytes_of_matrices(list.attention) + feed_forward + (both ? 2 : 1) * vocab;
}

std::uint64_t activation_bytes(const Placement& placement, std::uint64_t tokens) {
  const Parallelism& p = placement.parallelism;
  const bool sglang = placement.engine == EngineKind::Sglang;
  const std::uint64_t width = attention_width(placement.model);
  const std::uint64_t factor = activation_factors_doubled(placement)[index_of_ranks(p.tensor)];
  std::uint64_t bytes = tokens * width * factor;
  if (placement.model.experts) {
    const catalog::Experts& experts = *placement.model.experts;
    bytes += tokens * width * p.attention_data * experts.count * experts.per_token / p.moe_expert /
             128 * 4;
  }
  const std::uint64_t floor = (sglang ? 90 : 70) * (std::uint64_t{1} << 20);
  bytes = std::max(bytes, floor);
  return sglang ? div_ceil(bytes * 115, 100) : bytes;
}

MemoryParts memory_parts(const Placement& placement, const MemorySettings& settings) {
  const bool sglang = placement.engine == EngineKind::Sglang;
  const std::uint64_t others = placement.system.reserve_other_bytes;
  return {.weights = weight_bytes(placement),
          .activations = activation_bytes(placement, settings.max_batched_tokens),
          .collectives = collectives_bytes(placement),
          .others = sglang ? div_ceil(others * 12, 10) : others,
          .cuda_graphs = settings.cuda_graph_reserved_bytes};
}

std::uint64_t kv_sequence_bytes(const Placement& placement, std::uint64_t tokens) {
  const KvLayers layers = kv_layers(placement);
  return (layers.global * tokens + layers.windowed * std::min(tokens, layers.window)) *
         kv_bytes_of_layer(placement);
}

std::uint64_t kv_sequence_tokens(const Placement& placement, std::uint64_t bytes) {
  const KvLayers layers = kv_layers(placement);
  const std::uint64_t unit = kv_bytes_of_layer(placement);
  const std::uint64_t within_window = bytes / ((layers.global + layers.windowed) * unit);
  const bool all_windowed = layers.global == 0;  // such a sequence never ends; count its window
  if (layers.windowed == 0 || within_window <= layers.window || all_windowed) return within_window;
  return (bytes - layers.windowed * layers.window * unit) / (layers.global * unit);
}

std::uint64_t vllm_kv_tokens(const Placement& placement, std::uint64_t bytes,
                             const MemorySettings& settings) {
  const KvLayers layers = kv_layers(placement);
  const std::uint64_t block = settings.block_tokens;
  const std::uint64_t layer_bytes = block * kv_bytes_of_layer(placement);
  if (layers.windowed == 0) return bytes / (layers.global * layer_bytes) * block;
  const std::uint64_t length = settings.max_model_len.value_or(placement.model.context_max);
  const std::uint64_t reached =
      std::min(length, layers.window - 1 + std::uint64_t{settings.max_batched_tokens});
  const std::uint64_t group =
      layers.global == 0 ? layers.windowed : std::min(layers.global, layers.windowed);
  const std::uint64_t blocks = bytes / (group * layer_bytes);
  const std::uint64_t blocks_of_request =
      div_ceil(layers.global, group) * div_ceil(length, block) +
      div_ceil(layers.windowed, group) * (div_ceil(reached, block) + 1);
  // Rounded to the nearest.
  return static_cast<std::uint64_t>((2 * UInt128{blocks} * length + blocks_of_request) /
                                    (2 * UInt128{blocks_of_request}));
}

double default_memory_fraction(EngineKind engine) {
  switch (engine) {
    case EngineKind::Vllm:
    case EngineKind::TensorRtLlm:
      return 0.9;
    case EngineKind::Sglang:
      return 0.88;
  }
  check_failed("engine is one of its enumerators", __FILE__, __LINE__);
}

double kv_budget(EngineKind engine, std::uint64_t capacity, const MemoryParts& parts,
                 double fraction, double scale) {
  const auto total = static_cast<double>(capacity);
  const auto counted = static_cast<double>(counted_parts(engine, parts));
  switch (engine) {
    case EngineKind::Vllm:
    case EngineKind::Sglang:
      return total * fraction * scale - counted;
    case EngineKind::TensorRtLlm:
      return (total - counted) * fraction * scale;
  }
  check_failed("engine is one of its enumerators", __FILE__, __LINE__);
}

tl::expected<KvCapacity, DoesNotFit> kv_capacity(const Placement& placement,
                                                 const MemorySettings& settings) {
  SERVECAST_CHECK(settings.block_tokens > 0);
  SERVECAST_CHECK(settings.tolerance >= 0.0 && settings.tolerance < 1.0);
  SERVECAST_CHECK(!settings.kv_bytes_per_token || *settings.kv_bytes_per_token > 0);
  KvCapacity found;
  found.gpu_bytes = placement.system.memory_bytes;
  found.memory_fraction =
      settings.memory_fraction.value_or(default_memory_fraction(placement.engine));
  SERVECAST_CHECK(found.memory_fraction > 0.0 && found.memory_fraction <= 1.0);
  found.parts = memory_parts(placement, settings);
  found.kv_bytes_per_token = settings.kv_bytes_per_token.value_or(kv_sequence_bytes(placement, 1));

  const double scale = scale_of(placement, settings);
  const double budget =
      kv_budget(placement.engine, found.gpu_bytes, found.parts, found.memory_fraction, scale);
  // SGLang's fraction leaves room for activations outside; they must still fit into the GPU.
  const bool parts_fit = found.parts.sum() < found.gpu_bytes;
  if (budget > 0.0 && parts_fit) {
    found.kv_bytes = static_cast<std::uint64_t>(std::floor(budget));
    if (settings.kv_bytes_per_token)
      found.tokens = found.kv_bytes / found.kv_bytes_per_token;
    else if (placement.engine == EngineKind::Vllm && kv_layers(placement).windowed > 0)
      found.tokens = vllm_kv_tokens(placement, found.kv_bytes, settings);
    else
      found.tokens = kv_sequence_tokens(placement, found.kv_bytes);
    found.blocks = found.tokens / settings.block_tokens;
  }
  if (found.blocks > 0) return found;
  const std::uint64_t block_bytes = settings.kv_bytes_per_token
                                        ? found.kv_bytes_per_token * settings.block_tokens
                                        : kv_sequence_bytes(placement, settings.block_tokens);
  return tl::unexpected(does_not_fit(placement, found, block_bytes, scale));
}

}  // namespace servecast::perf
