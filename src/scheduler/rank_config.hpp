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

// In which order an SGLang rank looks at what waits (engine-sglang.md S7.2, decisions.md 30a).
enum class SglangPolicy : std::uint8_t { Fcfs, Lpm, DfsWeight, Lof, Random, Priority };

// Where upstream's simulator and SGLang v0.5.20 itself differ (engine-sglang.md S1.4).
enum class Fidelity : std::uint8_t { Compat, Exact };

// One pool of the workers that prepare requests before the scheduler sees them (engine-sglang.md
// S9).
struct FrontendStage {
  std::uint32_t workers = 1;  // >= 1
  double service_ms = 0;      // of one request alone in the pool; finite, >= 0
  // [c - 1] multiplies service_ms while c requests are served; one for each worker, above 0, or
  // none: all are 1.
  std::vector<double> concurrency_scale = {};
};

// The vision tower of a rank (engine-sglang.md S10).
struct VisionSettings {
  std::uint64_t cache_bytes = 104857600;  // of embeddings kept for reuse; 0: none is kept
};

// An SGLang rank (engine-sglang.md S1.2); a rank with it follows SGLang's rules and none of vLLM's.
struct SglangSettings {
  SglangPolicy policy = SglangPolicy::Fcfs;
  std::uint64_t policy_seed = 42;             // of SglangPolicy::Random
  std::uint32_t chunked_prefill_size = 8192;  // prompt tokens of a pass of all ranks together
  std::uint32_t max_prefill_tokens = 16384;   // of a pass of a rank, beyond the first request
  std::uint32_t clip_max_new_tokens = 4096;   // of a request's output that admission reserves
  double schedule_conservativeness = 1.0;     // scales what running requests are expected to use
  std::uint32_t retract_decode_steps = 20;    // tokens kept free for each survivor
  std::uint32_t decode_log_interval = 40;     // observed decode passes between KV event flushes
  std::uint32_t prefill_decode_interval = 0;  // rounds without prefill after one with
  bool mixed_chunk = false;                   // running requests decode along with a prefill
  bool host_loop = false;  // the next pass is chosen before the last one's result is known (S8)
  Fidelity fidelity = Fidelity::Compat;
  // Requests pass through these stages, in order, before the scheduler receives them; empty: they
  // do not. With host_loop.
  std::vector<FrontendStage> frontend = {};
  std::optional<VisionSettings> vision = {};  // nothing: requests with images are refused
};

// What holds for each of `ranks` attention-data-parallel ranks when `settings` are those of the
// worker (engine-sglang.md S1.3).
inline SglangSettings of_one_rank(SglangSettings settings, std::uint32_t ranks) {
  if (ranks == 1) return settings;
  settings.chunked_prefill_size /= ranks;
  settings.schedule_conservativeness *= 0.3;
  return settings;
}

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
  // SGLang's scheduler. blocks, block_tokens (>= 1), max_sequences, max_model_len, prefix_caching
  // and speculation count; the rest of the fields above are vLLM's.
  std::optional<SglangSettings> sglang = {};

  // The cache is a pool of bytes and not of blocks.
  bool counts_bytes() const { return grouped && !grouped->rules; }
};

}  // namespace servecast::scheduler
