// SPDX-License-Identifier: Apache-2.0
// The keys of each kind of layer part, told once for reading and writing: `v` is a CardReader or a
// CardWriter (card_text.cpp). `size` must stand and be above 0; `size_or` and `flag` may be left
// out when they equal their default.
#pragma once

#include <cstdint>

#include "catalog/layers.hpp"
#include "catalog/model_card.hpp"

namespace servecast::catalog {

template <class V>
void fields_of(V&, NoMixer&) {}

template <class V>
void fields_of(V& v, GroupedAttention& a) {
  v.size("heads", a.heads);
  v.size("kv_heads", a.kv_heads);
  v.size("head_dim", a.head_dim);
  v.size_or("head_dim_value", a.head_dim_value, a.head_dim);
  v.size_or("window", a.window, 0);
  v.flag("qk_norm", a.qk_norm);
  v.flag("output_gate", a.output_gate);
  v.flag("key_is_value", a.key_is_value);
}

template <class V>
void fields_of(V& v, SparseIndex& i) {
  v.size("heads", i.heads);
  v.size("head_dim", i.head_dim);
  v.size("tokens", i.tokens);
  bool shared = !i.own;
  v.flag("shared", shared);
  i.own = !shared;
}

template <class V>
void fields_of(V& v, LatentAttention& a) {
  v.size("heads", a.heads);
  v.size_or("query_rank", a.query_rank, 0);
  v.size("kv_rank", a.kv_rank);
  v.size("head_dim_nope", a.head_dim_nope);
  v.size("head_dim_rope", a.head_dim_rope);
  v.size("head_dim_value", a.head_dim_value);
  v.flag("output_gate", a.output_gate);
  v.part("index", a.index);
}

template <class V>
void fields_of(V& v, GatedDelta& a) {
  v.size("key_heads", a.key_heads);
  v.size("key_dim", a.key_dim);
  v.size("value_heads", a.value_heads);
  v.size("value_dim", a.value_dim);
  v.size("conv_width", a.conv_width);
}

template <class V>
void fields_of(V& v, KimiDelta& a) {
  v.size("heads", a.heads);
  v.size("head_dim", a.head_dim);
  v.size("conv_width", a.conv_width);
}

template <class V>
void fields_of(V& v, Mamba2& a) {
  v.size("heads", a.heads);
  v.size("head_dim", a.head_dim);
  v.size("groups", a.groups);
  v.size("state", a.state);
  v.size("conv_width", a.conv_width);
}

template <class V>
void fields_of(V& v, CompressedAttention& a) {
  v.size("heads", a.heads);
  v.size("head_dim", a.head_dim);
  v.size("query_rank", a.query_rank);
  v.size("output_groups", a.output_groups);
  v.size("output_rank", a.output_rank);
  v.size("window", a.window);
  v.size_or("ratio", a.ratio, 0);
  v.part("index", a.index);
}

template <class V>
void fields_of(V& v, BlockSparseAttention& a) {
  fields_of(v, a.grouped);
  v.size("index_heads", a.index_heads);
  v.size("index_dim", a.index_dim);
  v.size("blocks", a.blocks);
  v.size("block_tokens", a.block_tokens);
}

template <class V>
void fields_of(V&, NoFeedForward&) {}

template <class V>
void fields_of(V& v, Dense& d) {
  v.size("width", d.width);
  bool ungated = !d.gated;
  v.flag("ungated", ungated);
  d.gated = !ungated;
}

template <class V>
void fields_of(V& v, Experts& e) {
  v.size("count", e.count);
  v.size("per_token", e.per_token);
  v.size("width", e.width);
  v.size_or("shared_width", e.shared_width, 0);
  v.size_or("latent", e.latent, 0);
  v.size_or("dense_width", e.dense_width, 0);
  bool ungated = !e.gated;
  v.flag("ungated", ungated);
  e.gated = !ungated;
}

template <class V>
void fields_of(V& v, Vision& t) {
  v.size("layers", t.layers);
  v.size("hidden", t.hidden);
  v.size("heads", t.heads);
  v.size("width", t.width);
  v.size("patch", t.patch);
  v.size_or("merge", t.merge, 1);
  v.size("hidden_out", t.hidden_out);
  v.size_or("deepstack", t.deepstack, 0);
}

// The name of each kind in a card. In the order of the variants' alternatives.
inline constexpr const char* kMixerKinds[] = {"none",        "grouped",     "latent",
                                              "gated_delta", "kimi_delta",  "mamba2",
                                              "compressed",  "block_sparse"};
inline constexpr const char* kFeedForwardKinds[] = {"none", "dense", "experts"};

}  // namespace servecast::catalog
