// SPDX-License-Identifier: Apache-2.0
// What users send, and when: an immutable plan of sessions. A lone request is a session of one
// turn.
//
//   Result<Workload> workload = build(spec);
//   Workload::Cursor cursor = workload->cursor();
//   for (Session s; cursor.next(s);) ...
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"
#include "base/time.hpp"
#include "workload/spec.hpp"

namespace servecast::workload {

inline constexpr std::uint32_t kNone = UINT32_MAX;
// Seed of the stream from which every output token without an authored plan is drawn
// (replay.md 10.5).
inline constexpr std::uint64_t kOutputPlanSeed = 0xD37A0A7E5EEDULL;

// Of Turn::cancel_after: the client waits as long as it takes.
inline constexpr Duration kForever{INT64_MAX};

// An image of a prompt, at its placeholder tokens [start, end). What the tokens are says the
// prompt, not the image: prompts with other images need other block ids.
struct Image {
  std::uint64_t identity = 0;  // equal for equal images
  std::uint32_t start = 0, end = 0;
  std::uint64_t bytes = 0;  // of its embedding

  std::uint32_t tokens() const { return end - start; }
  friend bool operator==(const Image&, const Image&) = default;
};

struct Turn {
  std::uint32_t input_tokens = 0;  // the whole prompt; only the new tokens where prompts accumulate
  std::uint32_t output_tokens = 0;  // 0 = prefill only
  Duration delay;                   // after the turn before ended; 0 for the first turn
  // Prompt content as block ids: in Workload::ids() or, where prompts accumulate, in Session::ids,
  // which only a spelling cursor fills. An id stands for trace_block_size() equal tokens of that
  // value; the list is cut to input_tokens, so that equal ids of a partial last block share the
  // shorter length (replay.md 12.1).
  std::uint64_t ids_first = 0;
  std::uint32_t ids_count = 0;       // 0 = content that no other request has
  std::uint64_t authored_first = 0;  // exact output tokens in Workload::authored_tokens()
  bool authored = false;
  std::int32_t priority = 0;  // the lower, the more urgent; for schedulers that look at it
  // What must be equal beside the tokens for a prefix to be shared: adapter, tenant. 0 = nothing.
  std::uint64_t extra_key = 0;
  std::uint32_t row = kNone;  // index of the trace row, for names and metadata
  // So long after its arrival the client goes away, unless it has the whole answer; > 0.
  Duration cancel_after = kForever;
};

struct Session {
  std::uint32_t index = 0;  // position in generation or file order
  // Creation ordinal of turn 0; its runtime id is this + 1 (decisions.md 9a).
  std::uint64_t first_request = 0;
  std::uint64_t plan_offset = 0;  // word of the output-plan stream where turn 0's tokens begin
  Time arrival;                   // of turn 0; meaningless in a closed loop
  // The first `shared_tokens` of turn 0 are those of prefix group `group`; 0 = nothing is shared.
  std::uint32_t group = 0;
  std::uint32_t shared_tokens = 0;
  std::vector<Turn> turns;
  // Filled by a spelling cursor of an accumulating workload, else empty.
  std::vector<std::uint32_t> ids;
};

// Facts about the source for the report.
struct Notes {
  std::uint64_t rows_out_of_order = 0;  // trace rows whose time was before the row above
  // First turns that took the time of the row before (decisions.md 9b).
  std::uint64_t rows_without_time = 0;
  // Later turns whose prompt does not begin with the whole blocks of the turn before: what a file
  // of added tokens, read as whole prompts, looks like (the reverse of the check of
  // replay.md 11.1).
  std::uint64_t rows_delta_suspect = 0;
  std::string source_sha256;          // of the trace file's bytes; empty for synthetic sources
  std::vector<std::string> warnings;  // one line each, for stderr
};

class Workload {
 public:
  Workload();
  Workload(Workload&&) noexcept;
  Workload& operator=(Workload&&) noexcept;
  ~Workload();

  bool closed_loop() const;           // arrivals follow completions
  std::uint32_t concurrency() const;  // sessions in flight at most; closed loop only
  // Prompts of later turns contain the turns before; Session::group and shared_tokens say what
  // sessions have in common. True for session sources and for a synthetic source with a cached
  // prefix: its requests are sessions of one turn and of group 0, with shared_tokens = the prefix,
  // which is also their block size.
  bool accumulating() const;
  bool single_turn() const;  // every session has exactly one turn
  bool has_authored_outputs() const;
  bool may_cancel() const;        // some client may go away before it has its answer
  Duration cancel_after() const;  // of turns that say nothing; > 0
  std::uint64_t session_count() const;
  std::uint64_t request_count() const;  // turns of all sessions
  // Longest whole prompt (accumulated where prompts accumulate), and longest prompt + output of one
  // request. Exact, also for drawn lengths.
  std::uint32_t input_tokens_max() const;
  std::uint32_t total_tokens_max() const;
  std::uint32_t trace_block_size() const;  // tokens per block id; 1 where no prompt has ids
  std::span<const std::uint32_t> ids() const;
  std::span<const std::uint32_t> authored_tokens() const;
  // Of a trace row, in the order of its list; most rows have none.
  bool has_images() const;
  std::span<const Image> images(std::uint32_t row) const;
  const Notes& notes() const;

  // Names of a trace session; empty when the file gave none.
  std::string_view session_name(std::uint32_t session) const;
  std::string_view request_name(std::uint32_t row) const;
  // Canonical JSON text of the row's scheduling metadata (priority, ...); empty when none.
  std::string_view metadata(std::uint32_t row) const;

  // Walks the sessions in order of (arrival, index) in an open loop, of index in a closed loop,
  // generating them on the way. `spell` asks for Session::ids (dense token values in first-seen
  // order).
  class Cursor {
   public:
    Cursor(Cursor&&) noexcept;
    Cursor& operator=(Cursor&&) noexcept;
    ~Cursor();
    bool next(Session& session);  // false at the end; reuses the vectors of `session`
   private:
    friend class Workload;
    struct State;
    explicit Cursor(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  Cursor cursor(bool spell = false) const;

 private:
  friend Result<Workload> build(const Spec& spec);
  struct Plan;
  std::shared_ptr<const Plan> plan_;
};

// Reads and checks everything; every bad row is a Problem (20 at most, then a count). Nothing is
// half-loaded. The cursors that come of it cannot fail: arrivals and sizes that pass the range of
// their types are found here.
Result<Workload> build(const Spec& spec);

}  // namespace servecast::workload
