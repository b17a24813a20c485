// SPDX-License-Identifier: Apache-2.0
// How vLLM lays out the KV cache of a model whose layers see the whole context or a window of it.
#pragma once

#include <vector>

#include "cache/kv_groups.hpp"
#include "perf/placement.hpp"

namespace servecast::fit {

// Groups of equally many layers that share one pool (engine-vllm.md 10): a request keeps all of its
// context in one group and a window of it in another, so that twice as many run at a time as if all
// layers kept everything (realdata.md 2.5). Empty where one window and one size of KV do not
// describe all layers, or no layer has a window.
std::vector<cache::KvGroup> kv_groups_of(const perf::Placement& placement,
                                         std::uint32_t block_tokens);

}  // namespace servecast::fit
