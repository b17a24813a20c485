// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "fit/backtest_report.hpp"
#include "fit/errors.hpp"
#include "report/value.hpp"

namespace servecast::fit {
namespace {

using report::Array;
using report::Object;
using report::Value;

void append_tally(Object& into, const Tally& tally) {
  into.push_back({"rows", tally.rows});
  into.push_back({"counted", tally.counted});
  into.push_back({"predicted", tally.predicted});
  into.push_back({"coverage", tally.coverage()});
  into.push_back({"interval_hit_rate", tally.interval_hit_rate()});
  for (std::size_t m = 0; m < kMetrics.size(); ++m) {
    const std::string name(to_string(kMetrics[m]));
    const std::optional<ErrorStats>& stats = tally.errors[m];
    const auto add = [&](const char* what, double ErrorStats::* of) {
      into.push_back({fmt::format("{}_{}", name, what), stats ? Value((*stats).*of) : Value()});
    };
    add("mape", &ErrorStats::mape);
    add("median_ape", &ErrorStats::median_ape);
    add("p90_ape", &ErrorStats::p90_ape);
    add("bias", &ErrorStats::bias);
    into.push_back({name + "_rows", stats ? stats->count : std::size_t{0}});
  }
}

Object object_of(const Tally& tally) {
  Object object;
  append_tally(object, tally);
  return object;
}

Object compared(const RowResult& row, Metric metric) {
  return {{"measured", measured_of(row, metric)},
          {"predicted", predicted_of(row, metric)},
          {"error_percent", error_percent(row, metric)}};
}

Value range_of(const std::optional<Range>& range) {
  return range ? Value(Array{range->low, range->high}) : Value();
}

Object object_of(const RowResult& row) {
  const JudgedRow& judged = row.judged;
  const MeasuredRow& from = judged.row;
  Object object{{"id", from.id},
                {"line", from.place.line},
                {"status", to_string(judged.status)},
                {"model", row.model},
                {"system", row.system},
                {"engine", from.engine},
                {"version", from.version},
                {"precision", from.precision},
                {"mode", from.is_disaggregated() ? "disaggregated" : "aggregated"},
                {"input_tokens", from.input_tokens},
                {"output_tokens", from.output_tokens},
                {"concurrency", from.concurrency},
                {"protocol", to_string(judged.protocol)},
                {"speculation", to_string(judged.drafts.source)},
                {"nextn", judged.drafts.count},
                {"nextn_accepted", judged.drafts.accepted},
                {"gpus", row.gpus > 0 ? Value(row.gpus) : Value()},
                {"widths", row.widths.empty() ? Value() : Value(row.widths)}};
  if (!judged.reason.empty()) object.push_back({"reason", judged.reason});
  if (!row.repaired.empty()) object.push_back({"widths_repaired", row.repaired});
  if (from.is_disaggregated()) object.push_back({"assumed_pools", judged.assumed_pools});
  for (const Metric metric : kMetrics)
    object.push_back({std::string(to_string(metric)), compared(row, metric)});
  if (row.predicted) object.push_back({"support", to_string(row.support)});
  object.push_back({"ttft_interval_90", range_of(row.ttft_90)});
  object.push_back({"tpot_interval_90", range_of(row.tpot_90)});
  return object;
}

Array by_group(const Summary& summary) {
  Array groups;
  for (const Group& group : summary.groups) {
    Object object{{"by", group.by}, {"value", group.value}};
    append_tally(object, group.tally);
    groups.push_back(std::move(object));
  }
  return groups;
}

Array left_out(const Summary& summary) {
  Array list;
  for (const Count& count : summary.left_out)
    list.push_back(Object{
        {"status", to_string(count.status)}, {"reason", count.reason}, {"rows", count.rows}});
  return list;
}

}  // namespace

std::string backtest_json(const Backtest& backtest) {
  const Summary summary = summarise(backtest);
  Object object;
  append_tally(object, summary.all);
  object.push_back({"regular", object_of(summary.regular)});
  object.push_back({"special", object_of(summary.special)});
  object.push_back({"disaggregated", Object{{"rows", summary.disaggregated},
                                            {"assumed_pools", summary.assumed_pools},
                                            {"predicted", 0}}});
  object.push_back({"by", by_group(summary)});
  object.push_back({"left_out", left_out(summary)});
  Array results;
  for (const RowResult& row : backtest.rows) results.push_back(object_of(row));
  object.push_back({"results", std::move(results)});
  return report::to_json(std::move(object), report::Layout::Indented) + "\n";
}

}  // namespace servecast::fit
