// SPDX-License-Identifier: Apache-2.0
#include "fit/features.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace servecast::fit {
namespace {

using catalog::Coefficient;

// One pass of the worker.
struct WorkerPass {
  Time start;
  perf::StepShape shape = {};  // of the longest rank
  double cost_ms = -1.0;
  double ttft = 0.0, tpot = 0.0;
};

std::vector<WorkerPass> worker_passes(const Trajectory& run, const perf::PassCost& cost) {
  std::vector<WorkerPass> passes;
  std::uint64_t group_tokens = 0;
  const auto tell_group = [&] {
    if (!passes.empty()) passes.back().shape.group_tokens = group_tokens;
    group_tokens = 0;
  };
  for (const PassShape& part : run.passes) {
    if (passes.empty() || part.rank == 0 || passes.back().start != part.start) {
      tell_group();
      passes.push_back({.start = part.start});
    }
    WorkerPass& pass = passes.back();
    group_tokens += part.shape.prefill_isl - part.shape.prefill_prefix +
                    std::uint64_t{part.shape.decode_requests} * part.shape.decode_tokens_each;
    const double ms = perf::parts_of(cost, part.shape).total_ms;
    if (ms <= pass.cost_ms) continue;
    pass.cost_ms = ms;
    pass.shape = part.shape;
  }
  tell_group();
  return passes;
}

// Adds `weight` to every pass from the first at or after `from` to the last before `to`; sums are
// taken later.
void add_span(std::vector<WorkerPass>& passes, std::vector<double>& steps, Time from, Time to,
              double weight) {
  const auto at = [&](Time time) {
    const auto first =
        std::lower_bound(passes.begin(), passes.end(), time,
                         [](const WorkerPass& pass, Time t) { return pass.start < t; });
    return static_cast<std::size_t>(first - passes.begin());
  };
  steps[at(from)] += weight;
  steps[at(to)] -= weight;
}

void weigh(const Trajectory& run, std::vector<WorkerPass>& passes) {
  std::vector<double> ttft(passes.size() + 1), tpot(passes.size() + 1);
  const auto requests = static_cast<double>(run.requests.size());
  const auto with_gaps = static_cast<double>(
      std::count_if(run.requests.begin(), run.requests.end(),
                    [](const Milestones& request) { return request.output_tokens > 1; }));
  for (const Milestones& request : run.requests) {
    add_span(passes, ttft, request.arrival, request.first_token, 1.0 / requests);
    if (request.output_tokens > 1)
      add_span(passes, tpot, request.first_token, request.last_token,
               1.0 / (with_gaps * (request.output_tokens - 1.0)));
  }
  double waiting = 0.0, decoding = 0.0;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    waiting += ttft[i];
    decoding += tpot[i];
    passes[i].ttft = std::max(waiting, 0.0);
    passes[i].tpot = std::max(decoding, 0.0);
  }
}

// Passes with one key are nearly one shape. Decode passes differ in context alone, in which their
// time is linear; with prompts, steps of 5 % in new tokens, 8 % in decodes and 15 % in what a token
// attends to.
using Key = std::array<long, 3>;
Key key_of(const perf::StepShape& shape) {
  const auto fresh = static_cast<double>(shape.prefill_isl - shape.prefill_prefix);
  if (fresh == 0.0) return {0, static_cast<long>(shape.decode_requests), 0};
  return {1 + std::lround(std::log(fresh) / 0.05),
          std::lround(std::log1p(shape.decode_requests) / 0.08),
          std::lround(std::log1p(static_cast<double>(shape.prefill_attention) / fresh) / 0.15)};
}

