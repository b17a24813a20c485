// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "support/audit_sglang.hpp"

namespace servecast::test {

using replay::PassRecord;

namespace {

using Place = std::pair<std::uint32_t, std::uint32_t>;  // worker and rank

template <class Told>
Place place_of(const Told& told) {
  return {told.worker, told.rank};
}

}  // namespace

// Nobody finds more pages than anybody ever left there in a row.
void SglangAudit::compare_reuse() {
  std::map<Place, std::map<std::uint64_t, std::uint32_t>> depths;  // of every page ever stored
  std::map<Place, std::uint32_t> deepest;
  for (const replay::KvEventRecord& event : recording_.events) {
    if (!event.stored) continue;
    auto& known = depths[place_of(event)];
    std::uint32_t depth = event.has_parent ? known[event.parent] : 0;
    for (const auto& block : event.blocks) known[block.hash] = ++depth;
    deepest[place_of(event)] = std::max(deepest[place_of(event)], depth);
  }
  for (const PassRecord& pass : recording_.passes) {
    for (const auto& admitted : pass.admitted) {
      v_.expect(admitted.reused_tokens / page_ <= deepest[place_of(pass)],
                "{}: request {} reuses {} tokens, nobody left so many", where(pass),
                admitted.request, admitted.reused_tokens);
    }
  }
}

// Events show when they must and at no other time, and whoever follows them has the tree whenever
// they have shown (S6.4).
void SglangAudit::compare_index(bool capped) {
  const std::span<const replay::KvEventRecord> events = recording_.events;
  std::map<Place, std::vector<const Flush*>> flushes;
  for (const Flush& flush : flushes_) flushes[place_of(flush)].push_back(&flush);

  std::size_t next = 0;
  for (std::size_t p = 0; p < recording_.totals.pools.size(); ++p) {
    const auto ranks = deployment_.ranks_per_worker;
    const Place place{static_cast<std::uint32_t>(p) / ranks, static_cast<std::uint32_t>(p) % ranks};
    std::set<std::uint64_t> index;
    const std::vector<const Flush*>& told = flushes[place];
    for (std::size_t i = 0; i < told.size();) {
      const Time at = told[i]->end;
      bool may_be = false;
      const Flush* last = nullptr;
      for (; i < told.size() && told[i]->end == at; ++i) {
        may_be |= told[i]->may_be_due;
        if (told[i]->may_be_due) last = told[i]->due ? told[i] : nullptr;
      }
      for (; next < events.size() && place_of(events[next]) == place && events[next].at <= at;
           ++next) {
        v_.expect(events[next].at == at && may_be,
                  "worker {} rank {}: KV event {} shows at {} ns, when no flush is due",
                  place.first, place.second, events[next].event, events[next].at.ns);
        for (const auto& block : events[next].blocks) {
          if (events[next].stored) {
            index.insert(block.hash);
          } else {
            index.erase(block.hash);
          }
        }
      }
      v_.expect(last == nullptr || !last->tree_pages || index.size() == *last->tree_pages,
                "worker {} rank {}: at {} ns the events tell {} pages, the tree has {}",
                place.first, place.second, at.ns, index.size(),
                last != nullptr ? last->tree_pages.value_or(0) : 0);
    }
    v_.expect(next == events.size() || place_of(events[next]) != place,
              "worker {} rank {}: KV events show after the last pass", place.first, place.second);
    v_.expect(capped || index.size() == recording_.totals.pools[p].inactive,
              "worker {} rank {}: the events tell {} pages, {} are cached at the end", place.first,
              place.second, index.size(), recording_.totals.pools[p].inactive);
  }
}

}  // namespace servecast::test
