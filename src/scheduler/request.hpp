// SPDX-License-Identifier: Apache-2.0
// One request inside a rank, and the slab that holds them. Everything refers to a request by its
// slot.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/time.hpp"
#include "cache/block_pool.hpp"
#include "scheduler/content.hpp"
#include "workload/workload.hpp"

namespace servecast::scheduler {

using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = UINT32_MAX;
inline constexpr std::uint64_t kNoOrdinal = UINT64_MAX;  // of a slot without a request

enum class State : std::uint8_t { Waiting, Running, Preempted, Ended };
enum class Ending : std::uint8_t { None, Completed, Rejected, Failed, Canceled };
enum class Reason : std::uint8_t {
  None,
  ModelLength,
  PoolTooSmall,
  PromptExceedsStepBudget,
  KvCapacity,
  OversizedPass  // a pass of it cannot fit into a pool of bytes, one of fewer tokens could
};

struct AdmissionRecord {
  Time at;
  std::uint32_t reused_tokens;
};

// What was asked of a request, where it stands and what happened to it, as plain numbers. What a
// pass touches of every running request stands first, in one cache line.
struct RequestFacts {
  std::uint32_t prompt_tokens = 0;
  // Where it stands. While a request is a member of the cohort its counts are those of the join;
  // the cohort knows how many passes have gone since.
  std::uint32_t generated = 0;     // output tokens so far
  std::uint32_t computed = 0;      // tokens whose KV is in the blocks
  std::uint32_t final_tokens = 0;  // known tokens at which generation is complete
  std::uint32_t quiet_until = 0;   // up to so many computed tokens no block is taken or sealed
  std::uint32_t blocks = 0;        // blocks held: the sealed ones first, then anonymous ones
  Slot before = kNoSlot, after = kNoSlot;  // in the running or waiting list
  Time last_token = kNever;
  std::uint64_t emitted_in = 0;  // pass of its last token; stale for members of the cohort
  State state = State::Waiting;
  Ending ending = Ending::None;
  Reason reason = Reason::None;
  // Without chunked prefill: may be computed in parts after all (decisions.md 12).
  bool split = false;
  std::uint64_t joined_step = 0;  // cohort step at which it is a member first
  std::uint64_t admission_order = 0;
  // SGLang: of the blocks held, those that are in the radix tree, and where they end there.
  std::uint32_t prefix_blocks = 0, prefix_node = 0;
  std::uint32_t unseen = 0;  // of the tokens generated, those whose pass has not been observed yet

  // What was asked.
  std::uint64_t ordinal = kNoOrdinal;
  std::uint32_t output_tokens = 0;
  std::uint32_t session = 0, turn = 0, row = 0;
  bool in_session = false;             // its session has more than one turn
  std::int32_t priority = 0;           // the lower, the more urgent
  std::uint32_t driver = 0;            // the workload driver's own mark
  std::uint32_t worker = 0, rank = 0;  // where it was placed
  Time arrival;
  Content content;
  std::span<const workload::Image> images;  // of the prompt

  // What happened.
  Time first_admit = kNever, first_token = kNever, second_token = kNever;
  std::uint32_t reused_first = 0, reused_max = 0;  // clamped to the prompt
  std::uint32_t admissions = 0, preemptions = 0;
  std::uint64_t kv_needed = 0;  // blocks or bytes, where the request ended for want of them

  std::uint32_t known() const { return prompt_tokens + generated; }
  // Output tokens still to come; 0 means that generation is complete.
  std::uint32_t remaining() const { return final_tokens - known(); }
};

struct Request : RequestFacts {
  std::vector<cache::BlockIndex> sealed;  // blocks with a name, from the first one on
  std::vector<Time> token_times;          // where each request is computed by itself
  // With speculation: tokens of each step that gave some; their sum is the tokens generated.
  std::vector<std::uint32_t> burst_sizes;
  // Stretches of passes [first, last] that each gave it one token; kept only where gaps may be
  // taken back.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> token_passes;
  // Reference mode: prefix hashes of the full prompt blocks.
  std::vector<std::uint64_t> prompt_names;
  std::vector<AdmissionRecord> history;  // only when captured
};

// Slots are reused; the vectors of a slot keep their memory.
class RequestSlab {
 public:
  Slot add() {
    if (free_.empty()) {
      requests_.emplace_back();
      return static_cast<Slot>(requests_.size() - 1);
    }
    const Slot slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void remove(Slot slot) {
    Request& request = requests_[slot];
    static_cast<RequestFacts&>(request) = RequestFacts{};
    request.sealed.clear();
    request.token_times.clear();
    request.burst_sizes.clear();
    request.token_passes.clear();
    request.prompt_names.clear();
    request.history.clear();
    free_.push_back(slot);
  }
  Request& operator[](Slot slot) { return requests_[slot]; }
  const Request& operator[](Slot slot) const { return requests_[slot]; }

 private:
  std::vector<Request> requests_;
  std::vector<Slot> free_;
};

// A doubly linked list of requests through Request::before and Request::after.
class RequestList {
 public:
  bool empty() const { return first_ == kNoSlot; }
  std::uint32_t size() const { return size_; }
  Slot first() const { return first_; }
  Slot last() const { return last_; }

  void push_back(RequestSlab& slab, Slot slot) {
    Request& request = slab[slot];
    request.before = last_;
    request.after = kNoSlot;
    (last_ == kNoSlot ? first_ : slab[last_].after) = slot;
    last_ = slot;
    ++size_;
  }
  void push_front(RequestSlab& slab, Slot slot) {
    Request& request = slab[slot];
    request.before = kNoSlot;
    request.after = first_;
    (first_ == kNoSlot ? last_ : slab[first_].before) = slot;
    first_ = slot;
    ++size_;
  }
  // Before the member `at`; kNoSlot: at the end.
  void insert(RequestSlab& slab, Slot slot, Slot at) {
    if (at == kNoSlot) return push_back(slab, slot);
    if (at == first_) return push_front(slab, slot);
    Request& request = slab[slot];
    request.before = slab[at].before;
    request.after = at;
    slab[request.before].after = slot;
    slab[at].before = slot;
    ++size_;
  }
  void remove(RequestSlab& slab, Slot slot) {
    const Request& request = slab[slot];
    (request.before == kNoSlot ? first_ : slab[request.before].after) = request.after;
    (request.after == kNoSlot ? last_ : slab[request.after].before) = request.before;
    SERVECAST_DCHECK(size_ > 0);
    --size_;
  }

 private:
  Slot first_ = kNoSlot, last_ = kNoSlot;
  std::uint32_t size_ = 0;
};

}  // namespace servecast::scheduler
