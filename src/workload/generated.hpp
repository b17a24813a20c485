// SPDX-License-Identifier: Apache-2.0
// Synthetic requests and sessions, made one session at a time (replay.md 10.3, 10.4). Memory does
// not grow with their number.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/problem.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "workload/lengths.hpp"
#include "workload/spec.hpp"
#include "workload/workload.hpp"

namespace servecast::workload {

// Both synthetic sources in one form. A lone request is a session of one turn; a cached prefix is a
// content block as long as the prefix, of which every request shares the first.
struct Generated {
  LengthDraw input, output;
  std::uint64_t seed = 0;
  std::uint32_t sessions = 0;
  std::uint32_t turns = 1;
  Duration delay{};                 // before each turn after the first
  std::uint32_t block_size = 0;     // tokens per content block; 0 = no request shares content
  std::uint32_t prefix_tokens = 0;  // cached prefix of every request; then block_size equals it
  std::uint32_t groups = 0;         // prefix groups; 0 = none is drawn
  double shared_ratio = 0;

  // Sizes of the whole, filled by make_generated.
  std::uint32_t input_tokens_max = 0;
  std::uint32_t total_tokens_max = 0;
};

// requires: the source passed check_spec.
Result<Generated> make_generated(const SyntheticSource& source, std::uint32_t requests);
Result<Generated> make_generated(const SessionSource& source, std::uint32_t sessions);

// Walks the sessions in generation order.
class GeneratedWalk {
 public:
  // requires: `plan` outlives the walk.
  GeneratedWalk(const Generated& plan, bool spell);
  bool next(Session& session);

 private:
  void spell(std::uint32_t group, std::uint32_t shared, std::uint32_t blocks,
             std::vector<std::uint32_t>& ids);
  const Generated* plan_;
  Random random_;
  bool spell_;
  std::uint32_t index_ = 0;
  std::uint64_t plan_offset_ = 0;
  std::uint32_t next_id_ = 0;
  // Dense ids of each group's blocks, in block order: blocks of a group are first seen in that
  // order.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> group_ids_;
};

}  // namespace servecast::workload
