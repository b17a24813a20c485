// SPDX-License-Identifier: Apache-2.0
// Grouped (hybrid) KV caches (engine-vllm.md 10): layers that keep the same kind of state in blocks
// of the same size form a group. What a group is, and what follows from it for prefix caching:
// which blocks a request needs, where a prefix may end, what a version of vLLM does differently.
//
//   const KvGroup kda{.name = "kda0", .kind = GroupKind::State, .num_layers = 9,
//                     .block_size_tokens = 2176, .page_size_bytes = 13'045'120};
//   grouped_gate(settings);                            // grouped_gate.hpp: may it run?
//   const GroupedRules rules = grouped_rules(settings);  // then GroupedBlocks runs by these
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace servecast::cache {

enum class GroupKind : std::uint8_t {
  Attention,
  Convolution,
  State,  // recurrent: Mamba, linear attention
  Ring    // scratch of one block a request
};

enum class MambaCacheMode : std::uint8_t { None, All, Align };

// engine-vllm.md 10.1. Checked by grouped_gate().
struct KvGroup {
  std::string name = {};
  GroupKind kind = GroupKind::Attention;
  std::uint32_t num_layers = 0;
  std::uint32_t block_size_tokens = 0;
  // Of one block over all layers of the group, padding included, on one tensor-parallel rank.
  std::uint64_t page_size_bytes = 0;
  std::optional<std::uint32_t> sliding_window = {};   // tokens, the current one included
  std::optional<std::uint32_t> attention_chunk = {};  // tokens; chunked local attention
  std::optional<bool> prefix_cacheable = {};
  std::optional<std::uint32_t> prefill_checkpoint_blocks = {};  // State: a request's, per prefill
  std::optional<MambaCacheMode> mamba_cache_mode = {};          // State
};

// What vLLM's versions do differently with grouped caches: one row a version. The rest is the same:
// a ring is one block (a sliding tail in 0.31.0, a circular buffer in 0.32.0), a prefill is split
// only for recurrent state, and of windows and states only those at the end of the prompt and at
// the end of a shared prefix are retained.
struct GroupedVersion {
  std::string_view name;
  // A prefill may leave a state inside its last chunk, in a block reserved for it, so that it needs
  // no stop there. Without it that block does not exist.
  bool prefill_checkpoints;
};
inline constexpr std::array kGroupedVersions{
    GroupedVersion{.name = "0.31.0", .prefill_checkpoints = false},
    GroupedVersion{.name = "0.32.0", .prefill_checkpoints = true},
};

// The row of a version, or null.
const GroupedVersion* find_grouped_version(std::string_view name);
// The supported version whose number is nearest.
const GroupedVersion& nearest_grouped_version(std::string_view name);

// What a runtime probe of the deployment saw.
struct ProbeEvidence {
  bool ran_with_prefix_caching = false;
  std::optional<std::uint32_t> hash_block_tokens = {};
};

// The settings of one rank that grouped caches depend on.
struct GroupedSettings {
  std::span<const KvGroup> groups = {};
  bool prefix_caching = true;                           // as asked for
  std::optional<std::uint32_t> prefix_match_unit = {};  // tokens
  std::optional<std::string_view> vllm_version = {};
  std::optional<std::uint32_t> max_model_len = {};  // tokens
  std::uint32_t max_num_batched_tokens = 8192;      // of a pass; at least 1
  std::uint64_t capacity_bytes = 0;                 // of the pool that all groups share
  std::optional<ProbeEvidence> evidence = {};
  // Also keep full blocks of generated tokens, as vLLM does; off: only those of prompts, which
  // under-counts what a next turn finds. Windows and states are of prompts in either case.
  bool key_output_blocks = true;
};

enum class RuleKind : std::uint8_t { Full, Window, ChunkedLocal, State, Ring };

// How prefix caching treats one group (engine-vllm.md 10.4).
struct GroupRule {
  RuleKind kind = RuleKind::Full;
  std::uint32_t block = 0;              // tokens
  std::uint32_t span = 0;               // tokens of the window or of the attention chunk
  std::uint32_t checkpoint_blocks = 0;  // State
  std::uint64_t startup_blocks = 0;     // that one request of max_model_len needs
  // Blocks that a request of any length needs at most, since it gives old ones back.
  std::optional<std::uint64_t> cap = {};

  bool is_cacheable() const { return kind != RuleKind::Ring; }
  // Groups of the same shape are looked up together.
  bool looks_like(const GroupRule& other) const {
    return kind == other.kind && block == other.block && span == other.span;
  }
  // Leading tokens that nothing computed after `computed` tokens reads (a State is read whole, so
  // all but the last token).
  std::uint64_t skipped_tokens(std::uint64_t computed) const;
  // The first number of computed tokens at which so many leading tokens, at least 1, are skipped;
  // UINT32_MAX or more when that never is.
  std::uint64_t computed_until_skipped(std::uint64_t tokens) const;
};

// requires: the group passed the checks of grouped_gate().
GroupRule group_rule(const KvGroup& group, std::uint32_t max_model_len,
                     std::uint32_t max_tokens_in_flight);

struct HitAlignment {
  std::uint64_t tokens = 0;   // a prefix hit is a multiple of it
  bool fine_grained = false;  // it may end inside a block
};
// requires: some rule is cacheable and `unit` divides the block of each that is.
HitAlignment hit_alignment(std::span<const GroupRule> rules, std::uint32_t unit);

// Blocks that one request of max_model_len needs; a pool with fewer is refused.
std::uint64_t startup_blocks(std::span<const GroupRule> rules);

// By what GroupedBlocks runs.
struct GroupedRules {
  std::vector<GroupRule> groups = {};
  // Groups that are looked up together: those of full attention first, then in declaration order.
  std::vector<std::vector<std::uint32_t>> lookups = {};
  std::uint32_t unit = 0;  // tokens from one hash of a prefix to the next
  HitAlignment alignment = {};
  std::uint32_t state_block = 0;         // tokens; 0: no State group, prefills are not split
  bool prefill_checkpoints = false;      // every State group has a block for one
  std::uint32_t max_batched_tokens = 0;  // of a pass
  std::uint32_t blocks = 0;              // of the pool
  std::uint64_t page_bytes = 0;          // of a block
  std::uint64_t capacity_bytes = 0;
  bool key_output_blocks = true;
};

// requires: grouped_gate(settings) lets prefix caching run.
GroupedRules grouped_rules(const GroupedSettings& settings);

// More blocks than this a pool does not number.
inline constexpr std::uint64_t kGroupedBlocksMax = UINT32_MAX - 1;

inline std::uint64_t div_ceil(std::uint64_t tokens, std::uint64_t block) {
  return tokens / block + (tokens % block != 0 ? 1 : 0);
}
inline std::uint64_t floor_to(std::uint64_t tokens, std::uint64_t unit) {
  return tokens - tokens % unit;
}

}  // namespace servecast::cache
