// SPDX-License-Identifier: Apache-2.0
#include "fit/trajectory.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "workload/workload.hpp"

namespace servecast::fit {
namespace {

constexpr double kNsPerMs = 1e6;

double ms(Duration duration) {
  return static_cast<double>(duration.ns) / kNsPerMs;
}

class Recorder final : public replay::RecordSink {
 public:
  Recorder(Trajectory& into, std::uint64_t capacity_tokens, std::uint32_t decode_tokens_each)
      : into_(into), capacity_tokens_(capacity_tokens), decode_tokens_each_(decode_tokens_each) {}

  void on_request(const replay::RequestRecord& record) override {
    if (record.status != replay::Status::Completed) return;
    into_.requests.push_back({.arrival = record.arrival,
                              .first_admit = record.first_admit,
                              .first_token = record.first_token,
                              .last_token = record.last_token,
                              .input_tokens = record.input_tokens,
                              .output_tokens = record.output_tokens,
                              .rank = record.rank});
  }

  void on_pass(const replay::PassRecord& record) override {
    PassShape& pass = into_.passes.emplace_back();
    pass.start = record.start;
    pass.end = record.end;
    pass.rank = record.rank;
    perf::StepShape& shape = pass.shape;
    shape.prefill_requests = record.prefill_requests;
    shape.prefill_isl = record.total_isl;
    shape.prefill_prefix = record.total_prefix;
    shape.decode_requests = record.decode_requests;
    shape.decode_context = record.total_length;
    shape.decode_tokens_each = decode_tokens_each_;
    shape.capacity_tokens = capacity_tokens_;
    if (record.prefill_requests > 0) shape.prefill_attention = prefill_attention(record);
  }

 private:
  // Decoding requests compute decode_tokens_each tokens from the end of what is known; what is left
  // are prompts. All of a pass's work less the decoders', which total_length gives.
  std::uint64_t prefill_attention(const replay::PassRecord& record) const {
    std::uint64_t work = 0;
    for (const auto& part : record.scheduled)
      work += std::uint64_t{part.to - part.from} * (std::uint64_t{part.from} + part.to);
    const std::uint64_t width = decode_tokens_each_;
    const std::uint64_t decode =
        width * (2 * record.total_length + record.decode_requests * width) -
        2 * width * record.decode_requests;
    return work > decode ? work - decode : 0;
  }

  Trajectory& into_;
  std::uint64_t capacity_tokens_;
  std::uint32_t decode_tokens_each_;
};

void count_awaiting(Trajectory& run) {
  std::vector<Time> arrivals, first_tokens;
  for (const Milestones& request : run.requests) {
    arrivals.push_back(request.arrival);
    first_tokens.push_back(request.first_token);
  }
  std::sort(arrivals.begin(), arrivals.end());
  std::sort(first_tokens.begin(), first_tokens.end());
  for (PassShape& pass : run.passes) {
    const auto arrived = std::upper_bound(arrivals.begin(), arrivals.end(), pass.start);
    const auto served = std::lower_bound(first_tokens.begin(), first_tokens.end(), pass.end);
    pass.awaiting_first =
        static_cast<std::uint64_t>((arrived - arrivals.begin()) - (served - first_tokens.begin()));
  }
}

std::optional<double> mean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::optional<double> middle(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

Result<Trajectory> run_row(const RowCase& made, const TrajectoryOptions& options) {
  const auto workload = workload::build(made.config.traffic);
  if (!workload) return tl::unexpected(workload.error());
  const replay::Deployment& deployment = made.deployed.deployment;
  Trajectory run;
  Recorder recorder(run, std::uint64_t{deployment.rank.blocks} * deployment.rank.block_tokens,
                    deployment.rank.speculation ? deployment.rank.speculation->width() : 1);
  replay::Options how;
  how.capture_passes = options.passes;
  auto totals = replay::run(deployment, *workload, how, recorder);
  if (!totals) return tl::unexpected(std::move(totals.error()));
  if (run.requests.size() != totals->requests)
    return fail({"fit.incomplete",
                 fmt::format("{} of {} requests did not complete",
                             totals->requests - run.requests.size(), totals->requests),
                 {},
                 ""});
  run.totals = std::move(*totals);
  run.streams = made.streams;
  count_awaiting(run);
  return run;
}

Figures figures_of(const Trajectory& trajectory) {
  std::vector<double> ttft, tpot, e2e;
  std::uint64_t tokens = 0;
  for (const Milestones& request : trajectory.requests) {
    ttft.push_back(ms(request.first_token - request.arrival));
    e2e.push_back(ms(request.last_token - request.arrival));
    if (request.output_tokens > 1)
      tpot.push_back(ms(request.last_token - request.first_token) / (request.output_tokens - 1));
    tokens += request.output_tokens;
  }
  const replay::RunTotals& totals = trajectory.totals;
  const double seconds = ms(totals.end - totals.first_arrival) / 1e3;
  const double gpus =
      static_cast<double>(totals.workers) * totals.gpus_per_worker / trajectory.streams;
  Figures figures{.ttft_ms = mean(ttft),
                  .ttft_p50_ms = middle(ttft),
                  .tpot_ms = mean(tpot),
                  .e2e_ms = mean(e2e),
                  .output_tok_s_per_gpu = {}};
  if (seconds > 0) figures.output_tok_s_per_gpu = static_cast<double>(tokens) / seconds / gpus;
  return figures;
}

}  // namespace servecast::fit
