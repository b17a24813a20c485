// SPDX-License-Identifier: Apache-2.0
#include "replay/simulation.hpp"

#include "replay/loop.hpp"
#include "replay/oracle.hpp"

namespace servecast::replay {
namespace {

Problem images_are_refused(std::string why, std::string hint) {
  Problem problem;
  problem.code = "replay.images";
  problem.message = "traffic.source: the trace has images, but " + std::move(why);
  problem.hint = std::move(hint);
  return problem;
}

// Nobody would encode them, or nobody knows how long that takes.
Problems check_images(const Deployment& deployment, const workload::Workload& workload) {
  if (!workload.has_images()) return {};
  if (!deployment.rank.sglang || !deployment.rank.sglang->vision)
    return {images_are_refused("no worker has sglang.vision: true, which encodes them",
                               "vision is modeled for engine.backend: sglang")};
  if (!deployment.timer->prices_images())
    return {images_are_refused("timing without vision_ms does not know how long vision takes",
                               "use timing.type: fixed with vision_ms")};
  return {};
}

}  // namespace

Problems check(const Deployment& deployment, const workload::Workload& workload) {
  if (Problems problems = check_images(deployment, workload); !problems.empty()) return problems;
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
