// SPDX-License-Identifier: Apache-2.0
// A duration with its energy and where it comes from, and how such results add (perfmodel.md 1.1).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace servecast::perf {

enum class TimeSource : std::uint8_t {
  None,       // of nothing
  Silicon,    // measured, or interpolated between measurements
  Empirical,  // a physical bound divided by a learned or fixed efficiency
  Sol,        // the bound itself
  Estimated,  // a difference of table values
  Mixed,
};
std::string_view to_string(TimeSource source);

struct OpTime {
  double ms = 0.0;
  double energy_mj = 0.0;  // 0 where no power was measured
  TimeSource source = TimeSource::None;

  friend OpTime operator+(const OpTime& a, const OpTime& b);
  friend OpTime operator*(double scale, const OpTime& time) {
    return {scale * time.ms, scale * time.energy_mj, time.source};
  }
};

// Two groups at once: the longer one's time, both energies.
OpTime overlapped(const OpTime& a, const OpTime& b);

// Mean power of `total`, of which `covered_ms` has known energy; nothing below nine tenths.
std::optional<double> mean_watts(const OpTime& total, double covered_ms);

}  // namespace servecast::perf