// The mean of shapes, each with a weight.
class MeanShape {
 public:
  void add(const WorkerPass& pass) {
    // TPOT is small beside TTFT in these units; both must count.
    const double weight = pass.ttft + 200.0 * pass.tpot + 1e-12;
    const perf::StepShape& s = pass.shape;
    const std::array<double, kFields> fields{
        double(s.prefill_requests),  double(s.prefill_isl),     double(s.prefill_prefix),
        double(s.prefill_attention), double(s.decode_requests), double(s.decode_context),
        double(s.group_tokens)};
    for (std::size_t i = 0; i < kFields; ++i) sums_[i] += weight * fields[i];
    weight_ += weight;
    piece_.ttft += pass.ttft;
    piece_.tpot += pass.tpot;
    piece_.shape.decode_tokens_each = s.decode_tokens_each;
    piece_.shape.capacity_tokens = s.capacity_tokens;
  }

  Piece piece() const {
    const auto mean = [&](std::size_t i) {
      return static_cast<std::uint64_t>(std::llround(sums_[i] / weight_));
    };
    Piece piece = piece_;
    perf::StepShape& s = piece.shape;
    s.prefill_isl = mean(1);
    s.prefill_prefix = mean(2);
    const bool prefills = s.prefill_isl > s.prefill_prefix;
    s.prefill_requests =
        prefills ? std::max<std::uint32_t>(1, static_cast<std::uint32_t>(mean(0))) : 0;
    s.prefill_attention = mean(3);
    s.decode_requests = static_cast<std::uint32_t>(mean(4));
    s.decode_context = mean(5);
    s.group_tokens = mean(6);
    return piece;
  }

 private:
  static constexpr std::size_t kFields = 7;
  Piece piece_;
  std::array<double, kFields> sums_{};
  double weight_ = 0.0;
};

}  // namespace

ClientLoad client_load_of(const Trajectory& run) {
  const auto requests = static_cast<double>(run.requests.size());
  double input = 0.0;
  for (const Milestones& request : run.requests) input += request.input_tokens;
  ClientLoad load;
  load.concurrency = static_cast<double>(std::count_if(
      run.requests.begin(), run.requests.end(),
      [&](const Milestones& request) { return request.arrival == run.totals.first_arrival; }));
  load.first_wave = load.concurrency / requests;
  load.input_tokens = input / requests;
  if (run.totals.decode_forwards > 0)
    load.tokens_a_step = static_cast<double>(run.totals.accepted_tokens) /
                         static_cast<double>(run.totals.decode_forwards);
  return load;
}

Features condense(const Trajectory& run, const perf::PassCost& cost) {
  std::vector<WorkerPass> passes = worker_passes(run, cost);
  weigh(run, passes);
  std::map<Key, MeanShape> cells;
  for (const WorkerPass& pass : passes) {
    if (pass.ttft > 0.0 || pass.tpot > 0.0) cells[key_of(pass.shape)].add(pass);
  }
  Features features;
  for (const auto& [key, cell] : cells) features.pieces.push_back(cell.piece());
  features.load = client_load_of(run);
  return features;
}

Times engine_times(const Features& features, const perf::PassCost& cost) {
  Times times;
  for (const Piece& piece : features.pieces) {
    const double ms = perf::parts_of(cost, piece.shape).total_ms;
    times.ttft_ms += piece.ttft * ms;
    times.tpot_ms += piece.tpot * ms;
  }
  return times;
}

double client_delay_p50_ms(const ClientLoad& load, double tpot_ms,
                           const perf::Coefficients& coefficients) {
  return coefficients[Coefficient::ClientConstant] +
         coefficients[Coefficient::ClientPerToken] * load.input_tokens +
         coefficients[Coefficient::FlushPasses] * tpot_ms * load.tokens_a_step +
         coefficients[Coefficient::Intake];
}

double client_ttft_ms(const ClientLoad& load, const Times& engine,
                      const perf::Coefficients& coefficients) {
  return engine.ttft_ms + client_delay_p50_ms(load, engine.tpot_ms, coefficients) +
         load.first_wave * (coefficients[Coefficient::ColdStart] +
                            coefficients[Coefficient::Intake] * load.concurrency / 2.0);
}

}  // namespace servecast::fit
