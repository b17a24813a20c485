// SPDX-License-Identifier: Apache-2.0
#include "scheduler/rank_kv.hpp"

#include "scheduler/state_kv.hpp"

namespace servecast::scheduler {

std::unique_ptr<RankKv> make_rank_kv(const RankConfig& config, const KvNaming& naming,
                                     const RequestSlab& requests) {
  if (config.state) return std::make_unique<StateKv>(config, naming, requests);
  return nullptr;
}

}  // namespace servecast::scheduler
