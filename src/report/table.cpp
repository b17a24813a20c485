// SPDX-License-Identifier: Apache-2.0
// The table on the terminal (product.md 3.4, 3.7). Labels and numbers are ASCII, so bytes are
// columns.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/text.hpp"
#include "report/report.hpp"

namespace servecast::report {
namespace {

constexpr std::size_t kColumns = 8;
using Line = std::array<std::string, kColumns>;

constexpr std::array<std::string_view, kColumns - 1> kStats{"mean", "min", "max", "p99",
                                                            "p90",  "p75", "std"};

struct Metric {
  std::string_view label, suffix;
};
constexpr std::array<Metric, 5> kDistributions{
    {{"Time to First Token (ms)", "ttft_ms"},
     {"Time to Second Token (ms)", "ttst_ms"},
     {"Request Latency (ms)", "e2e_latency_ms"},
     {"Inter Token Latency (ms)", "itl_ms"},
     {"Output Token Throughput Per User (tokens/sec/user)", "output_token_throughput_per_user"}}};
constexpr std::array<Metric, 3> kScalars{
    {{"Output Token Throughput (tokens/sec)", "output_throughput_tok_s"},
     {"Request Throughput (requests/sec)", "request_throughput_rps"},
     {"Request Count (requests)", "completed_requests"}}};

// NaN, which prints as N/A, for what is missing or null.
double number(const Object& summary, std::string_view key) {
  const Value* value = find(summary, key);
  return (value ? value->number() : std::nullopt)
      .value_or(std::numeric_limits<double>::quiet_NaN());
}

std::string count_text(const Object& summary, std::string_view key) {
  std::string text = grouped(number(summary, key));
  if (text.ends_with(".00")) text.resize(text.size() - 3);
  return text;
}

std::vector<Line> lines_of(const Object& summary) {
  std::vector<Line> lines{{"Metric", "avg", "min", "max", "p99", "p90", "p75", "std"}};
  for (const Metric& metric : kDistributions) {
    Line& line = lines.emplace_back();
    line[0] = metric.label;
    for (std::size_t i = 0; i < kStats.size(); ++i) {
      line[i + 1] = grouped(number(summary, fmt::format("{}_{}", kStats[i], metric.suffix)));
    }
  }
  for (const Metric& metric : kScalars) {
    Line& line = lines.emplace_back();
    line.fill("N/A");
    line[0] = metric.label;
    line[1] = grouped(number(summary, metric.suffix));
  }
  return lines;
}

class Box {
 public:
  explicit Box(const std::vector<Line>& lines) {
    for (const Line& line : lines) {
      for (std::size_t c = 0; c < kColumns; ++c) width_[c] = std::max(width_[c], line[c].size());
    }
  }
  void rule(std::string& out, std::string_view left, std::string_view middle,
            std::string_view right) const {
    for (std::size_t c = 0; c < kColumns; ++c) {
      out += c == 0 ? left : middle;
      for (std::size_t i = 0; i < width_[c] + 2; ++i) out += "─";
    }
    out += right;
    out += '\n';
  }
  void row(std::string& out, const Line& line) const {
    for (std::size_t c = 0; c < kColumns; ++c) {
      const std::string pad(width_[c] - line[c].size(), ' ');
      out += "│ ";
      out += c == 0 ? line[c] + pad : pad + line[c];
      out += ' ';
    }
    out += "│\n";
  }
  std::size_t columns() const {
    std::size_t sum = 1;
    for (const std::size_t width : width_) sum += width + 3;
    return sum;
  }

 private:
  std::array<std::size_t, kColumns> width_{};
};

// "12 (pool_too_small 10, model_length 2)"
std::string with_reasons(const Object& summary, const std::string& key) {
  std::string reasons;
  for (const Member& member : summary) {
    if (!member.key.starts_with(key + "_")) continue;
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ",
                           member.key.substr(key.size() + 1), count_text(summary, member.key));
  }
  const std::string count = count_text(summary, key);
  return reasons.empty() ? count : fmt::format("{} ({})", count, reasons);
}

// A run that lost requests must not look fast: whatever did not complete is said.
void append_losses(std::string& out, const Object& summary) {
  const double lost = number(summary, "num_requests") - number(summary, "completed_requests");
  if (lost > 0) {
    std::string text = grouped(lost);
    text.resize(text.size() - 3);
    out += fmt::format("Requests Not Completed: {} of {}\n", text,
                       count_text(summary, "num_requests"));
  }
  const std::array<Metric, 6> counts{
      {{"Requests Rejected", "rejected_requests"},
       {"Requests Failed", "failed_requests"},
       {"Requests Canceled", "canceled_requests"},
       {"Requests In Flight At The Time Cap", "incomplete_at_cap"},
       {"Requests Cut At The Context Length", "context_limited_requests"},
       {"Preemptions", "preemptions"}}};
  for (const Metric& metric : counts) {
    if (number(summary, metric.suffix) > 0) {
      out +=
          fmt::format("{}: {}\n", metric.label, with_reasons(summary, std::string(metric.suffix)));
    }
  }
}

void append_goodput(std::string& out, const Object& summary) {
  if (find(summary, "goodput_completed_requests") == nullptr) return;
  out += fmt::format("Goodput (requests/sec): {} ({} of {} requests, {} %)\n",
                     grouped(number(summary, "goodput_request_throughput_rps")),
                     count_text(summary, "goodput_completed_requests"),
                     count_text(summary, "num_requests"),
                     grouped(100 * number(summary, "goodput_request_ratio")));
}

}  // namespace

std::string table(const Report& report, const HostCost& cost) {
  const Object& summary = report.summary;
  std::string out;
  if (find(summary, "qualification") != nullptr) {
    out += fmt::format("Functional only: {} step times, not checked against measurements.\n",
                       *find(summary, "provenance")->get<std::string>());
  }
  const std::vector<Line> lines = lines_of(summary);
  const Box box(lines);
  constexpr std::string_view kTitle = "servecast | LLM Metrics";
  out.append((box.columns() - kTitle.size()) / 2, ' ');
  out += kTitle;
  out += '\n';
  box.rule(out, "┌", "┬", "┐");
  for (const Line& line : lines) {
    box.row(out, line);
    if (&line == lines.data()) box.rule(out, "├", "┼", "┤");
  }
  box.rule(out, "└", "┴", "┘");
  append_goodput(out, summary);
  append_losses(out, summary);
  out += fmt::format("Wall Time (ms): {}\n", grouped(cost.wall_time_ms));
  out += fmt::format("Prefix Cache Reused Ratio: {}\n",
                     grouped(number(summary, "prefix_cache_reused_ratio")));
  out += fmt::format("First Admission Prefix Cache Reused Ratio: {}\n",
                     grouped(number(summary, "first_admission_prefix_cache_reused_ratio")));
  return out;
}

}  // namespace servecast::report
