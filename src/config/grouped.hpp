// SPDX-License-Identifier: Apache-2.0
// Grouped KV caches of a configuration, judged by the one gate.
#pragma once

#include <cstdint>

#include "base/problem.hpp"
#include "config/config.hpp"
#include "config/deployment.hpp"

namespace servecast::config {

// Fills Deployment::rank.grouped for a pool of so many bytes, or tells every rule that is broken.
// Without proof that the deployment reuses prefixes the rank runs cold, and Deployed says why.
// requires: rank.max_model_len is set.
void set_grouped(const Config& config, std::uint64_t capacity_bytes, Deployed& deployed,
                 Problems& problems);

}  // namespace servecast::config
