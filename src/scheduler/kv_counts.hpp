// SPDX-License-Identifier: Apache-2.0
// How full the cache of a rank is.
#pragma once

#include <cstdint>

namespace servecast::scheduler {

// Cached blocks that nobody references are inactive; a request can get them.
struct KvCounts {
  std::uint32_t capacity = 0, active = 0, inactive = 0, free = 0;  // blocks; 0 in a pool of bytes
  std::uint64_t evictions = 0;
  std::uint64_t used_bytes = 0, cached_bytes = 0, capacity_bytes = 0;  // of grouped caches

  std::uint32_t room() const { return free + inactive; }
};

}  // namespace servecast::scheduler
