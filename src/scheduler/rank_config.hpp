// SPDX-License-Identifier: Apache-2.0
// Settings of one scheduler rank (engine-vllm.md 2). Checked by config; defaults stand here.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cache/align_split.hpp"
#include "cache/kv_groups.hpp"
#include "scheduler/speculation.hpp"

namespace servecast::scheduler {

// Who loses its blocks when they run out: the last admitted or the first. With
// SchedulingPolicy::Priority it is the least urgent, the latest arrival among equals.
enum class PreemptionMode : std::uint8_t { Lifo, Fifo };

// In which order requests wait: as they arrived, or the most urgent first.
enum class SchedulingPolicy : std::uint8_t { Fcfs, Priority };

// Where engines of one scheduler family differ: data, so that another engine is another row.
struct EngineRules {
  // A hit never covers the whole known context, so that its last token is computed again for the
  // logits; without it a wholly cached prompt decodes at once (engine-vllm.md 7.3).
  bool recomputes_last = true;
  // Admission promises every request the blocks of its whole output, so that nobody is ever
  // preempted (engine-vllm.md 14, "guaranteed no evict").
  bool promises_output = false;
};
inline constexpr EngineRules kVllmRules{};
inline constexpr EngineRules kTrtllmRules{.recomputes_last = false, .promises_output = true};

// A model with recurrent state beside its KV, both in the blocks of the pool (engine-vllm.md 9).
struct StateCacheSettings {
  std::uint32_t blocks = 1;  // of one state
  // Prefixes are matched at its multiples, a divisor of block_tokens, and prefills stop where their
  // state is worth keeping; 0: at blocks, and prefills do not stop.
  std::uint32_t match_unit = 0;
  cache::AlignBoundary boundary = cache::AlignBoundary::PromptMinusOne;
};

// A model whose layers keep KV in several shapes (engine-vllm.md 10). Passed cache::grouped_gate.
struct GroupedCacheSettings {
  std::vector<cache::KvGroup> groups = {};
  std::uint64_t capacity_bytes = 0;  // of the pool that all groups share
  // With prefix caching: a pool of blocks. Nothing: a pool of bytes.
  std::optional<cache::GroupedRules> rules = {};
};

struct RankConfig {
  EngineRules rules = {};
  std::uint32_t blocks = 16384;                // KV blocks of the pool
  std::uint32_t block_tokens = 64;             // >= 2
  std::uint32_t max_sequences = 256;           // running requests
  std::uint32_t max_batched_tokens = 8192;     // token budget of a pass
  std::optional<std::uint32_t> max_model_len;  // prompt + output
  bool prefix_caching = true;
  bool chunked_prefill = true;
  PreemptionMode preemption_mode = PreemptionMode::Lifo;
  SchedulingPolicy policy = SchedulingPolicy::Fcfs;
  // In a group of ranks only every so many passes prefill while somebody decodes (throttle.cpp).
  std::uint32_t prefill_schedule_interval = 1;  // >= 1; 1: every pass
  std::optional<Speculation> speculation = {};
  // Another cache than the linear pool (rank_kv.hpp), at most one. vLLM's rules only, without
  // speculation. With groups `blocks` is 0 and block_tokens means nothing.
  std::optional<StateCacheSettings> state = {};
  std::optional<GroupedCacheSettings> grouped = {};

  // The cache is a pool of bytes and not of blocks.
  bool counts_bytes() const { return grouped && !grouped->rules; }
};

}  // namespace servecast::scheduler
