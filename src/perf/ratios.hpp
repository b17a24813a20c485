// SPDX-License-Identifier: Apache-2.0
// Checks that every timer factory makes.
#pragma once

#include <string_view>

#include "base/problem.hpp"
#include "perf/timers.hpp"

namespace servecast::perf {

// Adds a Problem for each ratio that is negative or not finite.
void check_ratios(const SpeedRatios& ratios, Problems& problems);

// Adds a Problem when `ms`, or `ms` divided by `ratio`, is negative, not finite or beyond simulated
// time.
void check_duration(std::string_view field, double ms, double ratio, Problems& problems);

}  // namespace servecast::perf
