// SPDX-License-Identifier: Apache-2.0
// From a configuration to a finished report: the steps that predict and bench share.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/problem.hpp"
#include "cache/kv_wire.hpp"
#include "cli/terminal.hpp"
#include "config/config.hpp"
#include "config/deployment.hpp"
#include "report/report.hpp"
#include "workload/workload.hpp"

namespace servecast::cli {

// Everything read, looked up and checked; nothing has run.
struct Prepared {
  config::Config config;
  config::Deployed deployed;
  workload::Workload workload;
};

Result<Prepared> prepare(config::Config config);

struct Capture {
  bool requests = false;
  bool passes = false;
  bool kv_events = false;
  std::optional<cache::KvWireForm> kv_events_wire = {};  // none: as JSONL
};

struct RunOptions {
  Capture capture;
  bool stepping = false;
  Progress* progress = nullptr;  // nobody watches when null
};

struct Prediction {
  report::Report report;
  std::unique_ptr<report::Collector> collector;
  replay::RunTotals totals;
};

Result<Prediction> run(const Prepared& prepared, const RunOptions& options);

// Memory of one GPU, as reports have it.
report::Object memory_section(const perf::KvCapacity& memory);
// One line on what is simulated: model card, system, workers, KV blocks, load.
std::string plan_line(const Prepared& prepared);
// Every warning of configuration, deployment and workload.
std::vector<std::string> warnings(const Prepared& prepared);

}  // namespace servecast::cli
