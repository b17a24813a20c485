// SPDX-License-Identifier: Apache-2.0
// Which rare situations the random runs have met, so that a generator that grew too tame shows.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "property/scenario.hpp"
#include "support/recording.hpp"

namespace servecast::test {

using Marks = std::map<std::string_view, std::uint64_t>;

// Counts the situations of one run; `run` has captured its passes. Every name is counted, with 0 if
// need be.
void mark(Marks& marks, const Scenario& scenario, const Recording& run);

// Those of SGLang ranks (marks_sglang.cpp).
void mark_sglang(Marks& marks, const Scenario& scenario, const Recording& run);

}  // namespace servecast::test
