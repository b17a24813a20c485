// SPDX-License-Identifier: Apache-2.0
// Small workloads for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
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
  std::string extra_key = "";
};

inline workload::Workload built(const workload::Spec& spec) {
  return workload::build(spec).value();
}

// A folder that nobody else has, also when tests run at the same time.
inline std::filesystem::path new_folder() {
  const std::filesystem::path parent = std::filesystem::temp_directory_path();
  for (int number = 0;; ++number) {
    const std::filesystem::path folder = parent / ("servecast-replay-" + std::to_string(number));
    if (std::filesystem::create_directory(folder)) return folder;
  }
}

// `concurrency` 0 replays the times of the rows as they are.
inline workload::Workload a_trace(const std::vector<Row>& rows, std::uint32_t concurrency = 0) {
  const std::filesystem::path folder = new_folder();
  const std::string path = (folder / "trace.jsonl").string();
  std::ofstream file(path);
  std::uint32_t fresh = 1000000;
  for (const Row& row : rows) {
    file << "{\"input_length\":" << row.input << ",\"output_length\":" << row.output;
    if (row.at_ms) file << ",\"timestamp\":" << *row.at_ms;
    if (row.delay_ms) file << ",\"delay\":" << *row.delay_ms;
    if (!row.session.empty()) file << ",\"session_id\":\"" << row.session << '"';
    if (!row.extra_key.empty()) file << ",\"extra_key\":\"" << row.extra_key << '"';
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
  std::filesystem::remove_all(folder);
  return workload;
}

}  // namespace servecast::replay
