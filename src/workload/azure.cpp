// SPDX-License-Identifier: Apache-2.0
#include "workload/azure.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace servecast::workload {
namespace {

enum Column : std::size_t { TimestampColumn, ContextColumn, GeneratedColumn, kColumnCount };
constexpr std::array<std::string_view, kColumnCount> kColumnNames = {"TIMESTAMP", "ContextTokens",
                                                                     "GeneratedTokens"};

// One CSV record of one line (RFC 4180 without line breaks in quotes). False when a quote is
// misplaced.
bool split_record(std::string_view line, std::vector<std::string>& fields) {
  fields.clear();
  std::size_t i = 0;
  for (;;) {
    std::string& field = fields.emplace_back();
    if (i < line.size() && line[i] == '"') {
      for (++i;; ++i) {
        if (i == line.size()) return false;
        if (line[i] == '"' && !(i + 1 < line.size() && line[i + 1] == '"')) break;
        if (line[i] == '"') ++i;
        field += line[i];
      }
      ++i;
      if (i < line.size() && line[i] != ',') return false;
    } else {
      while (i < line.size() && line[i] != ',') {
        if (line[i] == '"') return false;
        field += line[i++];
      }
    }
    if (i == line.size()) return true;
    ++i;
  }
}

// `count` digits at `at`, which moves behind them.
bool take_digits(std::string_view text, std::size_t& at, std::size_t count, int& out) {
  if (at + count > text.size()) return false;
  out = 0;
  for (const std::size_t end = at + count; at < end; ++at) {
    if (text[at] < '0' || text[at] > '9') return false;
    out = 10 * out + (text[at] - '0');
  }
  return true;
}

bool take(std::string_view text, std::size_t& at, char wanted) {
  if (at == text.size() || text[at] != wanted) return false;
  ++at;
  return true;
}

class AzureReader {
 public:
  explicit AzureReader(TraceBuilder& builder) : builder_(builder) {}
  bool read_header(std::string_view line, std::uint64_t number);
  void read_row(std::string_view line, std::uint64_t number);

 private:
  bool read_tokens(Column column, std::uint64_t number, std::uint32_t min, std::uint32_t& out);
  void reject(std::uint64_t number, std::string_view code, std::string message,
              std::string hint = "") {
    builder_.problems().add(number, std::string(code), std::move(message), std::move(hint));
  }
  TraceBuilder& builder_;
  std::vector<std::string> fields_;
  std::array<std::size_t, kColumnCount> position_{};  // of each column in a row
  std::size_t columns_ = 0;
};

bool AzureReader::read_header(std::string_view line, std::uint64_t number) {
  const std::string wanted = "the header must name TIMESTAMP,ContextTokens,GeneratedTokens";
  if (!split_record(line, fields_)) {
    reject(number, "trace.csv", "a quote in the header is misplaced or not closed", wanted);
    return false;
  }
  columns_ = fields_.size();
  std::array<int, kColumnCount> seen{};
  std::string others;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const auto known = std::find(kColumnNames.begin(), kColumnNames.end(), fields_[i]);
    if (known == kColumnNames.end()) {
      others += (others.empty() ? "" : ", ") + fields_[i];
      continue;
    }
    const auto column = static_cast<std::size_t>(known - kColumnNames.begin());
    position_[column] = i;
    ++seen[column];
  }
  bool complete = true;
  for (std::size_t column = 0; column < kColumnCount; ++column) {
    if (seen[column] == 1) continue;
    complete = false;
    reject(number, "trace.csv",
           fmt::format("the header names the column {} {} times: must be once",
                       kColumnNames[column], seen[column]),
           wanted);
  }
  if (complete && !others.empty()) {
    builder_.notes().warnings.push_back(
        fmt::format("{}: columns without meaning here are ignored: {}",
                    builder_.problems().place(0).file, others));
  }
  return complete;
}

bool AzureReader::read_tokens(Column column, std::uint64_t number, std::uint32_t min,
                              std::uint32_t& out) {
  const std::string& text = fields_[position_[column]];
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (code == std::errc() && end == text.data() + text.size() && out >= min) return true;
  reject(number, "trace.value",
         fmt::format("{} is \"{}\": must be a whole number from {} to {}", kColumnNames[column],
                     text, min, UINT32_MAX));
  return false;
}

void AzureReader::read_row(std::string_view line, std::uint64_t number) {
  if (!split_record(line, fields_)) {
    return reject(number, "trace.csv", "a quote is misplaced or not closed on its line");
  }
  if (fields_.size() != columns_) {
    return reject(
        number, "trace.csv",
        fmt::format("the row has {} fields but the header has {}", fields_.size(), columns_));
  }
  TraceRow row;
  row.line = number;
  const std::string& time = fields_[position_[TimestampColumn]];
  row.time_ns = azure_time_ns(time);
  if (!row.time_ns) {
    return reject(
        number, "trace.value",
        fmt::format("TIMESTAMP is \"{}\": must be a date and time like 2023-11-16 18:17:03.9799600",
                    time),
        "at most 7 decimals, years 1970 to 2115");
  }
  if (!read_tokens(ContextColumn, number, 1, row.turn.input_tokens)) return;
  if (!read_tokens(GeneratedColumn, number, 0, row.turn.output_tokens)) return;
  builder_.add(row);
}

}  // namespace

std::optional<std::int64_t> azure_time_ns(std::string_view text) {
  std::size_t at = 0;
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  const bool whole =
      take_digits(text, at, 4, year) && take(text, at, '-') && take_digits(text, at, 2, month) &&
      take(text, at, '-') && take_digits(text, at, 2, day) && take(text, at, ' ') &&
      take_digits(text, at, 2, hour) && take(text, at, ':') && take_digits(text, at, 2, minute) &&
      take(text, at, ':') && take_digits(text, at, 2, second);
  if (!whole || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  std::int64_t fraction_ns = 0;
  if (take(text, at, '.')) {
    std::int64_t unit = 1'000'000'000;
    const std::size_t first = at;
    for (int digit = 0; at < first + 7 && take_digits(text, at, 1, digit);) {
      unit /= 10;
      fraction_ns += unit * digit;
    }
    if (at == first) return std::nullopt;
  }
  std::int64_t offset_minutes = 0;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
    const int sign = text[at++] == '-' ? -1 : 1;
    int hours = 0, minutes = 0;
    if (!take_digits(text, at, 2, hours) || !take(text, at, ':') ||
        !take_digits(text, at, 2, minutes)) {
      return std::nullopt;
    }
    if (hours > 23 || minutes > 59) return std::nullopt;
    offset_minutes = sign * (60 * hours + minutes);
  } else if (at < text.size() && text[at] == 'Z') {
    ++at;
  }
  if (at != text.size()) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  // 2^62 ns, the end of simulated time, is in 2116.
  if (!date.ok() || year < 1970 || year > 2115) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const std::int64_t seconds = ((days * 24 + hour) * 60 + minute - offset_minutes) * 60 + second;
  if (seconds < 0) return std::nullopt;
  return seconds * 1'000'000'000 + fraction_ns;
}

void read_azure(LineReader& lines, TraceBuilder& builder) {
  AzureReader reader(builder);
  if (!lines.next()) return;
  if (!reader.read_header(lines.line(), lines.number())) return;
  while (lines.next()) reader.read_row(lines.line(), lines.number());
}

}  // namespace servecast::workload
