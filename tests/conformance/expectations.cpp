// SPDX-License-Identifier: Apache-2.0
#include "conformance/expectations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/mismatch.hpp"
#include "conformance/naive_summary.hpp"

namespace servecast::test {
namespace {

std::optional<std::string> row_mismatch(std::size_t row, const ExpectedRequest& want,
                                        const replay::RequestRecord& got) {
  Mismatch m(fmt::format("row {}", row));
  m.word("status", to_string(got.status), want.status);
  m.exact("worker", got.worker, want.worker);
  m.moment("arrival_ms", got.arrival, want.arrival);
  m.moment("first_admit_ms", got.first_admit, want.first_admit);
  m.moment("first_token_ms", got.first_token, want.first_token);
  m.moment("last_token_ms", got.last_token, want.last_token);
  m.moment("terminal_ms", got.terminal, want.terminal);
  m.exact("input_tokens", got.input_tokens, want.input_tokens);
  m.exact("requested_output_tokens", got.requested_output_tokens, want.requested_output_tokens);
  m.exact("output_tokens", got.output_tokens, want.output_tokens);
  m.exact("reused tokens at first admission", got.reused_tokens_first,
          std::min(want.reused_first, want.input_tokens));
  m.exact("reused tokens", got.reused_tokens, std::min(want.reused, want.input_tokens));
  m.exact("preemptions", got.preemptions, want.preemptions);
  return m.take();
}

using Rows = Mismatch::Rows;

Rows rows_of(const std::vector<replay::PassRecord::Scheduled>& list) {
  Rows out;
  for (const auto& item : list) out.push_back({item.request, item.from, item.to});
  return out;
}
Rows rows_of(const std::vector<replay::PassRecord::Output>& list) {
  Rows out;
  for (const auto& item : list) {
    out.push_back({item.request, item.tokens, item.completed ? 1U : 0U});
  }
  return out;
}
Rows rows_of(const std::vector<replay::PassRecord::Preempted>& list) {
  Rows out;
  for (const auto& item : list) out.push_back({item.request, item.blocks});
  return out;
}
Rows rows_of(const std::vector<std::uint64_t>& list) {
  Rows out;
  for (const std::uint64_t item : list) out.push_back({item});
  return out;
}
// Reuse is compared clamped to the input, as the records have it.
Rows rows_of(const std::vector<replay::PassRecord::Admitted>& list, const SharedCase& expected) {
  Rows out;
  for (const auto& item : list) {
    const std::uint32_t input =
        item.request < expected.requests.size() ? expected.requests[item.request].input_tokens : 0;
    out.push_back({item.request, std::min(item.reused_tokens, input)});
  }
  return out;
}

std::optional<std::string> pass_mismatch(const SharedCase& expected, const ExpectedPass& want,
                                         const replay::PassRecord& got) {
  Mismatch m(fmt::format("worker {} pass {}", want.worker, want.pass));
  m.exact("worker", got.worker, want.worker);
  m.exact("pass", got.pass, want.pass);
  m.moment("start_ms", got.start, want.start);
  m.rows("admitted", rows_of(got.admitted, expected), rows_of(want.admitted, expected));
  m.rows("preempted", rows_of(got.preempted), rows_of(want.preempted));
  m.rows("rejected", rows_of(got.rejected), rows_of(want.rejected));
  m.rows("scheduled", rows_of(got.scheduled), rows_of(want.scheduled));
  m.exact("prefill_count", got.prefill_requests, want.prefill_requests);
  m.exact("total_isl", got.total_isl, want.total_isl);
  m.exact("total_prefix", got.total_prefix, want.total_prefix);
  m.exact("decode_count", got.decode_requests, want.decode_requests);
  m.exact("total_length", got.total_length, want.total_length);
  m.milliseconds("prefill_ms", got.prefill, want.prefill);
  m.milliseconds("decode_ms", got.decode, want.decode);
  m.moment("end_ms", got.end, want.end);
  m.rows("outputs", rows_of(got.outputs), rows_of(want.outputs));
  m.exact("active blocks", got.blocks_active, want.blocks_active);
  m.exact("inactive blocks", got.blocks_inactive, want.blocks_inactive);
  m.exact("free blocks", got.blocks_free, want.blocks_free);
  m.exact("running", got.running, want.running);
  m.exact("waiting", got.waiting, want.waiting);
  return m.take();
}

}  // namespace

bool close(double a, double b) {
  return std::abs(a - b) <= kToleranceMs * std::max({1.0, std::abs(a), std::abs(b)});
}

std::optional<std::string> rows_mismatch(const SharedCase& expected, const Recording& run) {
  if (!run.problems.empty()) return "the run failed: " + to_text(run.problems.front());
  std::vector<const replay::RequestRecord*> by_row(expected.requests.size(), nullptr);
  for (const RecordedRequest& request : run.requests) {
    const std::uint32_t row = request.record.row;
    if (row >= by_row.size()) return fmt::format("a record names row {}", row);
    if (by_row[row] != nullptr) return fmt::format("row {} has two records", row);
    by_row[row] = &request.record;
  }
  // The earliest difference in time is nearest to its cause; row order would show a late effect
  // first.
  std::optional<std::string> found;
  double found_at = 0;
  for (std::size_t row = 0; row < by_row.size(); ++row) {
    if (by_row[row] == nullptr) return fmt::format("row {} has no record", row);
    const ExpectedRequest& want = expected.requests[row];
    auto mismatch = row_mismatch(row, want, *by_row[row]);
    const double at = want.first_admit.value_or(want.terminal.value_or(0));
    if (mismatch && (!found || at < found_at)) {
      found = std::move(mismatch);
      found_at = at;
    }
  }
  return found;
}

std::optional<std::string> summary_mismatch(const SharedCase& expected, const Recording& run) {
  // Not in a run's records, or compared in another form (see the README beside the cases).
  const std::set<std::string> elsewhere = {"waiting_preempts", "prefix_cache_reused_ratio"};
  const std::map<std::string, double> actual = naive_summary(run);
  for (const auto& [key, want] : expected.summary) {
    if (elsewhere.contains(key)) continue;
    const auto it = actual.find(key);
    if (it == actual.end()) return fmt::format("summary: nothing computes {}", key);
    if (!close(it->second, want)) {
      return fmt::format("summary: {} is {}, expected {}", key, it->second, want);
    }
  }
  Mismatch m("summary");
  std::uint64_t passes = 0;
  for (const std::uint64_t count : expected.passes_per_worker) passes += count;
  m.exact("passes", run.totals.passes, passes);
  const auto preemptions = static_cast<std::uint64_t>(expected.summary.at("preemptions"));
  m.exact("preemptions in totals", run.totals.preemptions, preemptions);
  m.exact("pools", run.totals.pools.size(), expected.final_pools.size());
  for (std::size_t w = 0; w < expected.final_pools.size() && w < run.totals.pools.size(); ++w) {
    const replay::PoolState& got = run.totals.pools[w];
    const replay::PoolState& want = expected.final_pools[w];
    m.exact(fmt::format("worker {} active blocks", w), got.active, want.active);
    m.exact(fmt::format("worker {} inactive blocks", w), got.inactive, want.inactive);
    m.exact(fmt::format("worker {} free blocks", w), got.free, want.free);
  }
  if (!run.has_passes) return m.take();
  std::vector<std::uint64_t> told(expected.passes_per_worker.size(), 0);
  for (const replay::PassRecord& pass : run.passes) {
    if (pass.worker < told.size()) told[pass.worker] += 1;
  }
  for (std::size_t w = 0; w < told.size(); ++w) {
    m.exact(fmt::format("passes of worker {}", w), told[w], expected.passes_per_worker[w]);
  }
  return m.take();
}

std::optional<std::string> reported_mismatch(const SharedCase& expected,
                                             const std::map<std::string, double>& reported) {
  for (const auto& [key, want] : expected.summary) {
    if (key == "waiting_preempts" || key == "prefix_cache_reused_ratio") continue;
    // The product clamps a request's reuse to its input under the plain name (decisions.md 14).
    const bool capped = key == "prefix_cache_reused_ratio_capped_at_input";
    const auto it = reported.find(capped ? "prefix_cache_reused_ratio" : key);
    if (it == reported.end()) return fmt::format("the report has no {}", key);
    if (!close(it->second, want)) {
      return fmt::format("report: {} is {}, expected {}", it->first, it->second, want);
    }
  }
  return std::nullopt;
}

std::optional<std::string> passes_mismatch(const SharedCase& expected, const Recording& run) {
  const std::size_t common = std::min(expected.passes.size(), run.passes.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (auto found = pass_mismatch(expected, expected.passes[i], run.passes[i])) return found;
  }
  if (expected.passes.size() == run.passes.size()) return std::nullopt;
  return fmt::format("the run told {} passes, expected {}", run.passes.size(),
                     expected.passes.size());
}

}  // namespace servecast::test
