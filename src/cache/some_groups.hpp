// SPDX-License-Identifier: Apache-2.0
// For tests of grouped caches: groups in one line, settings that pass the gate, prompts with their
// hashes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "cache/kv_groups.hpp"

namespace servecast::cache {

inline constexpr std::uint64_t kPage = 1000;

inline KvGroup a_group(std::string name, GroupKind kind, std::uint32_t block) {
  return {.name = std::move(name),
          .kind = kind,
          .num_layers = 1,
          .block_size_tokens = block,
          .page_size_bytes = kPage,
          .prefix_cacheable = true};
}
inline KvGroup full(std::uint32_t block, std::string name = "full") {
  return a_group(std::move(name), GroupKind::Attention, block);
}
inline KvGroup window(std::uint32_t block, std::uint32_t tokens) {
  KvGroup group = a_group("window", GroupKind::Attention, block);
  group.sliding_window = tokens;
  return group;
}
inline KvGroup chunked(std::uint32_t block, std::uint32_t tokens) {
  KvGroup group = a_group("chunked", GroupKind::Attention, block);
  group.attention_chunk = tokens;
  return group;
}
inline KvGroup state(std::uint32_t block, std::uint32_t checkpoints = 0,
                     std::string name = "state") {
  KvGroup group = a_group(std::move(name), GroupKind::State, block);
  group.prefill_checkpoint_blocks = checkpoints;
  group.mamba_cache_mode = MambaCacheMode::Align;
  return group;
}
inline KvGroup ring(std::uint32_t block) {
  KvGroup group = a_group("ring", GroupKind::Ring, block);
  group.prefix_cacheable = false;
  return group;
}

// GLM-5.3-Flash: full attention, four recurrent states and a ring.
inline std::vector<KvGroup> glm_groups(std::uint32_t checkpoints = 0, std::uint32_t block = 2176) {
  std::vector<KvGroup> groups{full(block)};
  for (int i = 0; i < 4; ++i)
    groups.push_back(state(block, checkpoints, "kda" + std::to_string(i)));
  groups.push_back(ring(block));
  return groups;
}

// Settings that the gate lets pass, for groups with blocks that `unit` divides.
inline GroupedSettings a_setting(const std::vector<KvGroup>& groups, std::uint32_t unit,
                                 std::uint32_t blocks) {
  return {.groups = groups,
          .prefix_match_unit = unit,
          .vllm_version = "0.32.0",
          .max_model_len = 64,
          .capacity_bytes = blocks * kPage,
          .evidence = ProbeEvidence{.ran_with_prefix_caching = true, .hash_block_tokens = unit}};
}

// `count` tokens that continue `tokens`; equal seeds give equal ones.
inline std::vector<std::uint32_t> continued(std::vector<std::uint32_t> tokens, std::size_t count,
                                            std::uint32_t seed) {
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<std::uint32_t>(mix(std::uint64_t{seed} << 32 | i)));
  }
  return tokens;
}
inline std::vector<std::uint32_t> a_prompt(std::size_t count, std::uint32_t seed) {
  return continued({}, count, seed);
}

// Hash of the prefix of `count` tokens, for every count from 0 on.
inline std::vector<std::uint64_t> prefix_hashes(const std::vector<std::uint32_t>& tokens) {
  std::vector<std::uint64_t> hashes{1};
  for (const std::uint32_t token : tokens) hashes.push_back(mix(hashes.back() * 31 + token));
  return hashes;
}
// Those at multiples of the unit, as KnownTokens wants them.
inline std::vector<std::uint64_t> unit_hashes(const std::vector<std::uint32_t>& tokens,
                                              std::uint32_t unit) {
  const std::vector<std::uint64_t> all = prefix_hashes(tokens);
  std::vector<std::uint64_t> hashes;
  for (std::size_t i = unit; i < all.size(); i += unit) hashes.push_back(all[i]);
  return hashes;
}

}  // namespace servecast::cache
