// SPDX-License-Identifier: Apache-2.0
// The flat summary: which key holds what (replay.md 20.4, docs/reference/report.md).
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "base/check.hpp"
#include "report/collector_state.hpp"
#include "report/distribution.hpp"
#include "report/report.hpp"

namespace servecast::report {
namespace {

using replay::Reason;
using replay::Status;

constexpr double kNsPerSecond = 1e9;

// Everything that make_report needs once, computed in one place.
struct Figures {
  const Collector::State& state;
  const replay::RunTotals& totals;
  Duration duration;
  Distribution ttft, ttst, e2e, itl, user_rate;
  PerRequestPace pace;
};

// Laws that hold whatever the run was (P5 of replay.md 32). A breach is a bug of ours.
void check_conservation(const Collector::State& state, const replay::RunTotals& totals) {
  const std::uint64_t ended =
      std::accumulate(state.by_status.begin(), state.by_status.end(), std::uint64_t{0});
  SERVECAST_CHECK(ended + totals.incomplete_at_cap == totals.requests);
  SERVECAST_CHECK(totals.gaps.count == state.gaps);
  SERVECAST_CHECK(totals.gaps.sum_ns == state.gaps_ns);
  const auto& gaps = totals.gaps.gaps_ns;
  SERVECAST_CHECK(std::is_sorted(gaps.begin(), gaps.end()));
  std::uint64_t weights = 0;
  for (const auto& [gap, times] : gaps) weights += times;
  SERVECAST_CHECK(weights == totals.gaps.count);
}

std::optional<Problem> overflow_problem(const Collector::State& state) {
  const bool too_large = state.too_large || state.ttft_ns.sums().overflowed ||
                         state.ttst_ns.sums().overflowed || state.e2e_ns.sums().overflowed ||
                         state.tpot_ps.sums().overflowed || state.output_micro_tps.overflowed;
  if (!too_large) return std::nullopt;
  return Problem{
      .code = "report.latencies_too_large",
      .message =
          "latencies or token rates of this run pass the range of exact sums (128 bits of "
          "squared nanoseconds)",
      .place = {},
      .hint = "check the step times of the performance model",
      .fault = Fault::Execution};
}

Duration reporting_interval(const Collector::State& state, const replay::RunTotals& totals) {
  if (state.counted == 0) return {};
  SERVECAST_CHECK(totals.first_arrival <= state.last_completion);
  return state.last_completion - totals.first_arrival;
}

Result<Figures> figures_of(const Collector::State& state, const replay::RunTotals& totals) {
  const auto ttft = distribution_of(state.ttft_ns, 1e6);
  if (!ttft) return tl::unexpected(ttft.error());
  const auto ttst = distribution_of(state.ttst_ns, 1e6);
  if (!ttst) return tl::unexpected(ttst.error());
  const auto e2e = distribution_of(state.e2e_ns, 1e6);
  if (!e2e) return tl::unexpected(e2e.error());
  const auto pace = pace_of(state.tpot_ps, state.output_micro_tps);
  if (!pace) return tl::unexpected(pace.error());
  return Figures{.state = state,
                 .totals = totals,
                 .duration = reporting_interval(state, totals),
                 .ttft = *ttft,
                 .ttst = *ttst,
                 .e2e = *e2e,
                 .itl = distribution_of(totals.gaps),
                 .user_rate = rates_of(totals.gaps),
                 .pace = *pace};
}

// Adds the nine statistics as <stat>_<metric>; null without samples.
void add_distribution(Object& summary, const std::string& metric, const Distribution& d) {
  const auto put = [&](std::string_view stat, double value) {
    summary.push_back({fmt::format("{}_{}", stat, metric), d.count > 0 ? Value(value) : Value()});
  };
  put("mean", d.mean);
  put("min", d.min);
  put("max", d.max);
  put("std", d.std);
  put("median", d.percentiles[0]);
  for (std::size_t i = 1; i < kPercents.size(); ++i) {
    put(fmt::format("p{}", kPercents[i]), d.percentiles[i]);
  }
}

void add_latencies(Object& summary, const Figures& f) {
  add_distribution(summary, "ttft_ms", f.ttft);
  add_distribution(summary, "ttst_ms", f.ttst);
  add_distribution(summary, "e2e_latency_ms", f.e2e);
  add_distribution(summary, "tpot_ms", f.pace.tpot_ms);
  add_distribution(summary, "request_itl_ms", f.pace.tpot_ms);
  add_distribution(summary, "request_output_tps", f.pace.output_tps);
  add_distribution(summary, "itl_ms", f.itl);
  add_distribution(summary, "output_token_throughput_per_user", f.user_rate);
  summary.push_back({"num_ttft_samples", f.ttft.count});
  summary.push_back({"num_ttst_samples", f.ttst.count});
  summary.push_back({"num_e2e_latency_samples", f.e2e.count});
  summary.push_back({"num_tpot_samples", f.pace.tpot_ms.count});
  summary.push_back({"num_request_itl_samples", f.pace.tpot_ms.count});
  summary.push_back({"num_request_output_tps_samples", f.pace.output_tps.count});
  summary.push_back({"num_itl_samples", f.itl.count});
  summary.push_back({"num_output_token_throughput_per_user_samples", f.user_rate.count});
  summary.push_back({"percentile_method", f.totals.gaps.exact ? "exact" : "bucketed"});
}

// Null when nothing lasted: a rate over no time is no number (decisions.md 5).
Value rate(std::uint64_t count, Duration duration) {
  if (duration.ns <= 0) return {};
  return static_cast<double>(count) / (static_cast<double>(duration.ns) / kNsPerSecond);
}

Value ratio(std::uint64_t part, std::uint64_t whole, Value none) {
  return whole > 0 ? Value(static_cast<double>(part) / static_cast<double>(whole)) : none;
}

void add_throughput(Object& summary, const Figures& f) {
  const Collector::State& s = f.state;
  summary.push_back({"duration_ms", to_ms(f.duration)});
  summary.push_back({"request_throughput_rps", rate(s.counted, f.duration)});
  summary.push_back({"input_throughput_tok_s", rate(s.input_tokens, f.duration)});
  summary.push_back({"output_throughput_tok_s", rate(s.output_tokens, f.duration)});
  summary.push_back({"total_throughput_tok_s", rate(s.input_tokens + s.output_tokens, f.duration)});
  summary.push_back({"total_input_tokens", s.input_tokens});
  summary.push_back({"total_output_tokens", s.output_tokens});
  summary.push_back({"processed_tokens", s.input_tokens + s.output_tokens});
  if (!s.options.sla.is_set()) return;
  summary.push_back({"goodput_completed_requests", s.good});
  summary.push_back({"goodput_request_throughput_rps", rate(s.good, f.duration)});
  summary.push_back({"goodput_output_throughput_tok_s", rate(s.good_output_tokens, f.duration)});
  summary.push_back({"goodput_request_ratio", ratio(s.good, f.totals.requests, Value())});
}

void add_counts(Object& summary, const Figures& f) {
  const auto& by_status = f.state.by_status;
  const auto of = [&](Status status) { return by_status[static_cast<std::size_t>(status)]; };
  summary.push_back({"num_requests", f.totals.requests});
  summary.push_back({"completed_requests", f.state.counted});
  summary.push_back({"rejected_requests", of(Status::Rejected)});
  summary.push_back({"failed_requests", of(Status::Failed)});
  summary.push_back({"canceled_requests", of(Status::Canceled)});
  summary.push_back({"incomplete_at_cap", f.totals.incomplete_at_cap});
  summary.push_back({"context_limited_requests", f.state.context_limited});
  for (const Status status : {Status::Rejected, Status::Failed, Status::Canceled}) {
    const auto& reasons = f.state.by_reason[static_cast<std::size_t>(status)];
    for (std::size_t r = 1; r < kReasons; ++r) {
      if (reasons[r] == 0) continue;
      summary.push_back(
          {fmt::format("{}_requests_{}", to_string(status), to_string(Reason(r))), reasons[r]});
    }
  }
}

void add_engine(Object& summary, const Figures& f) {
  const Collector::State& s = f.state;
  const replay::RunTotals& t = f.totals;
  summary.push_back({"prefix_cache_reused_ratio", ratio(s.reused_tokens, s.input_tokens, 0.0)});
  summary.push_back({"first_admission_prefix_cache_reused_ratio",
                     ratio(s.reused_tokens_first, s.input_tokens, 0.0)});
  summary.push_back({"prefix_cache_queried_tokens", t.prefix_queried_tokens});
  summary.push_back({"prefix_cache_hit_tokens", t.prefix_hit_tokens});
  summary.push_back({"preemptions", t.preemptions});
  summary.push_back({"evictions", t.evictions});
  summary.push_back({"passes", t.passes});
  summary.push_back({"fingerprint", fmt::format("{:016x}", t.fingerprint)});

  // Aggregated workers count as decode workers (replay.md 20.2). They stand from time 0 to the end.
  const double worker_seconds =
      static_cast<double>(t.workers) * (static_cast<double>(t.end.ns) / kNsPerSecond);
  summary.push_back({"prefill_worker_seconds", 0.0});
  summary.push_back({"decode_worker_seconds", worker_seconds});
  summary.push_back({"prefill_gpus_per_worker", 0});
  summary.push_back({"decode_gpus_per_worker", t.gpus_per_worker});
  summary.push_back({"gpu_hours", worker_seconds * t.gpus_per_worker / 3600});
}

// How far a step of speculative decoding gets, and the gaps between steps: those between tokens are
// pulled down by the zeros inside bursts (replay.md 31.21).
void add_speculation(Object& summary, const replay::RunTotals& totals) {
  if (!totals.step_gaps) return;
  const Distribution gaps = distribution_of(*totals.step_gaps);
  add_distribution(summary, "inter_step_latency_ms", gaps);
  summary.push_back({"num_inter_step_latency_samples", gaps.count});
  summary.push_back({"accepted_tokens", totals.accepted_tokens});
  summary.push_back({"decode_forwards", totals.decode_forwards});
  summary.push_back(
      {"avg_accept_length", ratio(totals.accepted_tokens, totals.decode_forwards, Value())});
}

void sort_by_key(Object& object) {
  std::sort(object.begin(), object.end(),
            [](const Member& a, const Member& b) { return a.key < b.key; });
}

}  // namespace

Result<Report> make_report(Collector& collector, const replay::RunTotals& totals,
                           const RunFacts& facts) {
  const Collector::State& state = collector.state();
  check_conservation(state, totals);
  if (auto problem = overflow_problem(state)) return fail(*std::move(problem));
  for (const TextSpool* spool : {&state.passes, &state.kv_events}) {
    if (auto problem = spool->file().problem()) return fail(*std::move(problem));
  }
  const auto figures = figures_of(state, totals);
  if (!figures) return tl::unexpected(figures.error());

  Report report{.summary = {}, .sections = facts.sections};
  add_counts(report.summary, *figures);
  add_throughput(report.summary, *figures);
  add_latencies(report.summary, *figures);
  add_engine(report.summary, *figures);
  add_speculation(report.summary, totals);
  report.summary.push_back({"provenance", facts.provenance});
  if (!facts.timing_is_checked) report.summary.push_back({"qualification", "functional_only"});
  sort_by_key(report.summary);
  sort_by_key(report.sections);
  for (const Member& section : report.sections) {
    SERVECAST_CHECK(find(report.summary, section.key) == nullptr);
  }

  const Object roots{{"metadata", report.sections}, {"summary", report.summary}};
  if (auto pointer = find_non_finite(roots)) {
    return fail({.code = "report.not_finite",
                 .message = "the report holds a number that is not finite at " + *pointer,
                 .place = {},
                 .hint = "",
                 .fault = Fault::Execution});
  }
  return report;
}

}  // namespace servecast::report
