// SPDX-License-Identifier: Apache-2.0
// Grouped KV caches with prefix caching (engine-vllm.md 10.4-10.7, 23): all groups of a rank share
// one pool of blocks; a request has a table of positions in each group. Knows no queue and no
// clock: the caller owns a GroupedLease for each request, says when a step begins and ends, and
// decides who waits. One waiting candidate:
//
//   blocks.look_up(lease, tokens);
//   if (blocks.cold_need(tokens) > blocks.capacity()) reject();
//   if (blocks.full_need(lease, tokens) > blocks.available()) wait();
//   const std::uint32_t n = blocks.next_tokens(lease, tokens, budget);
//   if (n == 0 || blocks.need(lease, tokens, n) > blocks.available()) wait();
//   blocks.admit(lease, tokens, n);
//
// (one that would wait for blocks while nobody runs gets drop_hit and is asked again), and one
// running request:
//
//   const std::uint32_t n = blocks.next_tokens(lease, tokens, budget);
//   while (n > 0 && !blocks.allocate(lease, tokens, n)) preempt(victim);
//
// Invariants, beside those of GroupedPool:
//  (1) a block's references = positions of leases that it fills + copies of this step that it
//  serves;
//  (2) a request writes only blocks that it alone references, and blocks of attention that others
//  read before the tokens written;
//  (3) a State key names the state after exactly its prefix, and is not used in the step in which
//  it was given;
//  (4) a call that fails changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/grouped_hit.hpp"
#include "cache/grouped_pool.hpp"
#include "cache/grouped_split.hpp"
#include "cache/kv_groups.hpp"

namespace servecast::cache {

// What a request owns. Belongs to the caller, who reads it and leaves changes to GroupedBlocks.
struct GroupedLease {
  struct Table {
    std::vector<BlockIndex> blocks = {};  // by position; kNoBlock: skipped or given back
    std::uint32_t first = 0;              // no block stands before it
    std::uint32_t keyed = 0;              // positions before it are not keyed any more
  };
  bool admitted = false;
  std::uint32_t computed = 0;      // tokens; without admission 0
  std::vector<Table> tables = {};  // one a group, when admitted
  bool tail_published = false;     // the State in use is a key of its prefix: copy, then write
  std::optional<std::uint32_t> junction = {};
  // Up to so many computed tokens, steps of one token take, give back and key nothing.
  std::uint32_t quiet_until = 0;
  // Of a waiting request: what was found and when. No block of it is referenced.
  GroupedHit hit = {};
  std::optional<std::uint64_t> hit_stamp = {};

  std::uint32_t blocks() const;  // held
};

// For metrics (engine-vllm.md 3.3). A cached block counts as physically used, not as active.
struct GroupedUsage {
  std::uint64_t used_bytes = 0;
  std::uint64_t cached_bytes = 0;
  std::uint64_t capacity_bytes = 0;

  double active() const;    // used / capacity
  double physical() const;  // (used + cached) / capacity
};

class GroupedBlocks {
 public:
  explicit GroupedBlocks(GroupedRules rules);

  const GroupedRules& rules() const { return rules_; }
  const GroupedPool& pool() const { return pool_; }
  std::uint32_t capacity() const { return pool_.capacity(); }
  std::uint32_t available() const { return pool_.available(); }  // cached blocks included
  GroupedUsage usage() const;
  // Held for this step: what requests started from, and copies that others will find.
  std::span<const BlockIndex> held_for_step() const { return held_for_step_; }

  // Around each pass. The end releases what only copies of this step read; the begin makes states
  // of the step before visible, and ends that step if nobody did.
  void begin_step();
  void end_step();

  // Waiting requests. requires: the lease is not admitted.
  // Finds what can be reused, unless the keys are those of the last time. True: looked anew.
  // requires: `tokens` are those of the last time too; a released lease forgets them.
  bool look_up(GroupedLease& lease, const KnownTokens& tokens) const;
  // Lets the request start cold, until the keys change: for a hit that needs more blocks than there
  // are while nobody runs. Cold it fits, unless cold_need() is more than the pool.
  void drop_hit(GroupedLease& lease) const;
  // Blocks for all known tokens without a hit; more than the capacity: it can never run.
  std::uint64_t cold_need(const KnownTokens& tokens) const;
  // Blocks for all known tokens with the hit, which has to be kept. More than the capacity while
  // the State that was hit is of this step: wait for the next one.
  std::uint64_t full_need(const GroupedLease& lease, const KnownTokens& tokens) const;
  // Makes it a running request that reuses the hit and computes `count` tokens.
  // requires: count > 0; need(lease, tokens, count) <= available(); look_up() or drop_hit() came
  // after the last change of a key.
  void admit(GroupedLease& lease, const KnownTokens& tokens, std::uint32_t count);

