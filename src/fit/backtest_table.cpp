// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "base/text.hpp"
#include "fit/backtest_report.hpp"
#include "fit/errors.hpp"

namespace servecast::fit {
namespace {

std::string number_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : "-";
}

std::string error_text(const std::optional<double>& error) {
  return error ? fmt::format("{:+.1f}%", *error) : "-";
}

// "21.6/16.7/43.7": MAPE, median and 90th percentile in percent.
std::string stats_text(const std::optional<ErrorStats>& stats) {
  if (!stats) return "-";
  return fmt::format("{:.1f}/{:.1f}/{:.1f}", stats->mape, stats->median_ape, stats->p90_ape);
}

std::string coverage_text(const Tally& tally) {
  const auto coverage = tally.coverage();
  return coverage ? fmt::format("{:.1f}%", 100 * *coverage) : "-";
}

// What speculation is said or taken to be.
std::string drafts_text(const Drafts& drafts) {
  if (drafts.source == Drafts::Source::None) return "-";
  return fmt::format("{}, {}", drafts.count, to_string(drafts.source));
}

void append_rows(std::string& out, const Backtest& backtest) {
  out += fmt::format("{:<56} {:<13} {:>10} {:>10} {:>8} {:>10} {:>10} {:>8} {:>10} {:>8}  {}\n",
                     "row", "status", "ttft ms", "measured", "error", "tpot ms", "measured",
                     "error", "tok/s/GPU", "error", "drafts");
  for (const RowResult& row : backtest.rows) {
    out += fmt::format("{:<56} {:<13}", printable(row.judged.row.id, 200),
                       to_string(row.judged.status));
    if (!row.predicted) {
      out += " " + printable(row.judged.reason, 200) + "\n";
      continue;
    }
    for (const Metric metric : {Metric::Ttft, Metric::Tpot})
      out += fmt::format(" {:>10} {:>10} {:>8}", number_text(predicted_of(row, metric)),
                         number_text(measured_of(row, metric)),
                         error_text(error_percent(row, metric)));
    out += fmt::format(" {:>10} {:>8}  {}\n", number_text(predicted_of(row, Metric::Throughput)),
                       error_text(error_percent(row, Metric::Throughput)),
                       drafts_text(row.judged.drafts));
  }
  out += '\n';
}

void append_tally(std::string& out, std::string_view axis, std::string_view name,
                  const Tally& tally) {
  const auto stats = [&](Metric metric) {
    return stats_text(tally.errors[static_cast<std::size_t>(metric)]);
  };
  out += fmt::format("{:<12} {:<32} {:>5} {:>8} {:>8} {:>17} {:>17} {:>17} {:>17}\n", axis,
                     printable(name, 80), tally.counted, tally.predicted, coverage_text(tally),
                     stats(Metric::Tpot), stats(Metric::Ttft), stats(Metric::TtftP50),
                     stats(Metric::Throughput));
}

void append_left_out(std::string& out, const Summary& summary) {
  if (summary.left_out.empty()) return;
  out += "\nrows  status         reason\n";
  for (const Count& count : summary.left_out)
    out += fmt::format("{:>4}  {:<13}  {}\n", count.rows, to_string(count.status),
                       printable(count.reason, 200));
  if (summary.assumed_pools > 0)
    out += fmt::format(
        "Of {} disaggregated rows {} do not say how many workers they had (assumed_pools).\n",
        summary.disaggregated, summary.assumed_pools);
}

}  // namespace

std::string backtest_table(const Backtest& backtest, bool rows) {
  const Summary summary = summarise(backtest);
  std::string out;
  if (rows) append_rows(out, backtest);
  out += "Errors in percent: MAPE/median/p90.\n";
  out += fmt::format("{:<12} {:<32} {:>5} {:>8} {:>8} {:>17} {:>17} {:>17} {:>17}\n", "", "",
                     "rows", "answers", "coverage", "TPOT", "TTFT", "TTFT p50", "throughput");
  append_tally(out, "all", "", summary.all);
  if (summary.special.rows > 0) {
    append_tally(out, "regular", "", summary.regular);
    append_tally(out, "special", "", summary.special);
  }
  for (const Group& group : summary.groups) {
    if (group.tally.counted > 0) append_tally(out, group.by, group.value, group.tally);
  }
  if (const auto rate = summary.all.interval_hit_rate())
    out += fmt::format("\n{:.1f} % of {} measured TTFT and TPOT lie inside their 90 % interval.\n",
                       100 * *rate, summary.all.intervals);
  append_left_out(out, summary);
  return out;
}

}  // namespace servecast::fit
