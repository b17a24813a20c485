// SPDX-License-Identifier: Apache-2.0
// From a configuration to what the simulation runs: cards looked up, KV capacity computed, pass
// times chosen.
//
//   Result<Deployed> deployed = config::deploy(config);
//   auto totals = replay::run(deployed->deployment, workload, {}, sink);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/problem.hpp"
#include "config/config.hpp"
#include "perf/memory.hpp"
#include "perf/placement.hpp"
#include "replay/simulation.hpp"

namespace servecast::config {

struct Deployed {
  replay::Deployment deployment;
  perf::Placement placement;               // holds the cards used
  std::optional<perf::KvCapacity> memory;  // nothing when the capacity is fixed
  // What the analytic timer's coefficients come from; null with other timers.
  std::shared_ptr<const catalog::StepModel> step_model;
  // Why grouped caches run without the prefix caching that was asked for.
  std::optional<std::string> cold_reason;
  std::vector<std::string> warnings;  // one line each
};

// New tokens of a rank's largest pass. SGLang's chunk is shared by the ranks of a worker
// (engine-sglang.md S1.3).
std::uint32_t pass_tokens_max(const Engine& engine);

// Problems: an unknown model or system, a parallelism that the model cannot have, synthetic
// requests longer than the context, and "memory.does_not_fit" with needed and available bytes.
Result<Deployed> deploy(const Config& config);

}  // namespace servecast::config
