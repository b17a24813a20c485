// SPDX-License-Identifier: Apache-2.0
// What runs first at one instant is decided here and nowhere else (replay.md 5.1).
#pragma once

#include <compare>
#include <cstdint>

#include "base/time.hpp"

namespace servecast::kernel {

// Passes complete, then workers become ready, then transfers land, then telemetry looks, then
// scaling decides. Arrivals are no events: they are released between Transfer and the next passes.
enum class Phase : std::uint8_t { PassComplete, WorkerReady, Transfer, Telemetry, Scaling };
enum class Stage : std::uint8_t { Aggregated, Prefill, Decode };

struct EventKey {
  Time time;
  Phase phase = Phase::PassComplete;
  Stage stage = Stage::Aggregated;
  std::uint32_t worker = 0;
  std::uint64_t pass = 0;
  std::uint64_t sequence = 0;  // order of posting
  friend auto operator<=>(const EventKey&, const EventKey&) = default;
};

}  // namespace servecast::kernel
