// SPDX-License-Identifier: Apache-2.0
// KV events as an engine would publish them: what one rank tells at one instant is one batch
// (realdata.md 4.2). A stream is one batch after the other with nothing between them.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.hpp"
#include "cache/kv_wire.hpp"
#include "replay/records.hpp"

namespace servecast::report {

// A batch with this many tokens ends, so that readers need not hold more.
inline constexpr std::size_t kKvBatchTokensMax = std::size_t{1} << 20;

class KvBatches {
 public:
  explicit KvBatches(cache::KvWireForm form) : form_(form) {}

  // Appends the open batch to `out` when the record begins another.
  void add(const replay::KvEventRecord& record, std::string& out);
  void finish(std::string& out);  // appends the open batch, if any

 private:
  cache::KvWireForm form_;
  cache::KvBatch open_;  // without events: none
  Time at_;
  std::size_t tokens_ = 0;
};

// The rank that a batch names: ranks are counted through all workers.
std::uint32_t kv_rank(std::uint32_t worker, std::uint32_t rank, std::uint32_t ranks_per_worker);

}  // namespace servecast::report
