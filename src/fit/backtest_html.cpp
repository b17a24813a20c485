// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "fit/backtest_report.hpp"
#include "fit/errors.hpp"

namespace servecast::fit {
namespace {

constexpr double kSide = 520, kMargin = 60;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text, 400)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

struct Dot {
  const RowResult* row;
  double measured, predicted;
};

std::vector<Dot> dots_of(const Backtest& backtest, Metric metric) {
  std::vector<Dot> dots;
  for (const RowResult& row : backtest.rows) {
    const auto measured = measured_of(row, metric), predicted = predicted_of(row, metric);
    if (measured && predicted && *predicted > 0) dots.push_back({&row, *measured, *predicted});
  }
  return dots;
}

// One decade range for both axes, so that the diagonal is where predictions are right.
class Axis {
 public:
  explicit Axis(const std::vector<Dot>& dots) {
    double least = dots.front().measured, most = least;
    for (const Dot& dot : dots) {
      least = std::min({least, dot.measured, dot.predicted});
      most = std::max({most, dot.measured, dot.predicted});
    }
    first_ = std::floor(std::log10(least));
    last_ = std::max(std::ceil(std::log10(most)), first_ + 1);
  }
  double along(double value) const {
    return (kSide - kMargin) * (std::log10(value) - first_) / (last_ - first_);
  }
  double x(double value) const { return kMargin + along(value); }
  double y(double value) const { return kSide - kMargin - along(value) + 20; }
  int first() const { return static_cast<int>(first_); }
  int last() const { return static_cast<int>(last_); }

 private:
  double first_, last_;
};

void append_grid(std::string& out, const Axis& axis) {
  const double low = std::pow(10.0, axis.first()), high = std::pow(10.0, axis.last());
  for (int decade = axis.first(); decade <= axis.last(); ++decade) {
    const double value = std::pow(10.0, decade);
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>"
        "<line class=\"grid\" x1=\"{3:.1f}\" y1=\"{4:.1f}\" x2=\"{5:.1f}\" y2=\"{4:.1f}\"/>\n",
        axis.x(value), axis.y(low), axis.y(high), axis.x(low), axis.y(value), axis.x(high));
    out += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g}</text>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
        axis.x(value), axis.y(low) + 16, value, axis.x(low) - 6, axis.y(value) + 4, value);
  }
  out += fmt::format(
      "<line class=\"right\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
      axis.x(low), axis.y(low), axis.x(high), axis.y(high));
}

std::string_view colour_of(const RowResult& row) {
  if (row.judged.status == Status::Special) return "#999";
  if (row.judged.row.engine == "vllm") return "#1b6ca8";
  return row.judged.row.engine == "sglang" ? "#c2571a" : "#3c8d40";
}

void append_dots(std::string& out, const Axis& axis, const std::vector<Dot>& dots) {
  for (const Dot& dot : dots)
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: measured {:.2f}, "
        "predicted {:.2f} ({:+.1f} %){}{}</title></circle>\n",
        axis.x(dot.measured), axis.y(dot.predicted), colour_of(*dot.row),
        escaped(dot.row->judged.row.id), dot.measured, dot.predicted,
        100 * (dot.predicted / dot.measured - 1), dot.row->judged.reason.empty() ? "" : "; ",
        escaped(dot.row->judged.reason));
}

void append_plot(std::string& out, const Backtest& backtest, Metric metric,
                 std::string_view title) {
  const std::vector<Dot> dots = dots_of(backtest, metric);
  if (dots.empty()) return;
  const Axis axis(dots);
  out += fmt::format("<figure><figcaption>{}</figcaption>\n", title);
  out += fmt::format("<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\">\n",
                     kSide + 20, kSide + 20);
  append_grid(out, axis);
  append_dots(out, axis, dots);
  out += fmt::format(
      "<text x=\"{0:.0f}\" y=\"{1:.0f}\" text-anchor=\"middle\">measured</text>"
      "<text x=\"12\" y=\"{2:.0f}\" transform=\"rotate(-90 12 {2:.0f})\" text-anchor=\"middle\">"
      "predicted</text>\n</svg></figure>\n",
      kMargin + (kSide - kMargin) / 2, kSide, (kSide - kMargin) / 2);
}

}  // namespace

std::string backtest_html(const Backtest& backtest) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<title>servecast back-test</title>\n<style>\n"
      "body{font:14px sans-serif;margin:24px;color:#222;background:#fff}\n"
      "figure{display:inline-block;margin:0 24px 24px 0}figcaption{font-weight:bold}\n"
      "svg text{font-size:11px;fill:#444}.grid{stroke:#ddd}.right{stroke:#222}\n"
      "circle{fill-opacity:.6}circle:hover{stroke:#000}pre{overflow-x:auto}\n"
      "</style></head><body>\n<h1>Predicted against measured</h1>\n"
      "<p>One dot a row; its title names it. On the line a prediction is right. Blue vllm, orange "
      "sglang, green trtllm, grey rows that are special.</p>\n";
  append_plot(out, backtest, Metric::Ttft, "Mean TTFT (ms)");
  append_plot(out, backtest, Metric::TtftP50, "Median TTFT (ms)");
  append_plot(out, backtest, Metric::Tpot, "Mean TPOT (ms)");
  append_plot(out, backtest, Metric::E2e, "Mean request latency (ms)");
  append_plot(out, backtest, Metric::Throughput, "Output tokens/s/GPU");
  std::string table;
  for (const char c : backtest_table(backtest, false)) {
    if (c == '<')
      table += "&lt;";
    else if (c == '&')
      table += "&amp;";
    else
      table += c;
  }
  out += "<pre>" + table + "</pre>\n</body></html>\n";
  return out;
}

}  // namespace servecast::fit
