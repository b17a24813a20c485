// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "fit/backtest_report.hpp"
#include "fit/errors.hpp"

namespace servecast::fit {
namespace {

std::string cell(const std::optional<ErrorStats>& stats) {
  if (!stats) return "";
  return fmt::format("{:.1f} / {:.1f} / {:.1f}", stats->mape, stats->median_ape, stats->p90_ape);
}

std::string line(std::string_view what, std::string_view value, const Tally& tally) {
  std::string text =
      fmt::format("| {} | {} | {} | {} |", what, value, tally.counted, tally.predicted);
  for (const Metric metric : {Metric::Tpot, Metric::Ttft, Metric::TtftP50, Metric::Throughput})
    text += fmt::format(" {} |", cell(tally.errors[static_cast<std::size_t>(metric)]));
  return text + "\n";
}

}  // namespace

std::string backtest_markdown(const Backtest& backtest) {
  const Summary summary = summarise(backtest);
  std::string out =
      "| by | | rows | answered | TPOT | TTFT | TTFT p50 | throughput |\n"
      "|---|---|---:|---:|---:|---:|---:|---:|\n";
  out += line("all", "", summary.all);
  if (summary.special.rows > 0) {
    out += line("regular", "", summary.regular);
    out += line("special", "", summary.special);
  }
  for (const Group& group : summary.groups) {
    if (group.tally.counted > 0 && group.by != "mode")
      out += line(group.by, group.value, group.tally);
  }
  if (const auto rate = summary.all.interval_hit_rate())
    out += fmt::format("\n{:.1f} % of {} measured values lie inside their 90 % interval.\n",
                       100 * *rate, summary.all.intervals);
  if (summary.left_out.empty()) return out;
  out += "\n| rows | status | reason |\n|---:|---|---|\n";
  for (const Count& count : summary.left_out)
    out += fmt::format("| {} | {} | {} |\n", count.rows, to_string(count.status), count.reason);
  return out;
}

}  // namespace servecast::fit
