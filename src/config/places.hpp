// SPDX-License-Identifier: Apache-2.0
// Places for problems of rooms that know no configuration.
#pragma once

#include <string_view>

#include "base/problem.hpp"
#include "config/config.hpp"

namespace servecast::config {

// Where the document speaks of the field at `path`, or at least of something below or above it;
// no place when the document is silent.
Place place_of(const Config& config, std::string_view path);

// Gives each problem that has no place that of the field whose path its message begins with, as
// messages of the workload room do: "traffic.stop.requests is 0: must be ...".
Problems placed(Problems problems, const Config& config);

}  // namespace servecast::config
