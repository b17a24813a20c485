// SPDX-License-Identifier: Apache-2.0
#include "config/warnings.hpp"

#include <fmt/core.h>

namespace servecast::config {

std::vector<std::string> warnings_of(const Config& config) {
  std::vector<std::string> warnings;
  const workload::Load& load = config.traffic.load;
  const Engine& engine = config.engine;
  const std::uint64_t seats = std::uint64_t{engine.rank.max_sequences} *
                              engine.parallelism.attention_data * engine.replicas;
  if (load.kind == workload::Load::Kind::Concurrency) {
    if (load.concurrency > seats)
      warnings.push_back(fmt::format(
          "traffic.load.concurrency {} is more than the {} requests that all workers run at once",
          load.concurrency, seats));
    const std::optional<std::uint64_t>& count = config.traffic.stop.count;
    if (count && *count < std::uint64_t{10} * load.concurrency)
      warnings.push_back(
          fmt::format("traffic.stop: {} is less than ten times the concurrency {}: start and end "
                      "of the run weigh on the averages",
                      *count, load.concurrency));
  }
  if (engine.capacity.kind == Capacity::Kind::Default && engine.capacity.memory_fraction > 0.95)
    warnings.push_back(
        fmt::format("kv_cache.capacity.memory_fraction {} leaves little memory for anything else",
                    engine.capacity.memory_fraction));
  return warnings;
}

}  // namespace servecast::config
