// SPDX-License-Identifier: Apache-2.0
#include "perf/memory.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <variant>

#include "base/check.hpp"
#include "base/int128.hpp"
#include "perf/matrices.hpp"
#include "perf/precision.hpp"

namespace servecast::perf {
namespace {

using catalog::EngineKind;
using catalog::ModelCard;
using catalog::Precision;

// Share of free memory that TensorRT-LLM holds back (perfmodel.md 9.3).
constexpr double kTensorRtLlmReserve = 0.015;

std::uint64_t div_ceil(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

// Whether vLLM's pool holds blocks of layers with and without a window.
bool has_windows(const Placement& placement) {
  const std::optional<KvLayers> layers = kv_layers(placement);
  return layers && layers->windowed > 0;
}

// Kernels for mxfp4 weights on Hopper take widths that are multiples of 256 (hidden) and 128
// (inner, of one rank); vLLM pads its copy. Checked against logged weights: kv_capacity.csv.
std::uint64_t expert_bytes(const Placement& placement, ExpertShard shard) {
  const bool padded = placement.precisions.experts == Precision::Mxfp4 &&
                      placement.engine == EngineKind::Vllm &&
                      placement.system.sm.value_or(0) / 10 == 9;
  if (padded) {
    shard.hidden = div_ceil(shard.hidden, 256) * 256;
    shard.width = div_ceil(shard.width, 128) * 128;
  }
  return bytes_of(placement.precisions.experts, shard.elements());
}

std::uint64_t bytes_of_matrices(const std::vector<Matrix>& list) {
  std::uint64_t bytes = 0;
  for (const Matrix& m : list) bytes += bytes_of(m.precision, m.out * m.in);
  return bytes;
}

// Elements of all heads of Q together: the width that the activation formula counts in. Latent
// attention counts the hidden width (its config gives hidden / heads as head width).
std::uint64_t attention_width(const ModelCard& model) {
  for (const catalog::LayerGroup& group : model.groups) {
    if (const auto* a = std::get_if<catalog::GroupedAttention>(&group.mixer))
      return std::uint64_t{a->heads} * a->head_dim;
    if (const auto* a = std::get_if<catalog::BlockSparseAttention>(&group.mixer))
      return std::uint64_t{a->grouped.heads} * a->grouped.head_dim;
  }
  return model.hidden;
}

// Twice the activations' factor of perfmodel.md 9.1 for 1, 2, 4 and 8 tensor ranks.
std::array<std::uint64_t, 4> activation_factors_doubled(const Placement& placement) {
  using F = catalog::Family;
  const bool sglang = placement.engine == EngineKind::Sglang;
  switch (placement.model.family) {
    case F::Llama:
    case F::Qwen3Vl:
      if (sglang) return {28, 17, 13, 13};
      return {22, 13, 10, 10};
    case F::Moe:
    case F::DeepSeek:
    case F::DeepSeekV32:
    case F::DeepSeekV4:
    case F::KimiK25:
    case F::KimiK3:
    case F::Gemma4:
    case F::Step3p7:
    case F::Qwen3VlMoe:
      if (sglang) return {56, 34, 26, 26};
      return {44, 26, 20, 20};
    case F::Gpt:
    case F::NemotronNas:
    case F::NemotronH:
    case F::MiniMaxM3:
    case F::HybridMoe:
    case F::Qwen35:
      break;
  }
  if (sglang) return {26, 16, 13, 13};
  return {20, 12, 10, 10};
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

// Whether "1.2.3" comes before `major`.`minor`; an empty version does not.
bool is_before(std::string_view version, unsigned major, unsigned minor) {
  unsigned parts[2] = {0, 0};
  const char* at = version.data();
  const char* end = at + version.size();
  for (unsigned& part : parts) {
    const auto read = std::from_chars(at, end, part);
    if (read.ec != std::errc{}) return false;
    at = read.ptr < end ? read.ptr + 1 : end;
  }
  return parts[0] < major || (parts[0] == major && parts[1] < minor);
}

// Prefill chunk and largest batch of a CUDA graph that SGLang takes for a GPU of so many MiB.
struct SglangSizes {
  std::uint64_t chunk;
  std::uint64_t batch;
};
SglangSizes sglang_sizes(std::uint64_t mib, std::uint64_t ranks) {
  const bool few = ranks < 4;
  if (mib < 20 * 1024) return {2048, 8};
  if (mib < 35 * 1024) return {2048, few ? 24u : 80u};
  if (mib < 60 * 1024) return {4096, few ? 32u : 160u};
  if (mib < 160 * 1024) return {8192, few ? 256u : 512u};
  return {16384, 512};
}

// SGLang counts attention-data ranks among its tensor ranks.
double sglang_fraction(const Placement& placement) {
  const Parallelism& p = placement.parallelism;
  const std::uint64_t mib = placement.system.memory_bytes >> 20;
  const std::uint64_t ranks = std::uint64_t{p.tensor} * p.attention_data * p.context;
  const SglangSizes sizes = sglang_sizes(mib, ranks);
  double reserve = 512.0 + 1.5 * double(sizes.chunk) + double(ranks * p.pipeline) / 8.0 * 1024.0 +
                   2.0 * double(sizes.batch);
  if (p.attention_data > 1)
    reserve += (sizes.batch > 300 ? 4.5 : 3.0) * double(sizes.batch) * p.attention_data;
  if (mib > 60 * 1024) reserve = std::max(reserve, 10.0 * 1024.0);
  return std::round((double(mib) - reserve) / double(mib) * 1000.0) / 1000.0;
}

}  // namespace

std::uint64_t MemoryParts::sum() const {
  return weights + activations + collectives + others + cuda_graphs;
}

std::uint64_t weight_bytes(const Placement& placement) {
  const RankMatrices list = matrices_of(placement);
  std::vector<std::uint64_t> layer_bytes;
  for (const LayerMatrices& layer : list.groups)
    layer_bytes.push_back(bytes_of_matrices(layer.mixer) + bytes_of_matrices(layer.dense) +
                          bytes_of_matrices(layer.mixture) + expert_bytes(placement, layer.routed));
  const std::uint64_t embedding = bytes_of_matrices({list.embedding});
  const std::uint64_t head = bytes_of_matrices({list.head});
  std::uint64_t most = 0;
  for (const StageLayers& stage : stages_of(placement)) {
    std::uint64_t bytes = stage.has_embedding ? embedding : 0;
    // A tied head is the embedding, where both stand in one stage.
    if (stage.has_head && !(placement.model.embeddings_tied && stage.has_embedding)) bytes += head;
    for (std::size_t g = 0; g < layer_bytes.size(); ++g)
      bytes += stage.of_group[g] * layer_bytes[g];
    most = std::max(most, bytes);
  }
  return most;
}

std::uint64_t activation_bytes(const Placement& placement, std::uint64_t tokens) {
  const Parallelism& p = placement.parallelism;
  const bool sglang = placement.engine == EngineKind::Sglang;
  const std::uint64_t width = attention_width(placement.model);
  const std::uint64_t factor = activation_factors_doubled(placement)[index_of_ranks(p.tensor)];
  std::uint64_t bytes = tokens * width * factor;
  if (const catalog::Experts* experts = placement.model.experts()) {
    const catalog::Family family = placement.model.family;
    const bool hidden = family == catalog::Family::Gemma4 || family == catalog::Family::Step3p7;
    bytes += tokens * (hidden ? placement.model.hidden : width) * p.attention_data *
             experts->count * experts->per_token / p.moe_expert / 128 * 4;
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

std::uint64_t vllm_kv_tokens(const Placement& placement, std::uint64_t bytes,
                             const MemorySettings& settings) {
  const std::uint64_t block = settings.block_tokens;
  const std::optional<KvLayers> known = kv_layers(placement);
  if (!known) return kv_sequence_tokens(placement, bytes) / block * block;
  const KvLayers& layers = *known;
  const std::uint64_t layer_bytes = block * layers.layer_bytes;
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

double engine_memory_fraction(const Placement& placement, std::string_view version) {
  switch (placement.engine) {
    case EngineKind::Vllm:
      return is_before(version, 0, 22) ? 0.9 : 0.92;
    case EngineKind::Sglang:
      return sglang_fraction(placement);
    case EngineKind::TensorRtLlm:
      return 0.9;
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
  found.kv_bytes_per_token = settings.kv_bytes_per_token.value_or(kv_token_bytes(placement));

  const double scale = scale_of(placement, settings);
  const double budget =
      kv_budget(placement.engine, found.gpu_bytes, found.parts, found.memory_fraction, scale);
  // SGLang's fraction leaves room for activations outside; they must still fit into the GPU.
  const bool parts_fit = found.parts.sum() < found.gpu_bytes;
  if (budget > 0.0 && parts_fit) {
    found.kv_bytes = static_cast<std::uint64_t>(std::floor(budget));
    if (settings.kv_bytes_per_token)
      found.tokens = found.kv_bytes / found.kv_bytes_per_token;
    else if (placement.engine == EngineKind::Vllm && has_windows(placement))
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
