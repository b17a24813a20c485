// SPDX-License-Identifier: Apache-2.0
// One configuration at one load, without a replay: a batch of equal requests on each rank
// (perfmodel.md 8.1).
//
//   Result<Estimate> found = estimate(config);
//   print(estimate_table(*found, {}));  // cli/estimate_report.hpp
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/problem.hpp"
#include "catalog/step_model.hpp"
#include "config/config.hpp"
#include "config/deployment.hpp"
#include "fit/validation.hpp"
#include "perf/breakdown.hpp"
#include "perf/static_batch.hpp"

namespace servecast::cli {

// A coefficient of the step model at this placement.
struct Applied {
  catalog::Coefficient coefficient = catalog::Coefficient::HostPerPass;
  double value = 1.0;                         // product of the factors; shares at most 1
  std::vector<catalog::Effect> effects = {};  // that apply, in order
};

// What is known of the errors of analytic times.
struct Evidence {
  fit::Support support = fit::Support::None;
  // Of 90 of 100 measurements that are so near. Nothing: the step model states none.
  std::optional<catalog::Interval> interval = {};
  std::string source = {}, licence = {};  // of the step model
  std::vector<Applied> coefficients = {};
};

struct Estimate {
  config::Deployed deployed;
  perf::StaticBatch batch;  // of one rank
  std::uint64_t ranks = 1;  // attention-data ranks of all workers
  perf::StaticTimes times;
  double ttft_bound_ms = 0.0, tpot_bound_ms = 0.0;
  perf::Breakdown prefill;                // without parts where the timer has none
  std::optional<perf::Breakdown> decode;  // of the middle pass; nothing for one output token
  std::uint64_t request_kv_bytes = 0;     // of one request at its full length, on one GPU
  std::uint64_t requests_max = 0;         // that the KV cache of a rank holds at full length
  std::optional<Evidence> evidence;       // of analytic times
  std::vector<std::string> warnings;

  std::uint64_t requests() const { return ranks * batch.requests; }
  std::uint64_t gpus() const;
  double requests_per_s() const;
  double output_tokens_per_s() const;
  std::optional<double> tokens_per_s_of_user() const;  // nothing for one output token
  double request_bound_ms() const { return ttft_bound_ms + tpot_bound_ms * batch.decode_passes(); }
  // Of the middle decode pass. requires: there are decode passes.
  std::uint32_t decode_pass() const { return batch.decode_passes() / 2; }
};

// Lengths are those of the synthetic source, the batch is the load's concurrency divided among the
// ranks. Problems: those of deploy; "estimate.traffic" where lengths or load are not fixed;
// "estimate.speculation"; "memory.batch_does_not_fit" with needed and available bytes.
Result<Estimate> estimate(const config::Config& config);

}  // namespace servecast::cli
