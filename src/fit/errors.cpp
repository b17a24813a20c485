// SPDX-License-Identifier: Apache-2.0
#include "fit/errors.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

namespace servecast::fit {
namespace {

// requires: sorted, not empty.
double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// Rows of one tally while they are counted.
class Tallying {
 public:
  // `takes_assumed`: rows whose concurrency nobody filed count too.
  explicit Tallying(bool takes_assumed = false) : takes_assumed_(takes_assumed) {}

  void add(const RowResult& row) {
    ++tally_.rows;
    if (is_counted(row.judged.status)) {
      ++tally_.counted;
      if (row.predicted) ++tally_.predicted;
    }
    if (row.judged.status != Status::Use && row.judged.status != Status::Special) return;
    if (row.judged.assumed_concurrency && !takes_assumed_) return;
    count_hit(row.judged.row.ttft_ms, row.ttft_90);
    count_hit(row.judged.row.tpot_ms, row.tpot_90);
    for (std::size_t m = 0; m < kMetrics.size(); ++m) {
      if (const auto error = error_percent(row, kMetrics[m])) errors_[m].push_back(*error);
    }
  }
  Tally tally() {
    for (std::size_t m = 0; m < kMetrics.size(); ++m) tally_.errors[m] = stats_of(errors_[m]);
    return tally_;
  }

 private:
  void count_hit(const std::optional<double>& measured, const std::optional<Range>& range) {
    if (!measured || !range) return;
    ++tally_.intervals;
    if (range->low <= *measured && *measured <= range->high) ++tally_.hits;
  }

  Tally tally_;
  bool takes_assumed_;
  std::array<std::vector<double>, kMetrics.size()> errors_;
};

std::string concurrency_band(const RowResult& row) {
  const auto concurrency = row.judged.row.concurrency;
  if (!concurrency) return "unknown";
  if (*concurrency <= 8) return "1-8";
  if (*concurrency <= 32) return "9-32";
  if (*concurrency <= 128) return "33-128";
  return "129-";
}

using Name = std::string (*)(const RowResult&);
constexpr std::array<std::pair<std::string_view, Name>, 5> kAxes{
    {{"model", [](const RowResult& row) { return row.model; }},
     {"system", [](const RowResult& row) { return row.system; }},
     {"engine", [](const RowResult& row) { return row.judged.row.engine; }},
     {"mode",
      [](const RowResult& row) {
        return std::string(row.judged.row.is_disaggregated() ? "disaggregated" : "aggregated");
      }},
     {"concurrency", concurrency_band}}};

std::size_t band_rank(const std::string& value) {
  constexpr std::array<std::string_view, 4> kBands{"1-8", "9-32", "33-128", "129-"};
  const auto found = std::find(kBands.begin(), kBands.end(), value);
  return static_cast<std::size_t>(found - kBands.begin());
}

std::vector<Group> groups_of(const Backtest& backtest) {
  std::vector<Group> groups;
  for (const auto& [axis, name] : kAxes) {
    std::map<std::string, Tallying> tallies;
    for (const RowResult& row : backtest.rows) tallies[name(row)].add(row);
    const std::size_t first = groups.size();
    for (auto& [value, tallying] : tallies)
      groups.push_back({std::string(axis), value, tallying.tally()});
    if (axis == "concurrency")
      std::stable_sort(
          groups.begin() + static_cast<std::ptrdiff_t>(first), groups.end(),
          [](const Group& a, const Group& b) { return band_rank(a.value) < band_rank(b.value); });
  }
  return groups;
}

std::vector<Count> left_out(const Backtest& backtest) {
  std::map<std::pair<Status, std::string>, std::size_t> counts;
  for (const RowResult& row : backtest.rows) {
    const Status status = row.judged.status;
    if (status == Status::Use) continue;
    ++counts[{status, status == Status::Duplicate ? "an exact repetition of another row"
                                                  : row.judged.reason}];
  }
  std::vector<Count> list;
  for (const auto& [key, rows] : counts) list.push_back({key.first, key.second, rows});
  return list;
}

}  // namespace

std::string_view to_string(Metric metric) {
  constexpr std::array<std::string_view, kMetrics.size()> kNames{"ttft", "ttft_p50", "tpot", "e2e",
                                                                 "throughput"};
  return kNames[static_cast<std::size_t>(metric)];
}

std::optional<double> measured_of(const RowResult& row, Metric metric) {
  const MeasuredRow& from = row.judged.row;
  switch (metric) {
    case Metric::Ttft:
      return from.ttft_ms;
    case Metric::TtftP50:
      return from.ttft_p50_ms;
    case Metric::Tpot:
      return from.tpot_ms;
    case Metric::E2e:
      return from.e2e_ms;
    case Metric::Throughput:
      return from.output_tok_s_per_gpu;
  }
  return std::nullopt;
}

std::optional<double> predicted_of(const RowResult& row, Metric metric) {
  if (!row.predicted) return std::nullopt;
  switch (metric) {
    case Metric::Ttft:
      return row.predicted->ttft_ms;
    case Metric::TtftP50:
      return row.predicted->ttft_p50_ms;
    case Metric::Tpot:
      return row.predicted->tpot_ms;
    case Metric::E2e:
      return row.predicted->e2e_ms;
    case Metric::Throughput:
      return row.predicted->output_tok_s_per_gpu;
  }
  return std::nullopt;
}

std::optional<double> error_percent(const RowResult& row, Metric metric) {
  const auto measured = measured_of(row, metric);
  const auto predicted = predicted_of(row, metric);
  if (!measured || !predicted) return std::nullopt;
  return 100.0 * (*predicted / *measured - 1.0);
}

std::optional<ErrorStats> stats_of(const std::vector<double>& errors) {
  if (errors.empty()) return std::nullopt;
  std::vector<double> sizes;
  double sum = 0, sum_of_sizes = 0;
  for (const double error : errors) {
    sum += error;
    sum_of_sizes += std::abs(error);
    sizes.push_back(std::abs(error));
  }
  std::sort(sizes.begin(), sizes.end());
  const double count = static_cast<double>(errors.size());
  return ErrorStats{.count = errors.size(),
                    .mape = sum_of_sizes / count,
                    .median_ape = quantile(sizes, 0.5),
                    .p90_ape = quantile(sizes, 0.9),
                    .bias = sum / count};
}

std::optional<double> Tally::coverage() const {
  if (counted == 0) return std::nullopt;
  return static_cast<double>(predicted) / static_cast<double>(counted);
}

std::optional<double> Tally::interval_hit_rate() const {
  if (intervals == 0) return std::nullopt;
  return static_cast<double>(hits) / static_cast<double>(intervals);
}

Summary summarise(const Backtest& backtest) {
  Summary summary;
  Tallying all, regular, special(true);
  for (const RowResult& row : backtest.rows) {
    all.add(row);
    if (row.judged.status == Status::Use) regular.add(row);
    if (row.judged.status == Status::Special) special.add(row);
    if (row.judged.status != Status::Disaggregated) continue;
    ++summary.disaggregated;
    if (row.judged.assumed_pools) ++summary.assumed_pools;
  }
  summary.all = all.tally();
  summary.regular = regular.tally();
  summary.special = special.tally();
  summary.groups = groups_of(backtest);
  summary.left_out = left_out(backtest);
  return summary;
}

}  // namespace servecast::fit
