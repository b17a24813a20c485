// SPDX-License-Identifier: Apache-2.0
// The `router` block (replay.md 16). Checked by config; defaults stand here.
#pragma once

#include <cstdint>

namespace servecast::router {

enum class Policy : std::uint8_t { RoundRobin, LeastLoaded, PowerOfTwo, Random };
enum class Metric : std::uint8_t { Requests, Tokens };           // what "load" counts
enum class Tie : std::uint8_t { LowestId, RoundRobin, Random };  // least_loaded only

struct Spec {
  Policy policy = Policy::RoundRobin;
  Metric metric = Metric::Requests;
  Tie tie = Tie::LowestId;
  std::uint64_t seed = 42;
};

}  // namespace servecast::router
