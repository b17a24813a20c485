// SPDX-License-Identifier: Apache-2.0
#include "replay/simulation.hpp"

#include "replay/loop.hpp"

namespace servecast::replay {

Result<RunTotals> run(const Deployment& deployment, const workload::Workload& workload,
                      const Options& options, RecordSink& sink) {
  return Loop(deployment, workload, options, sink).run();
}

}  // namespace servecast::replay
