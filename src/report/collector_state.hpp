// SPDX-License-Identifier: Apache-2.0
// What the collector has folded so far. Private to the room.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/int128.hpp"
#include "report/kv_batches.hpp"
#include "report/report.hpp"
#include "report/samples.hpp"
#include "report/text_spool.hpp"

namespace servecast::report {

inline constexpr std::size_t kStatuses = 4;
inline constexpr std::size_t kReasons = 5;

// Mean gap between the output tokens of one request in picoseconds, rounded half up (TPOT).
// requires: tokens >= 2, span_ns >= 0
UInt128 picoseconds_per_token(std::int64_t span_ns, std::uint32_t tokens);

// A request of the cohort: completed, and admitted at least once (replay.md 20.1).
bool is_counted(const replay::RequestRecord& record);

// Does the request keep every bound that is set? False for what is not counted (replay.md 20.2).
bool meets(const Sla& sla, const replay::RequestRecord& record);

struct Collector::State {
  explicit State(CollectorOptions options_in);
  void fold(const replay::RequestRecord& record);
  void fold_latencies(const replay::RequestRecord& record);

  struct Kept {
    replay::RequestRecord record;  // its history is empty; see below
    std::uint64_t history_first = 0;
    std::uint32_t history_count = 0;
  };

  CollectorOptions options;

  std::array<std::uint64_t, kStatuses> by_status{};
  std::array<std::array<std::uint64_t, kReasons>, kStatuses> by_reason{};

  // Of the cohort.
  std::uint64_t counted = 0;
  std::uint64_t input_tokens = 0, output_tokens = 0;
  std::uint64_t reused_tokens = 0, reused_tokens_first = 0;
  std::uint64_t gaps = 0;  // between adjacent output tokens
  UInt128 gaps_ns = 0;
  Time last_completion{0};
  std::uint64_t context_limited = 0;  // completed with fewer tokens than asked: max_model_len
  std::uint64_t good = 0, good_output_tokens = 0;

  SampleStore ttft_ns, ttst_ns, e2e_ns;
  SampleStore tpot_ps;
  ExactSums
      output_micro_tps;    // per request: (n - 1) / (last - first) in 1e-6 tokens/s, spans > 0 only
  bool too_large = false;  // a sample passed 63 bits

  std::vector<Kept> kept;
  std::vector<replay::Admission> history;  // of all kept requests
  TextSpool passes, kv_events;
  std::optional<KvBatches> kv_batches;  // of options.kv_events_wire
};

}  // namespace servecast::report
