// SPDX-License-Identifier: Apache-2.0
// A prediction's configuration: read strictly, every value with its origin.
//
//   Result<Config> config = config::read({.path = "run.yaml", .sets = {"engine.model=Qwen3-8B"}});
//   if (!config) return report(config.error());
//   print(config::to_yaml(config->settings));  // predict accepts it and gives the same result
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"
#include "base/time.hpp"
#include "cache/kv_groups.hpp"
#include "catalog/kinds.hpp"
#include "catalog/step_model.hpp"
#include "config/setting.hpp"
#include "perf/placement.hpp"
#include "perf/timers.hpp"
#include "replay/simulation.hpp"
#include "router/spec.hpp"
#include "scheduler/rank_config.hpp"
#include "workload/spec.hpp"

namespace servecast::config {

// Where the number of KV blocks comes from.
struct Capacity {
  enum class Kind : std::uint8_t { Default, Fixed, FromLog };
  Kind kind = Kind::Default;
  double memory_fraction = 0.9;  // Default: share of the GPU's memory that the engine may use
  std::uint64_t cuda_graph_reserved_bytes = 0;  // Default: taken out before KV
  std::optional<std::uint32_t> blocks = {};     // Fixed: exactly one of these
  std::optional<std::uint64_t> bytes = {};
  std::string log = {};  // FromLog: path of the engine's log
};

struct Timing {
  enum class Kind : std::uint8_t { Default, Fixed, Polynomial };
  Kind kind = Kind::Default;
  perf::FixedDurations fixed = {};
  perf::SpeedRatios ratios = {};
  // Default: a file with what was learnt from measurements; nothing: what the program ships. Code
  // may give it as it is.
  std::optional<std::string> step_model_path = {};
  std::shared_ptr<const catalog::StepModel> step_model = {};
};

// Grouped KV caches as written; without groups there are none. The gate judges them in deploy().
struct Grouped {
  std::vector<cache::KvGroup> groups = {};
  std::optional<std::uint32_t> match_unit = {};  // tokens; that of a state cache too
  std::optional<cache::ProbeEvidence> evidence = {};
  std::optional<std::string> version = {};  // of vLLM
  bool key_output_blocks = true;
};

struct Engine {
  std::string model = {};                      // as written: a name in the catalog or a file
  std::optional<std::string> model_like = {};  // the card that stands for the model
  std::string hardware = {};                   // as `model`
  catalog::EngineKind backend = catalog::EngineKind::Vllm;
  std::optional<std::uint32_t> context_length = {};  // nothing: the model's limit
  std::uint32_t replicas = 1;
  perf::Parallelism parallelism = {};               // of one worker
  std::optional<std::string> backend_version = {};  // as measurements write it
  // Of weights and KV cache; nothing: the checkpoint's own. No document says them.
  std::optional<perf::Precisions> precisions = {};
  scheduler::RankConfig rank = {};  // blocks and max_model_len are filled by deployment()
  std::optional<std::uint64_t> kv_bytes_per_token = {};  // nothing: from the model
  Grouped grouped = {};
  Capacity capacity = {};
  Timing timing = {};

  // Of a capacity that is fixed; 0 when it is given in bytes that hold none.
  std::uint64_t fixed_blocks() const;
};

// Bounds of evaluation.sla in ms, inclusive.
struct Sla {
  std::optional<double> ttft_ms;
  std::optional<double> itl_ms;
  std::optional<double> e2e_ms;
};

struct Config {
  workload::Spec traffic = {};
  std::optional<Time> cap = {};  // traffic.stop.max_virtual_time_seconds
  Engine engine = {};
  router::Spec router = {};
  replay::EvictionPolicy kv_eviction_policy = replay::EvictionPolicy::Lru;
  Sla sla = {};
  Settings settings = {};                  // every value, in the order of the description
  std::vector<std::string> warnings = {};  // one line each
};

struct Input {
  std::string path = {};  // a file; or `text` is the document and `path` only its name
  std::optional<std::string> text = {};
  std::vector<std::string> sets = {};      // PATH=VALUE, applied left to right
  std::optional<std::uint64_t> seed = {};  // replaces every seed
};

// Every problem found in the document; rules that compare fields are checked once all fields are
// fine.
Result<Config> read(const Input& input);

// Replaces the prefix "data:" by the data folder: the environment variable SERVECAST_DATA, else
// ../shared/data seen from the current directory or from a directory above the configuration file.
// Other paths stay: they are relative to the current directory.
Result<std::string> resolve_path(std::string_view written, const std::string& config_path);

}  // namespace servecast::config
