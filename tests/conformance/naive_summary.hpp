// SPDX-License-Identifier: Apache-2.0
// The summary of a run by the definitions of replay.md 20.2 and 20.3, written down once more in the
// plainest way, under the names of the shared summary.json.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/recording.hpp"

namespace servecast::test {

std::map<std::string, double> naive_summary(const Recording& recording);

// Position of percentile p in n sorted values: (n - 1) * p / 100 rounded half away from zero.
// requires: n > 0.
std::size_t percentile_rank(std::size_t n, int p);

// mean, min, max, median, p75, p90, p95, p99, std (population) of `values`, as "mean_NAME_ms" and
// so on.
void add_distribution(std::map<std::string, double>& out, const std::string& name,
                      std::vector<double> values);

}  // namespace servecast::test
