// SPDX-License-Identifier: Apache-2.0
// The cache of a rank whose model carries recurrent state beside KV (Mamba, linear attention;
// engine-vllm.md 9). A running request works on a state of `state_blocks` blocks, taken from the
// same pool as its pages. A snapshot is a state kept under the prefix that it follows: only a
// request that finds the pages of a prefix and a snapshot right after it can start behind it.
// Knows no request and no clock; the caller owns a StateLease for each request and says when a
// step begins. All counts are tokens or blocks; a failed call changes nothing.
//
//   StateCache cache({.capacity = 64, .align = {.block_tokens = 4, .match_unit = 4}});
//   StateLease lease;
//   cache.begin_step();
//   StateHit hit = cache.look_up({.hashes = hashes, .known = 16});
//   if (cache.need(16, hit) <= cache.room() && cache.admit(lease, hit, 12)) {
//     cache.finalise(lease, {.hashes = hashes, .after = 12, .prompt = 16, .known = 16});
//   }
//   cache.release(lease);
//
// Default mode (no match unit): a step that ends on a full page leaves a snapshot, which is the
// working state itself until the next write; of one request the latest stays. Align mode: prefills
// stop at the two boundaries of align_split.hpp and leave snapshots there alone; each page has a
// working state of its own.
//
// Invariants, beside those of KeyedPool:
//  (1) a snapshot is found only if all its slots are there and none is of the current step;
//  (2) a request that runs has one working state, which nobody else references unless it is a
//  snapshot, and then it is not written; what a write read it references until its next allocation
//  in a later step, copies until the step ends;
//  (3) an empty lease references nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/align_split.hpp"
#include "cache/keyed_pool.hpp"

namespace servecast::cache {

struct StateCacheConfig {
  std::uint32_t capacity = 0;      // blocks; at least state_blocks + 1 (engine-vllm.md 2.3)
  std::uint32_t state_blocks = 1;  // blocks of one state, see state_blocks()
  AlignRule align;                 // no match unit: default mode
  // Off: nothing is kept or found and chunks are not cut, whatever the match unit says.
  bool prefix_caching = true;
};

// What a request owns. Belongs to the caller, who reads it and leaves changes to the cache.
struct StateLease {
  std::uint64_t id = 0;                // 0: owns nothing
  std::uint32_t computed = 0;          // tokens that the working state has seen
  std::vector<BlockIndex> pages;       // from the first on; the prefix that was hit is shared
  std::vector<BlockIndex> working;     // the state that the next step writes
  std::uint32_t slot = 0;              // align mode: the page that the working state is for
  std::vector<BlockIndex> previous;    // read by the last write, or the source of a hit
  std::uint64_t previous_step = 0;     // in which `previous` was read
  std::vector<BlockIndex> checkpoint;  // default mode: the latest snapshot, if it still is one
  std::uint64_t checkpoint_serial = 0;

  bool empty() const { return id == 0; }
};

// What of a prefix can be reused. Good until the cache changes.
struct StateHit {
  std::uint32_t tokens = 0;           // 0: nothing, and nothing below is set
  std::vector<BlockIndex> pages;      // full pages up to `tokens`
  BlockIndex shared_page = kNoBlock;  // the page that `tokens` ends inside, to be copied
  std::vector<BlockIndex> state;      // slot 0 first
  std::uint64_t removals = 0;         // of the pool when it was looked up
};

class StateCache {
 public:
  explicit StateCache(const StateCacheConfig& config);

  const KeyedPool& pool() const { return pool_; }  // for its counts
  // Blocks that nobody references; what a waiting request's need() is held against.
  std::uint32_t room() const { return pool_.room(); }
  // Full pages whose last copy went, for Removed events (engine-vllm.md 6.6).
  void keep_evicted_names() { pool_.keep_evicted_names(); }
  std::vector<std::uint64_t>& evicted_names() { return pool_.evicted_names(); }

  // The chunk of align_split() under this cache's rule.
  std::uint32_t split(const Chunk& chunk, std::uint32_t budget) const {
    return align_split(rule_, chunk, budget);
  }

  // A pass starts: copies held for the step before become inactive, in the order of their making,
  // and what it published can be found.
  void begin_step();

  struct Query {
    // Chain hashes of the prefix: one a match unit if there is one (a page's identity is that at
    // its end), else one a page. What lies beyond `known` is not read.
    std::span<const std::uint64_t> hashes;
    std::uint32_t known = 0;
    bool needs_logits = true;  // false: generation is complete, a full hit is allowed (7.3)
    bool drafter = false;      // MTP or EAGLE wants the hidden states of one more unit (7.3 b)
  };
  StateHit look_up(const Query& query) const;

