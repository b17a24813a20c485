// SPDX-License-Identifier: Apache-2.0
// What a run tells: the only header of this room that report includes. Times are simulated; kNever
// means "did not happen".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/int128.hpp"
#include "base/time.hpp"

namespace servecast::replay {

inline constexpr std::uint32_t kNoIndex = UINT32_MAX;

enum class Status : std::uint8_t { Completed, Rejected, Canceled, Failed };
// Why a request was rejected or failed.
enum class Reason : std::uint8_t {
  None,
  ModelLength,              // prompt >= max_model_len
  PoolTooSmall,             // prompt needs more blocks than the pool has
  PromptExceedsStepBudget,  // no chunked prefill and no room in a pass (decisions.md 12)
  KvCapacity,               // outgrew the pool alone (decisions.md 13)
};

struct Admission {
  Time at;
  std::uint32_t reused_tokens = 0;  // clamped to the input length
};

// One request with a terminal status.
struct RequestRecord {
  std::uint64_t ordinal = 0;  // creation ordinal; runtime id = ordinal + 1
  std::uint32_t session = 0;  // index in the workload
  std::uint32_t turn = 0;
  std::uint32_t row = kNoIndex;  // trace row, if any
  Status status = Status::Completed;
  Reason reason = Reason::None;
  Time arrival, first_admit = kNever, first_token = kNever, second_token = kNever,
                last_token = kNever;
  Time terminal;
  std::uint32_t input_tokens = 0, requested_output_tokens = 0, output_tokens = 0;
  std::uint32_t reused_tokens =
      0;  // largest reuse over its admissions, clamped to the input length
  std::uint32_t reused_tokens_first = 0;          // at the first admission, clamped likewise
  std::uint32_t worker = 0, rank = 0, ranks = 1;  // rank `rank` of its worker's `ranks`
  std::uint32_t admissions = 0, preemptions = 0;
  std::uint64_t kv_needed = 0, kv_available = 0;  // Reason PoolTooSmall and KvCapacity: blocks, or
  bool kv_in_bytes = false;                       // bytes
  std::span<const Admission> history;  // every admission, only when per-request capture is on
};

// One rank's part of a forward pass of a worker (fields as in the conformance pass files). Every
// rank of the worker has one, also one that had nothing to do.
struct PassRecord {
  struct Scheduled {
    std::uint64_t request;
    std::uint32_t from, to;
  };  // tokens [from, to) computed
  struct Admitted {
    std::uint64_t request;
    std::uint32_t reused_tokens;
  };
  struct Output {
    std::uint64_t request;
    std::uint32_t tokens;
    bool completed;
  };
  struct Preempted {
    std::uint64_t request;
    std::uint32_t blocks;  // held when it was preempted
  };
  std::uint32_t worker = 0, rank = 0, ranks = 1;
  std::uint64_t pass = 0;    // ordinal on the worker
  Time start, end;           // of the pass: the slowest rank's part
  Duration prefill, decode;  // of this part
  Duration vision = {};      // of this part, before its prefill
  std::uint32_t images = 0;  // that it encodes
  std::uint32_t prefill_requests = 0, decode_requests = 0;
  std::uint64_t total_isl = 0, total_prefix = 0, total_length = 0;
  std::vector<Scheduled> scheduled;
  std::vector<Admitted> admitted;
  std::vector<Preempted> preempted;
  std::vector<std::uint64_t> rejected;
  std::vector<Output> outputs;
  std::uint32_t blocks_active = 0, blocks_inactive = 0, blocks_free = 0, running = 0, waiting = 0;
  std::uint64_t kv_used_bytes = 0, kv_cached_bytes = 0, kv_capacity_bytes = 0;  // grouped caches
  // SGLang: the share of its remaining output that each running request is expected to use, after
  // the pass (engine-sglang.md S7.9).
  std::optional<double> new_token_ratio = {};
};

// One KV cache event of one rank (fields as in the conformance event files). Visible at `at`.
struct KvEventRecord {
  struct Block {
    std::uint64_t hash, tokens_hash;
  };
  Time at;
  std::uint32_t worker = 0, rank = 0, ranks = 1;
  std::uint64_t event = 0;                  // consecutive per rank from 0
  bool stored = false;                      // else removed
  std::optional<std::uint32_t> group = {};  // of grouped caches
  // Whose request stored the blocks, if it belongs to a session of several turns (engine-sglang.md
  // S6.3): its index in the workload.
  std::optional<std::uint32_t> session = {};
  bool has_parent = false;
  std::uint64_t parent = 0;
  std::vector<Block> blocks;          // removed: tokens_hash is 0
  std::vector<std::uint32_t> tokens;  // stored: of all blocks, one after the other
};

// Receives records while the run goes on, in the order in which they become visible.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void on_request(const RequestRecord& record) = 0;
  virtual void on_pass(const PassRecord&) {}
  virtual void on_kv_event(const KvEventRecord&) {}
};

// Gaps between adjacent output tokens of completed requests, as (gap, how often), ascending.
struct GapTable {
  std::vector<std::pair<std::int64_t, std::uint64_t>> gaps_ns;
  bool exact = true;  // else: past the limit of distinct gaps, representatives of 0.1 % buckets
  std::uint64_t count = 0;
  UInt128 sum_ns = 0, sum_squares_ns = 0;  // exact in both cases
};

// Of one rank.
struct PoolState {
  std::uint32_t active = 0, inactive = 0, free = 0;                    // blocks
  std::uint64_t used_bytes = 0, cached_bytes = 0, capacity_bytes = 0;  // of grouped caches
};

// What the loop counted.
struct RunTotals {
  std::uint64_t requests = 0;  // arrivals
  std::uint64_t incomplete_at_cap = 0;
  std::uint64_t passes = 0;  // of workers: the ranks of one run in lockstep
  std::uint64_t preemptions = 0, evictions = 0;
  std::uint64_t prefix_queried_tokens = 0,
                prefix_hit_tokens = 0;  // one lookup per admission (decisions.md 15)
  Time first_arrival = kNever;
  Time end;  // where the clock stopped
  std::uint64_t fingerprint = 0;
  GapTable gaps;
  // With speculation: gaps between the steps that gave a completed request tokens; a burst's own
  // tokens have gaps of 0 among `gaps`.
  std::optional<GapTable> step_gaps;
  // Tokens that decode steps gave, and the steps (engine-vllm.md 3.5); without speculation one
  // each.
  std::uint64_t accepted_tokens = 0, decode_forwards = 0;
  std::vector<PoolState> pools;  // per rank, by worker, at the end
  std::uint32_t workers = 0, ranks_per_worker = 1, gpus_per_worker = 1;
};

}  // namespace servecast::replay
