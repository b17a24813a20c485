// SPDX-License-Identifier: Apache-2.0
#include "perf/kv_bytes.hpp"

#include <algorithm>
#include <variant>

#include "perf/precision.hpp"

namespace servecast::perf {
namespace {

std::uint64_t div_ceil(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

constexpr std::uint64_t kKimiDeltaSlots = 5;  // state slots that engines keep for a request

struct KvParts {
  std::uint64_t tensor;
  catalog::Precision precision;

  using Parts = std::vector<KvPart>;
  std::uint64_t share(std::uint64_t heads) const { return div_ceil(heads, tensor); }

  Parts operator()(const catalog::NoMixer&) const { return {}; }

  // Engines store V even where it equals K.
  Parts operator()(const catalog::GroupedAttention& a) const {
    const std::uint64_t width = std::uint64_t{a.head_dim} + a.head_dim_value;
    return {{.bytes = bytes_of(precision, share(a.kv_heads) * width), .window = a.window}};
  }

  Parts operator()(const catalog::LatentAttention& a) const {
    if (!a.index)
      return {{.bytes = bytes_of(precision, std::uint64_t{a.kv_rank} + a.head_dim_rope)}};
    // The part with position stays in 2 bytes; an indexer keeps 1 byte an element and a 4-byte
    // scale for each 128.
    const std::uint64_t index =
        a.index->own ? a.index->head_dim + div_ceil(a.index->head_dim, 128) * 4 : 0;
    return {{.bytes = bytes_of(precision, a.kv_rank) + 2 * std::uint64_t{a.head_dim_rope} + index}};
  }

  Parts operator()(const catalog::GatedDelta& a) const {
    const std::uint64_t channels =
        2 * std::uint64_t{a.key_heads} * a.key_dim + std::uint64_t{a.value_heads} * a.value_dim;
    const std::uint64_t state = a.value_heads / tensor * a.key_dim * a.value_dim * 4;
    return {{.bytes_per_request = state + channels / tensor * (a.conv_width - 1) * 2}};
  }

  Parts operator()(const catalog::KimiDelta& a) const {
    const std::uint64_t width = a.heads / tensor * a.head_dim;
    const std::uint64_t slot =
        width * a.head_dim * 4 + (std::uint64_t{a.conv_width} - 1) * 3 * width * 2;
    return {{.bytes_per_request = kKimiDeltaSlots * slot}};
  }

  Parts operator()(const catalog::Mamba2& a) const {
    const std::uint64_t inner = a.heads / tensor * a.head_dim;
    const std::uint64_t groups = std::max<std::uint64_t>(a.groups / tensor, 1);
    return {{.bytes_per_request =
                 inner * a.state * 4 + (inner + 2 * groups * a.state) * (a.conv_width - 1) * 2}};
  }

  // A compressor holds the tokens that wait for the next entry, in 4 bytes; an indexer 4-bit keys
  // and a compressor of its own.
  Parts operator()(const catalog::CompressedAttention& a) const {
    const std::uint64_t entry = bytes_of(precision, a.head_dim);
    Parts parts{{.bytes = entry, .window = a.window}};
    if (a.ratio == 0) return parts;
    const std::uint64_t overlap = a.ratio == 4 ? 2 : 1;
    parts.push_back({.bytes = entry,
                     .ratio = a.ratio,
                     .bytes_per_request = 2 * std::uint64_t{a.ratio} * overlap * a.head_dim * 4});
    if (a.index)
      parts.push_back(
          {.bytes = a.index->head_dim / 2,
           .ratio = a.ratio,
           .bytes_per_request = 2 * std::uint64_t{a.ratio} * overlap * a.index->head_dim * 4});
    return parts;
  }

  // The indexer has one key head.
  Parts operator()(const catalog::BlockSparseAttention& a) const {
    Parts parts = (*this)(a.grouped);
    parts.front().bytes += bytes_of(precision, a.index_dim);
    return parts;
  }
};

struct StagePart {
  std::uint64_t layers;
  KvPart part;
  std::uint64_t bytes(std::uint64_t tokens) const {
    const std::uint64_t kept = part.window > 0 ? std::min(tokens, part.window) : tokens;
    return layers * (kept / part.ratio * part.bytes + part.bytes_per_request);
  }
};
using StageParts = std::vector<StagePart>;

std::uint64_t bytes_of(const StageParts& parts, std::uint64_t tokens) {
  std::uint64_t sum = 0;
  for (const StagePart& part : parts) sum += part.bytes(tokens);
  return sum;
}

// In units of 1/128 byte, so that compressed entries count.
std::uint64_t token_bytes_128(const StageParts& parts) {
  std::uint64_t sum = 0;
  for (const StagePart& part : parts) sum += part.layers * part.part.bytes * 128 / part.part.ratio;
  return sum;
}

// Of the stage that keeps most of a token.
StageParts parts_of(const Placement& placement) {
  StageParts most;
  for (const StageLayers& stage : stages_of(placement)) {
    StageParts parts;
    for (std::size_t g = 0; g < stage.of_group.size(); ++g) {
      if (stage.of_group[g] == 0) continue;
      for (const KvPart& part : kv_parts(placement.model.groups[g].mixer, placement))
        parts.push_back({stage.of_group[g], part});
    }
    if (most.empty() || token_bytes_128(parts) > token_bytes_128(most)) most = std::move(parts);
  }
  return most;
}

constexpr std::uint64_t kTokensMax = std::uint64_t{1} << 40;

}  // namespace

std::vector<KvPart> kv_parts(const catalog::Mixer& mixer, const Placement& placement) {
  return std::visit(KvParts{placement.parallelism.tensor, placement.precisions.kv_cache}, mixer);
}

std::uint64_t kv_sequence_bytes(const Placement& placement, std::uint64_t tokens) {
  return bytes_of(parts_of(placement), tokens);
}

std::uint64_t kv_token_bytes(const Placement& placement) {
  return token_bytes_128(parts_of(placement)) / 128;
}

std::uint64_t state_request_bytes(const Placement& placement) {
  return kv_sequence_bytes(placement, 0);
}

std::uint64_t kv_sequence_tokens(const Placement& placement, std::uint64_t bytes) {
  const StageParts parts = parts_of(placement);
  if (bytes_of(parts, 0) > bytes) return 0;
  if (bytes_of(parts, kTokensMax) <= bytes) {
    const std::uint64_t unit = token_bytes_128(parts);
    return unit == 0 ? kTokensMax : bytes * 128 / unit;
  }
  std::uint64_t fits = 0, too_many = kTokensMax;
  while (too_many - fits > 1) {
    const std::uint64_t middle = fits + (too_many - fits) / 2;
    (bytes_of(parts, middle) <= bytes ? fits : too_many) = middle;
  }
  return fits;
}

std::optional<KvLayers> kv_layers(const Placement& placement) {
  KvLayers found;
  for (const StagePart& stage : parts_of(placement)) {
    const KvPart& part = stage.part;
    const bool plain = part.ratio == 1 && part.bytes_per_request == 0;
    const bool same = found.layer_bytes == 0 || found.layer_bytes == part.bytes;
    const bool window_fits = part.window == 0 || found.window == 0 || found.window == part.window;
    if (!plain || !same || !window_fits) return std::nullopt;
    found.layer_bytes = part.bytes;
    (part.window == 0 ? found.global : found.windowed) += stage.layers;
    if (part.window > 0) found.window = part.window;
  }
  return found.layer_bytes == 0 ? std::nullopt : std::optional(found);
}

}  // namespace servecast::perf