  // Can a sequence of so many tokens run in an empty pool (9.6)? Asked again of a preempted one.
  bool accepts(std::uint32_t known) const;
  // Blocks that admitting a sequence with this hit comes to, whoever holds them. More than the
  // capacity: impossible. Then the request is rejected; a hit is never dropped silently, but a
  // caller may ask again with an empty StateHit (decisions.md 13).
  std::uint64_t peak(std::uint32_t known, const StateHit& hit) const;
  // Those of them that are not active yet; the request waits while they exceed room().
  std::uint64_t need(std::uint32_t known, const StateHit& hit) const;

  // Starts a request behind its hit, with blocks for tokens up to `target`.
  // requires: the lease is empty; target >= hit.tokens, target > 0.
  bool admit(StateLease& lease, const StateHit& hit, std::uint32_t target);
  // Makes ready to write tokens up to `target`; nothing to write is true.
  bool allocate(StateLease& lease, std::uint32_t target);
  // Blocks that the request would hold then, with those it has and has to keep.
  std::uint64_t compute_need(const StateLease& lease, std::uint32_t target) const;
  // Could allocate() succeed in a pool without other requests? If not, the request ends.
  bool can_compute(const StateLease& lease, std::uint32_t target) const;

  // Tokens up to `after` are computed: full pages become visible at once, a snapshot from the next
  // step on. Called once for each write: a burst that passes a boundary on its way leaves no
  // snapshot there. Returns the positions of pages that nobody else had, for Stored events; valid
  // until the next call. requires: allocate() or its like made ready for them.
  struct Progress {
    std::span<const std::uint64_t> hashes;  // as Query::hashes, at least up to `after`
    std::uint32_t after = 0;
    std::uint32_t prompt = 0, known = 0;  // when the step was scheduled
  };
  std::span<const std::uint32_t> finalise(StateLease& lease, const Progress& progress);

  // A speculative decode step of `burst` tokens behind `known` computed ones (8, 9.6), which writes
  // all but the last. Default mode only. Blocks that it takes, whether an otherwise empty pool has
  // them, and the taking; then trim() gives back the pages behind the tokens that came.
  std::uint32_t burst_need(const StateLease& lease, std::uint32_t burst) const;
  bool can_burst(const StateLease& lease, std::uint32_t burst) const;
  bool reserve_burst(StateLease& lease, std::uint32_t burst);
  void trim(StateLease& lease, std::uint32_t known);

  // Empties a lease: state first, then pages from the last to the first. Snapshots and full pages
  // stay as cache. Does nothing to an empty lease.
  void release(StateLease& lease);
  // The same for a request whose current step is taken back: its snapshots of this step go.
  void preempt(StateLease& lease);

  void verify() const;  // checks the invariants; O(blocks ever used)
  void verify(const StateLease& lease) const;

 private:
  struct Hold {
    std::uint64_t lease;
    BlockIndex block;
  };

  std::uint32_t pages_for(std::uint64_t tokens) const {
    return static_cast<std::uint32_t>((tokens + rule_.block_tokens - 1) / rule_.block_tokens);
  }
  std::uint32_t slot_of(std::uint32_t target) const { return (target - 1) / rule_.block_tokens; }
  std::uint32_t unit() const {
    return rule_.match_unit > 0 ? rule_.match_unit : rule_.block_tokens;
  }
  bool of_this_step(const BlockKey& key) const { return key.serial >= step_serial_; }
  bool is_restorable(std::uint64_t prefix) const;
  std::uint32_t active_in(const StateHit& hit) const;
  bool is_published(const StateLease& lease) const;
  bool moves_to_new_state(const StateLease& lease, std::uint32_t target) const;
  std::uint64_t held_alone(const StateLease& lease, std::uint64_t tokens, bool new_state) const;
  std::uint64_t fresh_blocks(const StateLease& lease, std::uint64_t tokens, bool new_state) const;
  bool extend(StateLease& lease, std::uint64_t tokens, bool new_state);
  void take_state(std::vector<BlockIndex>& state);
  void release_state(std::vector<BlockIndex>& state);
  void hold(const StateLease& lease, const std::vector<BlockIndex>& state);
  void publish_state(StateLease& lease, std::uint64_t prefix);
  void discard_checkpoint(StateLease& lease);
  void withdraw_if_of_this_step(BlockIndex block);

  AlignRule rule_;
  std::uint32_t state_blocks_;
  bool prefix_caching_;
  KeyedPool pool_;
  std::vector<Hold> holds_;
  std::vector<std::uint32_t> visible_;
  std::uint64_t step_ = 0;
  std::uint64_t last_lease_ = 0;
  std::uint64_t next_serial_ = 0, step_serial_ = 0;  // of publications; the first of this step
};

}  // namespace servecast::cache
