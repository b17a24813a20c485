// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "support/audit_laws.hpp"

namespace servecast::test {

// One index per rank: a hash is stored when it becomes resident and removed when its last copy
// goes.
void audit_events(const replay::Deployment& deployment, const Recording& recording, bool capped,
                  Violations& v) {
  const std::uint32_t ranks = deployment.workers * deployment.ranks_per_worker;
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // group and hash
  std::vector<std::set<Key>> resident(ranks);
  std::vector<std::uint64_t> next(ranks, 0);
  std::vector<Time> last(ranks);
  v.expect(deployment.rank.prefix_caching || recording.events.empty(),
           "KV events without prefix caching");
  // With finer units a block's hash follows from units that no event tells.
  const bool chained =
      !deployment.rank.grouped && match_unit(deployment.rank) == deployment.rank.block_tokens;
  for (const replay::KvEventRecord& event : recording.events) {
    if (event.worker >= deployment.workers || event.rank >= deployment.ranks_per_worker) {
      v.expect(false, "a KV event names worker {} rank {}", event.worker, event.rank);
      return;
    }
    const std::uint32_t w = event.worker * deployment.ranks_per_worker + event.rank;
    v.expect(event.event == next[w]++, "rank {}: KV event {} is not consecutive", w, event.event);
    v.expect(event.at >= last[w], "rank {} KV event {}: goes back in time", w, event.event);
    last[w] = event.at;
    v.expect(!event.blocks.empty(), "rank {} KV event {}: has no block", w, event.event);
    v.expect(event.group.has_value() == deployment.rank.grouped.has_value(),
             "rank {} KV event {}: its group", w, event.event);
    std::uint64_t parent = event.parent;
    bool has_parent = event.has_parent;
    for (const auto& block : event.blocks) {
      if (!event.stored) {
        v.expect(resident[w].erase({event.group.value_or(0), block.hash}) == 1,
                 "rank {} KV event {}: removes what was not there", w, event.event);
        continue;
      }
      v.expect(resident[w].insert({event.group.value_or(0), block.hash}).second,
               "rank {} KV event {}: stores what is there already", w, event.event);
      v.expect(!chained || block.hash == (has_parent ? chained_block_hash(parent, block.tokens_hash)
                                                     : block.tokens_hash),
               "rank {} KV event {}: a hash does not follow from its parent", w, event.event);
      parent = block.hash;
      has_parent = true;
    }
  }
  for (std::uint32_t w = 0; w < ranks && w < recording.totals.pools.size(); ++w) {
    const replay::PoolState& pool = recording.totals.pools[w];
    if (capped) break;  // the pass in flight has evicted, but its events show only at its end
    v.expect(resident[w].size() <= pool.inactive + pool.active,
             "rank {}: {} blocks are announced, the pool holds {}", w, resident[w].size(),
             pool.inactive + pool.active);
  }
}

}  // namespace servecast::test
