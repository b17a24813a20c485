// SPDX-License-Identifier: Apache-2.0
// What a layer of a model is made of: a mixer, through which tokens see each other, and a
// feed-forward part. Widths are in elements; a part that a model does not have is 0.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

namespace servecast::catalog {

struct NoMixer {
  friend bool operator==(const NoMixer&, const NoMixer&) = default;
};

// Multi-head, multi-query and grouped-query attention. The KV cache holds K and V of every KV head.
// head_dim is the file's own value, not hidden / heads.
struct GroupedAttention {
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;        // of Q and K
  std::uint32_t head_dim_value = 0;  // of V; mostly head_dim
  std::uint32_t window = 0;          // a query sees so many tokens at most; 0: all
  bool qk_norm = false;              // Q and K are normalised per head
  bool output_gate = false;          // a second Q-wide projection gates the output
  bool key_is_value = false;         // no V projection; K is stored as V too
  friend bool operator==(const GroupedAttention&, const GroupedAttention&) = default;
};

// Picks the `tokens` entries of the KV cache that a query attends to.
struct SparseIndex {
  std::uint32_t heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t tokens = 0;
  bool own = true;  // false: the layer attends to what an earlier layer picked
  friend bool operator==(const SparseIndex&, const SparseIndex&) = default;
};

// Multi-head latent attention: the KV cache holds kv_rank + head_dim_rope elements a token, the
// same on every tensor-parallel rank.
struct LatentAttention {
  std::uint32_t heads = 0;
  std::uint32_t query_rank = 0;  // 0: Q is projected at once
  std::uint32_t kv_rank = 0;
  std::uint32_t head_dim_nope = 0;  // part of a Q or K head without position
  std::uint32_t head_dim_rope = 0;  // part with position, shared by all heads in K
  std::uint32_t head_dim_value = 0;
  bool output_gate = false;
  std::optional<SparseIndex> index = std::nullopt;
  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

// Gated DeltaNet: a state of value_heads * key_dim * value_dim numbers a request.
struct GatedDelta {
  std::uint32_t key_heads = 0;
  std::uint32_t key_dim = 0;
  std::uint32_t value_heads = 0;
  std::uint32_t value_dim = 0;
  std::uint32_t conv_width = 0;
  friend bool operator==(const GatedDelta&, const GatedDelta&) = default;
};

// Kimi Delta Attention: a state of heads * head_dim * head_dim numbers a request.
struct KimiDelta {
  std::uint32_t heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t conv_width = 0;
  friend bool operator==(const KimiDelta&, const KimiDelta&) = default;
};

// Mamba-2: a state of heads * head_dim * state numbers a request.
struct Mamba2 {
  std::uint32_t heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t groups = 0;  // share B and C
  std::uint32_t state = 0;
  std::uint32_t conv_width = 0;
  friend bool operator==(const Mamba2&, const Mamba2&) = default;
};

// DeepSeek-V4: one KV head whose K is its V; the last `window` tokens as they are, and, with a
// ratio, one compressed entry for each `ratio` tokens of the whole context.
struct CompressedAttention {
  std::uint32_t heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t query_rank = 0;
  std::uint32_t output_groups = 0;
  std::uint32_t output_rank = 0;  // of each group
  std::uint32_t window = 0;
  std::uint32_t ratio = 0;                          // 0: the window only
  std::optional<SparseIndex> index = std::nullopt;  // picks among the compressed entries
  friend bool operator==(const CompressedAttention&, const CompressedAttention&) = default;
};

// MiniMax-M3: grouped attention to the blocks that an indexer picks.
struct BlockSparseAttention {
  GroupedAttention grouped;
  std::uint32_t index_heads = 0;
  std::uint32_t index_dim = 0;
  std::uint32_t blocks = 0;  // picked
  std::uint32_t block_tokens = 0;
  friend bool operator==(const BlockSparseAttention&, const BlockSparseAttention&) = default;
};

using Mixer = std::variant<NoMixer, GroupedAttention, LatentAttention, GatedDelta, KimiDelta,
                           Mamba2, CompressedAttention, BlockSparseAttention>;

struct NoFeedForward {
  friend bool operator==(const NoFeedForward&, const NoFeedForward&) = default;
};

struct Dense {
  std::uint32_t width = 0;
  bool gated = true;  // three matrices, else two
  friend bool operator==(const Dense&, const Dense&) = default;
};

// Routed experts, with experts that every token passes beside them.
struct Experts {
  std::uint32_t count = 0;
  std::uint32_t per_token = 0;
  std::uint32_t width = 0;         // inner width of one expert
  std::uint32_t shared_width = 0;  // inner width of all shared experts together
  std::uint32_t latent = 0;        // width in which routed experts work; 0: the hidden width
  std::uint32_t dense_width = 0;   // inner width of a dense part beside the experts
  bool gated = true;
  friend bool operator==(const Experts&, const Experts&) = default;
};

using FeedForward = std::variant<NoFeedForward, Dense, Experts>;

// Layers that are equal.
struct LayerGroup {
  std::uint32_t count = 0;
  Mixer mixer;
  FeedForward feed_forward;
  friend bool operator==(const LayerGroup&, const LayerGroup&) = default;
};

}  // namespace servecast::catalog
