// SPDX-License-Identifier: Apache-2.0
// A random simulation from a seed: small, crowded and full of ties, because that is where the two
// modes of the engine could part.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "replay/simulation.hpp"
#include "support/trace_file.hpp"
#include "workload/spec.hpp"

namespace servecast::test {

struct Scenario {
  replay::Deployment deployment;
  workload::Spec spec;
  std::shared_ptr<const TraceFile> trace;  // what spec.source names, if it is a trace
  std::string trace_text;
  std::optional<Time> cap;
  std::uint32_t run_passes_max = 1;  // 1 to 5, for the fast run with short plans
  std::string settings;              // one line for a failure message
};

// The same on every machine for the same seed.
Scenario scenario(std::uint64_t seed);

}  // namespace servecast::test
