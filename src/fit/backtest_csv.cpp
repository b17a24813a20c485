// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "fit/backtest_report.hpp"
#include "fit/errors.hpp"

namespace servecast::fit {
namespace {

class Line {
 public:
  explicit Line(std::string& out) : out_(out) {}
  void text(std::string_view text) {
    if (!first_) out_ += ',';
    first_ = false;
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
      out_ += text;
      return;
    }
    out_ += '"';
    for (const char c : text) {
      if (c == '"') out_ += '"';
      out_ += c;
    }
    out_ += '"';
  }
  void number(const std::optional<double>& value) {
    std::string digits;
    if (value) append_double(digits, *value);
    text(digits);
  }
  template <class Whole>
  void whole(const std::optional<Whole>& value) {
    std::string digits;
    if (value) append_unsigned(digits, *value);
    text(digits);
  }
  void end() { out_ += '\n'; }

 private:
  std::string& out_;
  bool first_ = true;
};

void append_header(std::string& out) {
  Line line(out);
  for (const char* name : {"id", "line", "status", "reason", "model", "system", "engine", "version",
                           "precision", "mode", "input_tokens", "output_tokens", "concurrency",
                           "protocol", "speculation", "nextn", "gpus", "widths"})
    line.text(name);
  for (const Metric metric : kMetrics) {
    const std::string name(to_string(metric));
    line.text(name + "_measured");
    line.text(name + "_predicted");
    line.text(name + "_error_percent");
  }
  for (const char* name : {"support", "ttft_90_low", "ttft_90_high", "tpot_90_low", "tpot_90_high"})
    line.text(name);
  line.end();
}

void append_row(std::string& out, const RowResult& row) {
  const JudgedRow& judged = row.judged;
  const MeasuredRow& from = judged.row;
  Line line(out);
  line.text(from.id);
  line.whole(std::optional(static_cast<std::uint64_t>(from.place.line)));
  line.text(to_string(judged.status));
  line.text(judged.reason);
  for (const std::string* text :
       {&row.model, &row.system, &from.engine, &from.version, &from.precision})
    line.text(*text);
  line.text(from.is_disaggregated() ? "disaggregated" : "aggregated");
  line.whole(from.input_tokens);
  line.whole(from.output_tokens);
  line.whole(from.concurrency);
  line.text(to_string(judged.protocol));
  line.text(to_string(judged.drafts.source));
  line.whole(std::optional(judged.drafts.count));
  line.whole(row.gpus > 0 ? std::optional(row.gpus) : std::nullopt);
  line.text(row.widths);
  for (const Metric metric : kMetrics) {
    line.number(measured_of(row, metric));
    line.number(predicted_of(row, metric));
    line.number(error_percent(row, metric));
  }
  line.text(row.predicted ? to_string(row.support) : "");
  for (const std::optional<Range>& range : {row.ttft_90, row.tpot_90}) {
    line.number(range ? std::optional(range->low) : std::nullopt);
    line.number(range ? std::optional(range->high) : std::nullopt);
  }
  line.end();
}

}  // namespace

std::string backtest_csv(const Backtest& backtest) {
  std::string out;
  append_header(out);
  for (const RowResult& row : backtest.rows) append_row(out, row);
  return out;
}

}  // namespace servecast::fit
