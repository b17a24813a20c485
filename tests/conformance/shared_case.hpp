// SPDX-License-Identifier: Apache-2.0
// One case of the shared vLLM reference results: a deployment, a trace, and what a slow reference
// simulator computed for them. Which fields of args.json mean what is written in the README beside
// those cases.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "replay/simulation.hpp"
#include "support/trace_file.hpp"
#include "workload/spec.hpp"

namespace servecast::test {

// Times in milliseconds, as the files have them.
struct ExpectedRequest {
  std::optional<double> arrival, first_admit, first_token, last_token, terminal;
  std::uint32_t input_tokens = 0, requested_output_tokens = 0, output_tokens = 0;
  std::uint32_t reused_first = 0, reused = 0;  // not clamped to the input
  std::uint32_t preemptions = 0, worker = 0;
  std::string status;
};

struct ExpectedPass {
  std::uint32_t worker = 0;
  std::uint64_t pass = 0;
  double start = 0, end = 0, prefill = 0, decode = 0;
  std::uint32_t prefill_requests = 0, decode_requests = 0;
  std::uint64_t total_isl = 0, total_prefix = 0, total_length = 0;
  std::vector<replay::PassRecord::Scheduled> scheduled;
  std::vector<replay::PassRecord::Admitted> admitted;
  std::vector<replay::PassRecord::Preempted> preempted;
  std::vector<std::uint64_t> rejected;
  std::vector<replay::PassRecord::Output> outputs;
  std::uint32_t blocks_active = 0, blocks_inactive = 0, blocks_free = 0, running = 0, waiting = 0;
};

struct SharedCase {
  std::string name;
  replay::Deployment deployment;
  workload::Spec spec;
  std::shared_ptr<const TraceFile> trace;  // what spec.source names
  std::vector<ExpectedRequest> requests;   // by trace row
  std::map<std::string, double> summary;   // the numbers of summary.json
  std::vector<std::uint64_t> passes_per_worker;
  std::vector<replay::PoolState> final_pools;
  std::vector<ExpectedPass> passes;  // by worker, then pass; empty when the case has none
};

// What a row of expected.jsonl says alike for every engine.
ExpectedRequest read_request_facts(const nlohmann::json& row);

// Every case folder, five large ones first, then micro/.
std::vector<std::filesystem::path> shared_vllm_cases(const std::filesystem::path& folder);

// Throws std::runtime_error when a file is missing or has an argument this reader does not know.
SharedCase read_shared_case(const std::filesystem::path& folder);

}  // namespace servecast::test
