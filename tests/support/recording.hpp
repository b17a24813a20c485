// SPDX-License-Identifier: Apache-2.0
// Everything one run told, kept, and the comparison of two runs field by field.
//
//   Recording plain = record(deployment, workload, {.stepping = true});
//   Recording fast = record(deployment, workload, {});
//   EXPECT_EQ(first_difference(plain, fast), std::nullopt);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/records.hpp"
#include "replay/simulation.hpp"

namespace servecast::test {

struct RecordedRequest {
  replay::RequestRecord record;  // its `history` is empty; see below
  std::vector<replay::Admission> history;
};

struct Recording {
  std::vector<RecordedRequest> requests;      // by creation ordinal
  std::vector<replay::PassRecord> passes;     // by worker, pass and rank; empty unless captured
  std::vector<replay::KvEventRecord> events;  // by worker, rank and event; empty unless captured
  replay::RunTotals totals;
  bool has_passes = false, has_events = false, has_history = false;
  Problems problems;  // not empty: the run failed, the rest is what was told until then
};

Recording record(const replay::Deployment& deployment, const workload::Workload& workload,
                 const replay::Options& options);

// The first field in which two runs of the same input differ, as "request 7: first_token 10 ms, 12
// ms". What only one of them captured is not compared. Nothing when they agree.
std::optional<std::string> first_difference(const Recording& a, const Recording& b);

std::string_view to_string(replay::Status status);
std::string_view to_string(replay::Reason reason);

}  // namespace servecast::test
