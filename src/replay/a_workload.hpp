// SPDX-License-Identifier: Apache-2.0
// Small workloads for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workload/workload.hpp"

namespace servecast::replay {

// One row of a trace whose ids stand for four tokens each.
struct Row {
  std::optional<int> at_ms = std::nullopt;
  std::uint32_t input = 4, output = 1;
  std::string session = "";
  std::optional<int> delay_ms = std::nullopt;
  std::vector<std::uint32_t> ids = {};  // none: ids that no other row has
};

inline workload::Workload built(const workload::Spec& spec) {
  Result<workload::Workload> workload = workload::build(spec);
  if (!workload) {
    ADD_FAILURE() << to_text(workload.error().front());
    return {};
  }
  return std::move(*workload);
}

// `concurrency` 0 replays the times of the rows as they are.
inline workload::Workload a_trace(const std::vector<Row>& rows, std::uint32_t concurrency = 0) {
  const std::string path = testing::TempDir() + "servecast-replay-" + std::to_string(getpid());
  std::ofstream file(path);
  std::uint32_t fresh = 1000000;
  for (const Row& row : rows) {
    file << "{\"input_length\":" << row.input << ",\"output_length\":" << row.output;
    if (row.at_ms) file << ",\"timestamp\":" << *row.at_ms;
    if (row.delay_ms) file << ",\"delay\":" << *row.delay_ms;
    if (!row.session.empty()) file << ",\"session_id\":\"" << row.session << '"';
    file << ",\"hash_ids\":[";
    for (std::uint32_t i = 0; i < (row.input + 3) / 4; ++i)
      file << (i > 0 ? "," : "") << (row.ids.empty() ? fresh++ : row.ids[i]);
    file << "]}\n";
  }
  file.close();
  workload::Spec spec;
  spec.source = workload::TraceSource{.path = path, .block_size = 4, .start_as_given = true};
  spec.load.kind =
      concurrency > 0 ? workload::Load::Kind::Concurrency : workload::Load::Kind::TraceTimestamps;
  spec.load.concurrency = concurrency;
  spec.stop = {};
  workload::Workload workload = built(spec);
  std::filesystem::remove(path);
  return workload;
}

}  // namespace servecast::replay
