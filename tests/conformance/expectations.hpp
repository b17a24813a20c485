// SPDX-License-Identifier: Apache-2.0
// A recorded run against the results of the shared reference. Each function gives the first
// mismatch as "row 7: first_token_ms is 12.0, expected 14.0", or nothing.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "conformance/shared_case.hpp"
#include "support/recording.hpp"

namespace servecast::test {

inline constexpr double kToleranceMs = 1e-6;  // the references compute in double milliseconds

// Equal within kToleranceMs, absolute or relative.
bool close(double a, double b);

std::optional<std::string> rows_mismatch(const SharedCase& expected, const Recording& run);
std::optional<std::string> summary_mismatch(const SharedCase& expected, const Recording& run);
// `reported`: the numbers of the product's own summary, by its names.
std::optional<std::string> reported_mismatch(const SharedCase& expected,
                                             const std::map<std::string, double>& reported);
std::optional<std::string> passes_mismatch(const SharedCase& expected, const Recording& run);

}  // namespace servecast::test
