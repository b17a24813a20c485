// SPDX-License-Identifier: Apache-2.0
// The KV of a rank whose cache is not the linear pool of VllmScheduler: what the scheduler asks of
// it, request by request. It owns a cache, the leases of the requests and the names of their
// prefixes, by slot; it knows neither queues nor the budget of a pass nor time. One adaptor a cache
// (state_kv.hpp). A waiting candidate and a running request:
//
//   kv.begin_step();
//   const RankKv::Found found = kv.look_up(slot, nobody_runs);
//   const std::uint32_t chunk = kv.next_tokens(slot, budget);
//   if (kv.room_for(slot, chunk) == RankKv::Room::Enough) kv.admit(slot, chunk);
//
//   const std::uint32_t chunk = kv.next_tokens(slot, budget);   // 0: skip it in this pass
//   while (!kv.allocate(slot, chunk)) preempt somebody;
//   request.computed += chunk;
//   kv.finalise(slot);
//
// Invariant: a request that waits or has ended holds nothing; release() or preempt() was called.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler/kv_event.hpp"
#include "scheduler/rank_config.hpp"
#include "scheduler/request.hpp"

namespace servecast::scheduler {

// How full a cache is, in blocks. Cached blocks that nobody references are inactive; a request can
// get them.
struct KvCounts {
  std::uint32_t capacity = 0, active = 0, inactive = 0, free = 0;
  std::uint64_t evictions = 0;

  std::uint32_t room() const { return free + inactive; }
};

// What a request would need to run alone, and what there is.
struct KvShortage {
  std::uint32_t blocks_needed = 0, blocks_available = 0;
};

class RankKv {
 public:
  virtual ~RankKv() = default;

  // A pass starts.
  virtual void begin_step() = 0;

  // Of a candidate: can it be admitted now, once the running requests have given something back, or
  // never, since the empty cache is too small?
  enum class Room : std::uint8_t { Enough, Wait, Never };
  struct Found {
    std::uint32_t cached = 0;  // tokens that need no computing again
    Room room = Room::Enough;  // for all known tokens
  };
  // Waiting requests. Looks up what the candidate can reuse, which holds until the next call of a
  // changing function. `alone`: nobody runs, so nothing will be given back: a hit that alone makes
  // the need exceed the cache is dropped then (decisions.md 13).
  virtual Found look_up(Slot slot, bool alone) = 0;
  // For the first `chunk` tokens behind the hit. requires: look_up said Enough.
  virtual Room room_for(Slot slot, std::uint32_t chunk) const = 0;
  // Makes it a running request behind its hit, ready to compute `chunk` tokens. requires: room_for
  // said Enough.
  virtual void admit(Slot slot, std::uint32_t chunk) = 0;

  // Waiting candidates behind their hit and running requests: how many of the next `budget` tokens
  // may be computed in this pass. 0: the next boundary where the request must stop is out of reach.
  virtual std::uint32_t next_tokens(Slot slot, std::uint32_t budget) const = 0;

  // Running requests. Could the next `chunk` tokens be computed if nobody else ran? If not, the
  // request ends.
  virtual bool can_ever(Slot slot, std::uint32_t chunk) const = 0;
  // Makes ready to compute the next `chunk` tokens; false when somebody has to give way.
  virtual bool allocate(Slot slot, std::uint32_t chunk) = 0;
  // Tokens up to Request::computed are computed: full blocks become visible.
  virtual void finalise(Slot slot) = 0;
  // What it holds goes; what it computed in this step is taken back.
  virtual void preempt(Slot slot) = 0;
  // The request ends, from wherever it stands: nothing of it stays but what is cached.
  virtual void release(Slot slot) = 0;

  virtual KvCounts counts() const = 0;
  // Blocks that a request holds.
  virtual std::uint32_t held(Slot slot) const = 0;
  // Of a request that cannot have `target` tokens computed.
  virtual KvShortage shortage(Slot slot, std::uint32_t target) const = 0;
  // Of the step, in the order in which things happened; kept only when asked for. The caller takes
  // them.
  virtual std::vector<KvEvent>& events() = 0;
  // Checks the invariants; `running` are the requests that hold something.
  virtual void verify(const std::vector<Slot>& running) const = 0;
};

struct KvNaming {
  bool real_hashes = false;  // else by provenance
  bool events = false;       // keep events; needs real hashes
};

// The one that the configuration asks for; null where the linear pool serves. `requests`
// outlives it.
std::unique_ptr<RankKv> make_rank_kv(const RankConfig& config, const KvNaming& naming,
                                     const RequestSlab& requests);

}  // namespace servecast::scheduler