  // Both.
  // Tokens that it computes next: what is left of the known ones, as far as the budget goes and
  // prefills may (grouped_split). 0: none in this pass.
  std::uint32_t next_tokens(const GroupedLease& lease, const KnownTokens& tokens,
                            std::uint32_t budget) const;
  // Blocks to compute the next `count` tokens. It may be more than are taken in the end: vLLM's
  // estimates, which decide who runs, are kept (engine-vllm.md 10.6).
  std::uint64_t need(const GroupedLease& lease, const KnownTokens& tokens,
                     std::uint32_t count) const;

  // Running requests. requires: the lease is admitted.
  // Could `count` > 0 tokens be computed if nobody else held a block, and how many blocks are that?
  bool fits_alone(const GroupedLease& lease, const KnownTokens& tokens, std::uint32_t count) const;
  std::uint64_t need_alone(const GroupedLease& lease, const KnownTokens& tokens,
                           std::uint32_t count) const;
  // The next token needs nothing of the pool: it is computed when true. False says nothing.
  // requires: the prompt is computed.
  bool take_quietly(GroupedLease& lease) const {
    if (lease.computed >= lease.quiet_until) return false;
    ++lease.computed;
    return true;
  }
  // Gives back what is not read any more and takes the blocks for `count` > 0 tokens; false when
  // need() does not fit. Where nobody else holds a block the blocks that are really taken decide:
  // preempting others would not help, and vLLM's estimate may ask for more than the pool has.
  bool allocate(GroupedLease& lease, const KnownTokens& tokens, std::uint32_t count);
  // Its end: blocks with keys stay as cache, the tail of each group goes first.
  void release(GroupedLease& lease);
  // The same, but what it was to compute in this step will not be: such keys go.
  void preempt(GroupedLease& lease);

  // What became findable and what is not any more, for who tells others; kept only when asked for.
  // The caller takes the lists after each call that changes something: what is gone went first.
  struct NewKey {
    std::uint32_t group;
    std::uint64_t boundary;  // tokens of the prefix
  };
  void keep_changes() {
    keeps_changes_ = true;
    pool_.keep_gone_keys();
  }
  std::vector<NewKey>& new_keys() { return new_keys_; }
  std::vector<GroupKey>& gone_keys() { return pool_.gone_keys(); }

  // `leases`: all that are admitted.
  void verify(std::span<const GroupedLease* const> leases) const;

 private:
  using Table = GroupedLease::Table;
  GroupedStep step_of(const GroupedLease& lease, const KnownTokens& tokens,
                      std::uint32_t end) const;
  std::uint32_t start_of(const GroupedLease& lease) const {
    return lease.admitted ? lease.computed : lease.hit.tokens;
  }
  std::uint32_t group_count() const { return static_cast<std::uint32_t>(rules_.groups.size()); }

  enum class Caps : bool { Ignore, Apply };
  std::uint64_t waiting_need(const GroupedHit& hit, const GroupedStep& step, Caps caps) const;
  std::uint64_t part_need(const GroupRule& rule, const GroupedHit::Part& part,
                          const GroupedStep& step, Caps caps) const;
  std::uint64_t running_need(const GroupedLease& lease, const GroupedStep& step) const;
  std::uint64_t taken(const GroupedLease& lease, const GroupedStep& step) const;
  bool fits(const GroupedLease& lease, const GroupedStep& step) const;
  bool waits_for_state(const GroupedHit& hit) const;

  void take_hit(GroupedLease& lease);
  void copy_hit_tails(GroupedLease& lease);
  std::uint32_t given_back(const GroupedLease& lease) const;
  void give_back(GroupedLease& lease);
  void copy_published_tails(GroupedLease& lease);
  // Positions [first, end) of a table that a step fills; those before stay as they are or empty.
  struct Growth {
    std::uint64_t first, end;
  };
  Growth growth(const GroupRule& rule, std::uint64_t positions, const GroupedStep& step) const;
  void grow(GroupedLease& lease, const GroupedStep& step);
  void note_quiet(GroupedLease& lease) const;

  void key_blocks(GroupedLease& lease, const KnownTokens& tokens, const GroupedStep& step);
  void key_attention(Table& table, std::uint32_t group, const KnownTokens& tokens,
                     const GroupedStep& step);
  void key_state(GroupedLease& lease, std::uint32_t group, const KnownTokens& tokens,
                 const GroupedStep& step);
  bool retained(const GroupRule& rule, std::uint64_t position, const GroupedStep& step) const;
  void publish(BlockIndex block, std::uint32_t group, std::uint64_t boundary,
               const KnownTokens& tokens);
  bool is_of_this_step(BlockIndex block) const;
  void note_step(BlockIndex block);

  GroupedRules rules_;
  GroupedPool pool_;
  std::uint64_t step_ = 1;
  std::vector<std::uint64_t> published_;   // by block: the step in which it last got a key
  std::vector<BlockIndex> held_for_step_;  // one reference each
  bool keeps_changes_ = false;
  std::vector<NewKey> new_keys_;
};

}  // namespace servecast::cache
