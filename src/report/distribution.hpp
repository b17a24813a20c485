// SPDX-License-Identifier: Apache-2.0
// Mean, spread and percentiles of one metric in the unit of the report. Private to the room.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/problem.hpp"
#include "replay/records.hpp"
#include "report/samples.hpp"

namespace servecast::report {

inline constexpr std::array<std::uint32_t, 5> kPercents{50, 75, 90, 95, 99};

struct Distribution {
  std::uint64_t count = 0;  // when 0 the rest means nothing
  double mean = 0, min = 0, max = 0, std = 0;
  std::array<double, kPercents.size()> percentiles{};  // of kPercents
};

// Samples divided by `per_unit` (1e6 for nanoseconds to milliseconds).
Result<Distribution> distribution_of(const SampleStore& samples, double per_unit);

// TPOT in milliseconds and what follows from it in one look at the samples: the output rate of a
// request in tokens/s is 1e12 / TPOT in ps, so its percentiles are those of TPOT from the other
// end; TPOT 0 has no rate.
struct PerRequestPace {
  Distribution tpot_ms;
  Distribution output_tps;
};
Result<PerRequestPace> pace_of(const SampleStore& tpot_ps, const ExactSums& output_micro_tps);

// Gaps in milliseconds, weighted by how often they occurred.
Distribution distribution_of(const replay::GapTable& gaps);
// 1000 / gap in tokens/s for every gap above 0.
Distribution rates_of(const replay::GapTable& gaps);

}  // namespace servecast::report
