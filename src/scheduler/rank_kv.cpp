// SPDX-License-Identifier: Apache-2.0
#include "scheduler/rank_kv.hpp"

#include "scheduler/grouped_bytes_kv.hpp"
#include "scheduler/grouped_kv.hpp"
#include "scheduler/state_kv.hpp"

namespace servecast::scheduler {

std::unique_ptr<RankKv> make_rank_kv(const RankConfig& config, const KvNaming& naming,
                                     const RequestSlab& requests) {
  if (config.state) return std::make_unique<StateKv>(config, naming, requests);
  if (!config.grouped) return nullptr;
  if (config.grouped->rules) return std::make_unique<GroupedKv>(config, naming, requests);
  return std::make_unique<GroupedBytesKv>(config, requests);
}

}  // namespace servecast::scheduler
