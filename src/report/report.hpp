// SPDX-License-Identifier: Apache-2.0
// From the records of a run to what the user reads: summary, goodput, JSON documents, JSONL rows,
// table. Key names, units and definitions: docs/reference/report.md.
//
//   Collector collector({.sla = {.ttft_ms = 500}, .keep_requests = true});
//   auto totals = replay::run(deployment, workload, options, collector);
//   Result<Report> report = make_report(collector, *totals, facts);
//   std::string text = prediction_json(*report);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/problem.hpp"
#include "cache/kv_wire.hpp"
#include "replay/records.hpp"
#include "report/value.hpp"

namespace servecast::report {

// Bounds that a good request keeps, inclusive (replay.md 20.2). Finite and positive when set.
struct Sla {
  std::optional<double> ttft_ms{}, itl_ms{}, e2e_ms{};  // itl: the request's own mean gap
  bool is_set() const { return ttft_ms || itl_ms || e2e_ms; }
};

// Latency samples that one distribution keeps in memory (128 MiB); past it they go to an unnamed
// temporary file and memory stays flat.
inline constexpr std::uint64_t kSamplesInMemoryMax = std::uint64_t{1} << 24;
// Bytes of JSONL that passes or events keep in memory before they too go to such a file.
inline constexpr std::uint64_t kSpooledBytesInMemoryMax = std::uint64_t{1} << 26;

struct CollectorOptions {
  Sla sla{};
  bool keep_requests = false;   // for write_requests and the per_request part of canonical_line
  bool keep_passes = false;     // for write_passes
  bool keep_kv_events = false;  // for write_kv_events
  std::optional<cache::KvWireForm> kv_events_wire{};  // as batches in msgpack; none: as JSONL
  std::uint64_t samples_in_memory_max = kSamplesInMemoryMax;
  std::uint64_t spooled_bytes_in_memory_max = kSpooledBytesInMemoryMax;
  std::string temporary_directory{};  // empty: the system's
};

// Folds every request at its terminal. What it holds does not grow with the run beyond the limits
// above, except for kept request records.
class Collector final : public replay::RecordSink {
 public:
  explicit Collector(CollectorOptions options);
  ~Collector() override;

  void on_request(const replay::RequestRecord& record) override;
  void on_pass(const replay::PassRecord& record) override;
  void on_kv_event(const replay::KvEventRecord& record) override;

  struct State;
  State& state() { return *state_; }
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// What the report says about the run beside its records. Every value must be the same on each
// machine: no host time, host name, absolute path, and nothing about the way of computing (threads,
// stepping).
struct RunFacts {
  std::string provenance{};  // of the step times: "fixed", "polynomial", "analytic"
  // Was that timing checked against measurements? If not, the report carries
  // "qualification": "functional_only" (decisions.md 9f).
  bool timing_is_checked = false;
  // Named parts of prediction.json beside the summary: {"model", Object}, {"memory", Object},
  // {"traffic", Object}, {"warnings", Array}, ... A name must not be a summary key.
  Object sections{};
};

struct Report {
  Object summary;   // flat, keys sorted; null = no sample or no duration
  Object sections;  // of RunFacts, keys sorted
};

// A Problem when a number is not finite (names its JSON pointer), when temporary files failed
// (fault Resource), or when latencies are too large for exact sums.
Result<Report> make_report(Collector& collector, const replay::RunTotals& totals,
                           const RunFacts& facts);

// prediction.json: the summary's keys and the sections in one object, indented, newline at the end.
std::string prediction_json(const Report& report);
// What `--format json` prints: the flat summary, compact, no newline.
std::string summary_json(const Report& report);

// Host facts that only the terminal and manifest.json show.
struct HostCost {
  double wall_time_ms = 0;  // of the run; finite
  std::uint64_t peak_rss_bytes = 0;
};
// wall_time_ms, peak_rss_bytes, processed_tokens_per_s, processed_output_tokens_per_s: for the
// manifest.
Object host_cost(const Report& report, const HostCost& cost);

// The table of product.md 3.4 with the lines after it, newline at the end. The caller adds the path
// of the full report.
std::string table(const Report& report, const HostCost& cost);

// Names of trace rows and sessions; empty text = none. Unset functions name nothing.
struct Names {
  std::function<std::string_view(std::uint32_t row)> request{};
  std::function<std::string_view(std::uint32_t session)> session{};
  std::function<std::string_view(std::uint32_t row)> metadata{};  // canonical JSON text
  // Do sessions of more than one turn exist? Then unnamed sessions are named by their index.
  bool sessions = false;
};

using Write = std::function<void(std::string_view text)>;

// One JSON object a line, keys sorted, written in large pieces; requests.jsonl (replay.md 21)
// sorted by authored id (none first), arrival, uuid. requires: the matching keep_ option
Result<void> write_requests(const Collector& collector, const Names& names, const Write& write);
Result<void> write_passes(Collector& collector, const Write& write);
Result<void> write_kv_events(Collector& collector, const Write& write);

// CanonicalV1 (replay.md 24): one line with its newline. Equal bytes = equal results.
std::string canonical_line(const Report& report, const Collector& collector, const Names& names);

// 128-bit runtime id of a creation ordinal as a lower-case hyphenated UUID (decisions.md 9a).
std::string uuid_text(std::uint64_t ordinal);

// Snake-case names as they stand in the files.
std::string_view to_string(replay::Status status);
std::string_view to_string(replay::Reason reason);

}  // namespace servecast::report
