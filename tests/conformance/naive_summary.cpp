// SPDX-License-Identifier: Apache-2.0
#include "conformance/naive_summary.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace servecast::test {

std::size_t percentile_rank(std::size_t n, int p) {
  const std::size_t scaled = (n - 1) * static_cast<std::size_t>(p);
  return std::min(n - 1, (scaled + 50) / 100);
}

void add_distribution(std::map<std::string, double>& out, const std::string& name,
                      std::vector<double> values) {
  out["num_" + name + "_samples"] = static_cast<double>(values.size());
  const auto put = [&](const std::string& what, double value) {
    out[what + "_" + name + "_ms"] = value;
  };
  for (const char* what : {"mean", "min", "max", "median", "p75", "p90", "p95", "p99", "std"}) {
    put(what, 0);
  }
  if (values.empty()) return;
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  put("mean", mean);
  put("std", std::sqrt(squares / n));
  std::sort(values.begin(), values.end());
  put("min", values.front());
  put("max", values.back());
  put("median", values[percentile_rank(values.size(), 50)]);
  for (const int p : {75, 90, 95, 99}) {
    put("p" + std::to_string(p), values[percentile_rank(values.size(), p)]);
  }
}

std::map<std::string, double> naive_summary(const Recording& recording) {
  std::vector<double> ttft, ttst, tpot, itl, e2e;
  double completed = 0, rejected = 0, preemptions = 0;
  double input = 0, output = 0, reused = 0, reused_first = 0;
  Time end{};
  for (const RecordedRequest& request : recording.requests) {
    const replay::RequestRecord& r = request.record;
    preemptions += r.preemptions;
    if (r.status == replay::Status::Rejected) rejected += 1;
    if (r.status != replay::Status::Completed) continue;
    completed += 1;
    input += r.input_tokens;
    output += r.output_tokens;
    reused += r.reused_tokens;
    reused_first += r.reused_tokens_first;
    end = std::max(end, r.terminal);
    if (r.output_tokens == 0) continue;
    ttft.push_back(to_ms(r.first_token - r.arrival));
    e2e.push_back(to_ms(r.last_token - r.arrival));
    if (r.output_tokens == 1) continue;
    ttst.push_back(to_ms(r.second_token - r.first_token));
    tpot.push_back(to_ms(r.last_token - r.first_token) / (r.output_tokens - 1));
  }
  for (const auto& [gap, count] : recording.totals.gaps.gaps_ns) {
    itl.insert(itl.end(), count, ms_from_ns(gap));
  }
  const double duration = completed > 0 ? to_ms(end - recording.totals.first_arrival) : 0;
  const auto rate = [duration](double x) { return duration > 0 ? x / (duration / 1000) : 0; };

  std::map<std::string, double> out;
  out["num_requests"] = static_cast<double>(recording.totals.requests);
  out["completed_requests"] = completed;
  out["rejected_requests"] = rejected;
  out["total_input_tokens"] = input;
  out["total_output_tokens"] = output;
  out["duration_ms"] = duration;
  out["request_throughput_rps"] = rate(completed);
  out["input_throughput_tok_s"] = rate(input);
  out["output_throughput_tok_s"] = rate(output);
  out["total_throughput_tok_s"] = rate(input + output);
  out["preemptions"] = preemptions;
  out["prefix_cache_reused_ratio_capped_at_input"] = input > 0 ? reused / input : 0;
  out["first_admission_prefix_cache_reused_ratio"] = input > 0 ? reused_first / input : 0;
  add_distribution(out, "ttft", std::move(ttft));
  add_distribution(out, "ttst", std::move(ttst));
  add_distribution(out, "tpot", std::move(tpot));
  add_distribution(out, "itl", std::move(itl));
  add_distribution(out, "e2e_latency", std::move(e2e));
  return out;
}

}  // namespace servecast::test
