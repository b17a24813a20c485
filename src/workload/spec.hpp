// SPDX-License-Identifier: Apache-2.0
// The `traffic` block as the user wrote it (replay.md 9), checked field by field by config.
// Defaults stand here and nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace servecast::workload {

// A token length: one number, or a distribution to draw from (replay.md 10.3). Draws are rounded
// half away from zero and clamped to [min, max], min at least 1.
struct Length {
  enum class Kind : std::uint8_t { Fixed, Uniform, Normal, Lognormal };
  Kind kind = Kind::Fixed;
  std::uint32_t fixed = 1;                  // Fixed
  std::uint32_t min = 1, max = UINT32_MAX;  // Uniform bounds (inclusive); clamp of the others
  double mean = 0, stddev = 0;              // Normal
  double p50 = 0, p95 = 0;                  // Lognormal, 0 < p50 <= p95
};

// Independent single requests; prompts share nothing beyond the cached prefix.
struct SyntheticSource {
  Length input{.fixed = 1024};
  Length output{.fixed = 128};
  // Leading tokens that every prompt has in common; fewer than the shortest prompt has.
  std::uint32_t cached_prefix_tokens = 0;
  std::uint64_t seed = 42;  // of the lengths; never of the arrivals
};

// Sessions whose prompts accumulate: prompt k = prompt k-1 + its output + new input.
struct SessionSource {
  Length new_input{.fixed = 1024};
  Length output{.fixed = 128};
  std::uint32_t turns = 4;
  double shared_prefix_ratio = 0;  // share of a turn's blocks taken from its prefix group
  std::uint32_t prefix_groups = 0;
  double inter_turn_delay_ms = 0;
  std::uint32_t block_size = 512;  // tokens per content block
  std::uint64_t seed = 42;
};

enum class TraceFormat : std::uint8_t { Mooncake, AzureCsv };

struct TraceSource {
  std::string path;  // resolved: "data:" is replaced already
  TraceFormat format = TraceFormat::Mooncake;
  std::uint32_t block_size = 512;
  // Keep authored times instead of moving the earliest to 0 (decisions.md 8).
  bool start_as_given = false;
};

struct Load {
  enum class Kind : std::uint8_t {
    Concurrency,
    Poisson,
    ConstantRate,
    Gamma,
    Burst,
    TraceTimestamps
  };
  Kind kind = Kind::Concurrency;
  std::uint32_t concurrency = 10;  // requests, or sessions for session sources
  double per_second = 0;           // requests or sessions per second: Poisson, ConstantRate, Gamma
  std::uint64_t seed = 42;
  double smoothness = 1;  // Gamma shape; 1 = Poisson, larger = smoother
  double speedup = 1;     // TraceTimestamps: divides arrivals and delays
};

// When a synthetic source ends. A trace is replayed whole and does not read it.
struct Stop {
  std::optional<std::uint64_t> count{};   // requests or sessions
  std::optional<double> per_load_unit{};  // count = max(1, half_even(per_load_unit * load))
};

struct Spec {
  std::variant<SyntheticSource, SessionSource, TraceSource> source = SyntheticSource{};
  Load load{};
  Stop stop{.count = 100};
  // So long after its arrival the client of each request goes away, unless it has the whole answer
  // or the trace row says otherwise; > 0.
  std::optional<double> cancel_after_ms{};
};

}  // namespace servecast::workload
