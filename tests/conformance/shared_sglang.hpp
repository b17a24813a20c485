// SPDX-License-Identifier: Apache-2.0
// One case of the shared SGLang reference results. Which flags of args.json mean what is written in
// the README beside those cases.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "conformance/shared_case.hpp"
#include "support/recording.hpp"

namespace servecast::test {

// Times in milliseconds, as the files have them. With the overlapped loop a pass is an iteration:
// it ends when the forward before is observed, and launches what it names.
struct SglangPass {
  std::uint32_t worker = 0;
  std::uint64_t pass = 0;
  double start = 0, end = 0;
  double device = 0;                                 // time of the forward that it launched
  std::string kind;                                  // prefill, decode or empty
  std::vector<replay::PassRecord::Scheduled> batch;  // of a prefill
  std::vector<std::uint64_t> rows;                   // of a decode, in running order, with ghosts
  std::uint64_t sum_len = 0;                         // known tokens of the rows
  std::vector<std::uint64_t> retracted;
  std::uint32_t running = 0, waiting = 0;
  std::uint64_t available = 0, evictable = 0;  // tokens
  double ratio = 0;
};

struct SglangEvent {
  double time = 0;
  replay::KvEventRecord event;  // without a time
};

// Of one request, by trace row.
struct SglangHistory {
  std::vector<double> admitted, tokens;
  std::vector<std::uint32_t> reused;  // at each admission, not clamped to the input
};

struct SharedSglangCase {
  // Retractions stand as preemptions; the summary has the numbers that a report gives too.
  SharedCase common;
  std::vector<SglangHistory> histories;
  std::vector<SglangPass> passes;    // by worker, then pass; empty where the file is of another run
  std::vector<SglangEvent> events;   // by worker, then event
  std::vector<double> final_ratios;  // by worker
  std::uint64_t prefill_passes = 0, decode_passes = 0, stored_blocks = 0, removed_blocks = 0;
};

// Throws std::runtime_error at a word that names no policy.
scheduler::SglangPolicy sglang_policy(const std::string& word);

// Fills deployment and load from flags such as --page-size 4 --overlap; returns the tokens of a
// trace block. Throws std::runtime_error at a flag that it does not know.
std::uint32_t read_sglang_args(const std::vector<std::string>& args, SharedCase& out);

// Throws std::runtime_error when a file is missing or does not agree with itself.
SharedSglangCase read_shared_sglang_case(const std::filesystem::path& folder);

// The first mismatch in words, or nothing. The rest of a case is compared as those of vLLM are
// (expectations.hpp).
std::optional<std::string> sglang_passes_mismatch(const SharedSglangCase& expected,
                                                  const Recording& run);
std::optional<std::string> sglang_events_mismatch(const SharedSglangCase& expected,
                                                  const Recording& run);
// Admissions where they were captured, token times where passes were, and the gaps of all tokens.
std::optional<std::string> sglang_histories_mismatch(const SharedSglangCase& expected,
                                                     const Recording& run);

}  // namespace servecast::test
