// SPDX-License-Identifier: Apache-2.0
#include "fit/physics.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "perf/coefficients.hpp"
#include "perf/memory.hpp"
#include "perf/precision.hpp"

namespace servecast::fit {
namespace {

// accuracy-notes.md 4: served runs touch about 0.75 of the experts that even routing touches.
constexpr double kTouchedShare = 0.7;

// Of all layers together. `share`: of the experts that a layer has.
double routed_parameters(const catalog::ModelCard& model, double share) {
  double sum = 0;
  for (const catalog::LayerGroup& group : model.groups) {
    const auto* experts = std::get_if<catalog::Experts>(&group.feed_forward);
    if (experts == nullptr) continue;
    const double hidden = experts->latent > 0 ? experts->latent : model.hidden;
    sum += (experts->gated ? 3.0 : 2.0) * hidden * experts->width * experts->count * group.count;
  }
  return sum * share;
}

// Share of its layer's experts that a token chooses; 1 without experts.
double share_chosen(const catalog::ModelCard& model) {
  const catalog::Experts* experts = model.experts();
  return experts != nullptr ? static_cast<double>(experts->per_token) / experts->count : 1.0;
}

// Parameters that every token passes through: all that is stored, less embeddings and the experts
// that a token does not choose.
double active_parameters(const perf::Placement& placement) {
  perf::Placement whole = placement;
  whole.parallelism = {};
  whole.precisions = {};  // bfloat16: two bytes each
  const catalog::ModelCard& model = placement.model;
  const double embedding = model.embeddings_tied ? 0.0 : double{1} * model.vocab * model.hidden;
  const double stored = static_cast<double>(perf::weight_bytes(whole)) / 2.0;
  const double idle = routed_parameters(model, 1.0 - share_chosen(model));
  return stored - embedding - idle;
}

double bytes_touched(const perf::Placement& placement, double tokens) {
  const catalog::ModelCard& model = placement.model;
  const perf::Parallelism& p = placement.parallelism;
  const double embedding = 2.0 * model.vocab * model.hidden / p.tensor;
  const double all = static_cast<double>(perf::weight_bytes(placement));
  if (model.experts() == nullptr) return all - embedding;
  const double shards = double{1} * p.moe_tensor * p.moe_expert * p.pipeline;
  const double experts = routed_parameters(model, 1.0) / shards *
                         perf::bytes_per_element(placement.precisions.experts);
  const double missed = 1.0 - share_chosen(model);
  const double touched = kTouchedShare * (1.0 - std::pow(missed, tokens));
  return all - embedding - experts * (1.0 - touched);
}

double peak_flops(const perf::Placement& placement) {
  const auto& precisions = placement.precisions;
  const auto linear = perf::peak_flops_linear(placement.system, perf::main_precision(placement));
  const auto experts = perf::peak_flops(placement.system, precisions.experts);
  return static_cast<double>(std::max(linear.value_or(0), experts.value_or(0)));
}

}  // namespace

Limits limits_of(const MeasuredRow& row, const RowCase& made) {
  const perf::Placement& placement = made.deployed.placement;
  const double concurrency = std::max(1.0, static_cast<double>(row.concurrency.value_or(1)));
  const double output = row.output_tokens.value_or(1), input = row.input_tokens.value_or(1);
  const double generating = row.tpot_ms.value_or(0) * output;
  const double request_ms = row.ttft_ms.value_or(0) + generating;
  const double decoding = row.ttft_ms ? concurrency * generating / request_ms : concurrency;
  const auto& speculation = made.config.engine.rank.speculation;
  const double tokens_a_pass = speculation ? speculation->expected_tokens() : 1.0;

  Limits limits;
  limits.tpot_ms = 1e3 * bytes_touched(placement, std::max(decoding, 1.0)) /
                   static_cast<double>(placement.system.memory_bytes_per_s) / tokens_a_pass;
  if (row.ttft_ms && row.tpot_ms) {
    const double gpus = static_cast<double>(perf::gpus_per_worker(placement.parallelism));
    const double flops = 2.0 * active_parameters(placement) * (input + output);
    limits.flops_share = concurrency * flops / (request_ms / 1e3) / (gpus * peak_flops(placement));
  }
  return limits;
}

std::string impossible_reason(const MeasuredRow& row, const RowCase& made) {
  const Limits limits = limits_of(row, made);
  if (limits.flops_share > 1)
    return fmt::format("its rate is {:.0f} % of the peak FLOP rate", 100 * limits.flops_share);
  if (row.tpot_ms && *row.tpot_ms < limits.tpot_ms)
    return fmt::format("TPOT is below the {:.2f} ms that reading the weights takes",
                       limits.tpot_ms);
  return {};
}

}  // namespace servecast::fit
