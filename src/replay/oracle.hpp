// SPDX-License-Identifier: Apache-2.0
// What a clairvoyant eviction knows (engine-vllm.md 15): the prompt blocks that every request of a
// workload asks for, in the order in which the requests would come if serving took no time. A
// request asks until a pass that admits it has ended, or until it ends.
//
//   Oracle oracle(workload, block_tokens);
//   pool.evict_by(oracle.demands());
//   oracle.admitted(ordinal);
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.hpp"
#include "base/problem.hpp"
#include "cache/demands.hpp"
#include "scheduler/prefix_names.hpp"
#include "scheduler/rank_config.hpp"
#include "scheduler/request.hpp"
#include "workload/workload.hpp"

namespace servecast::replay {

class Oracle {
 public:
  // Blocks have real hashes of `block_tokens` tokens. requires: check_foresight() found nothing.
  Oracle(const workload::Workload& workload, std::uint32_t block_tokens);

  const cache::Demands& demands() const { return demands_; }
  // A pass that admitted the request has ended. Later admissions of the same request tell nothing.
  void admitted(std::uint64_t ordinal) {
    SERVECAST_DCHECK(ordinal < demand_of_.size());
    demands_.retire(demand_of_[ordinal]);
  }
  // The request has ended, however; if its session ends with it, the turns to come never ask.
  void ended(const scheduler::Request& request);

 private:
  void add(const scheduler::Request& request);

  scheduler::PrefixNames prefixes_;
  cache::Demands demands_;
  // By ordinal; the turns of a session follow each other.
  std::vector<std::uint32_t> demand_of_, session_of_;
  std::vector<std::uint64_t> names_;  // scratch
};

// Where the prompt of a turn contains the answers before it, every answer must be known beforehand:
// nothing may cut, reject or fail a turn. One problem for each limit that could.
Problems check_foresight(const scheduler::RankConfig& rank, const workload::Workload& workload);

}  // namespace servecast::replay
