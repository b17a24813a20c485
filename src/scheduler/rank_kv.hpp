// SPDX-License-Identifier: Apache-2.0
// The KV of a rank whose cache is not the linear pool of VllmScheduler: what the scheduler asks of
// it, request by request. It owns a cache, the leases of the requests and the names of their
// prefixes, by slot; it knows neither queues nor time. One adaptor a cache (state_kv.hpp,
// grouped_kv.hpp, grouped_bytes_kv.hpp). A waiting candidate and a running request:
//
//   kv.begin_step();
//   const RankKv::Found found = kv.look_up(slot, budget, nobody_runs);
//   if (found.room == RankKv::Room::Enough) kv.admit(slot, found.chunk);
//
//   const std::uint32_t chunk = kv.next_tokens(slot, budget);   // 0: skip it in this pass
//   while (!kv.allocate(slot, chunk)) preempt somebody;
//   request.computed += chunk;
//   kv.finalise(slot);
//   kv.end_step();
//
// Invariant: a request that waits or has ended holds nothing; release() or preempt() was called.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler/kv_counts.hpp"
#include "scheduler/kv_event.hpp"
#include "scheduler/rank_config.hpp"
#include "scheduler/request.hpp"

namespace servecast::scheduler {

class RankKv {
 public:
  virtual ~RankKv() = default;

  // Around each pass.
  virtual void begin_step() = 0;
  virtual void end_step() = 0;

  // Of a request: may it compute now, once others have given something back, or never, since the
  // empty cache is too small? Oversized: the empty cache is too small for so many tokens at once
  // but not for fewer.
  enum class Room : std::uint8_t { Enough, Wait, Never, Oversized };
  struct Found {
    std::uint32_t cached = 0;  // tokens that need no computing again
    std::uint32_t chunk = 0;   // tokens behind them that this pass may compute
    Room room = Room::Enough;  // for the chunk, and for all known tokens where the cache asks that
  };
  // Waiting requests. Looks up what the candidate can reuse, which holds until the next call of a
  // changing function. `budget`: tokens that the pass has left. `alone`: nobody runs, so nothing
  // will be given back: a hit that alone makes the need exceed the cache is dropped then
  // (decisions.md 13).
  virtual Found look_up(Slot slot, std::uint32_t budget, bool alone) = 0;
  // Makes it a running request behind its hit, ready to compute `chunk` tokens. requires: look_up
  // said Enough for that chunk.
  virtual void admit(Slot slot, std::uint32_t chunk) = 0;

  // Running requests. How many of the next `budget` tokens may be computed in this pass. 0: the
  // next boundary where the request must stop is out of reach.
  virtual std::uint32_t next_tokens(Slot slot, std::uint32_t budget) const = 0;
  // Could the next `chunk` tokens be computed if nobody else ran? Enough, Never or Oversized.
  virtual Room room_alone(Slot slot, std::uint32_t chunk) const = 0;
  // In steady decode most steps change nothing: true when the next token was made ready so, by
  // itself. False says nothing; ask as for any chunk.
  virtual bool take_quietly(Slot) { return false; }
  // Makes ready to compute the next `chunk` tokens; false when somebody has to give way.
  virtual bool allocate(Slot slot, std::uint32_t chunk) = 0;
  // Tokens up to Request::computed are computed: full blocks become visible.
  virtual void finalise(Slot slot) = 0;
  // What it holds goes; what it computed in this step is taken back.
  virtual void preempt(Slot slot) = 0;
  // The request ends, from wherever it stands: nothing of it stays but what is cached.
  virtual void release(Slot slot) = 0;

  virtual KvCounts counts() const = 0;
  // Blocks that a request holds; in a pool of bytes 0.
  virtual std::uint32_t held(Slot slot) const = 0;
  // What a request needs to have `target` tokens computed while it is alone, and what there is:
  // blocks, or bytes in a pool of bytes.
  virtual std::uint64_t need_alone(Slot slot, std::uint32_t target) const = 0;
  virtual std::uint64_t limit() const = 0;
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
