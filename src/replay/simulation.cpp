// SPDX-License-Identifier: Apache-2.0
#include "replay/simulation.hpp"

#include "replay/loop.hpp"
#include "replay/oracle.hpp"

namespace servecast::replay {

Problems check(const Deployment& deployment, const workload::Workload& workload) {
  if (deployment.kv_eviction_policy == EvictionPolicy::Lru) return {};
  return check_foresight(deployment.rank, workload);
}

Result<RunTotals> run(const Deployment& deployment, const workload::Workload& workload,
                      const Options& options, RecordSink& sink) {
  if (Problems problems = check(deployment, workload); !problems.empty())
    return tl::unexpected(std::move(problems));
  return Loop(deployment, workload, options, sink).run();
}

}  // namespace servecast::replay
