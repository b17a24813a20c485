// SPDX-License-Identifier: Apache-2.0
#include "perf/table/store.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

namespace servecast::perf {
namespace {

namespace fs = std::filesystem;

// Parts of a version in the order in which they decide: numbers, then stage (development,
// candidate, release, post), then the stage's number.
struct Version {
  std::vector<long> numbers;
  int stage = 2;
  long stage_number = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};

std::optional<long> take_number(std::string_view& text) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take_stage(std::string_view& text, Version& version) {
  if (text.starts_with('.')) text.remove_prefix(1);
  for (const auto& [word, stage] :
       {std::pair{std::string_view("dev"), 0}, std::pair{std::string_view("rc"), 1},
        std::pair{std::string_view("post"), 3}}) {
    if (!text.starts_with(word)) continue;
    text.remove_prefix(word.size());
    version.stage = stage;
    version.stage_number = take_number(text).value_or(0);
    return text.empty();
  }
  return false;
}

std::optional<Version> version_from(std::string_view text) {
  Version version;
  while (true) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    version.numbers.push_back(*number);
    if (text.empty()) break;
    const bool more = text.size() > 1 && text[0] == '.' && text[1] >= '0' && text[1] <= '9';
    if (!more) {
      if (!take_stage(text, version)) return std::nullopt;
      break;
    }
    text.remove_prefix(1);
  }
  while (version.numbers.size() > 1 && version.numbers.back() == 0) version.numbers.pop_back();
  return version;
}

Coverage coverage_of(const Column& column) {
  Coverage out{.column = column.name, .kind = column.kind};
  if (column.kind == Column::Kind::Text) {
    out.words = column.words;
    std::sort(out.words.begin(), out.words.end());
    out.distinct = out.words.size();
    return out;
  }
  std::vector<double> values;
  for (const std::int64_t value : column.whole) values.push_back(static_cast<double>(value));
  for (const double value : column.real) {
    if (!std::isnan(value)) values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  if (values.empty()) return out;
  out.least = values.front();
  out.most = values.back();
  out.distinct = static_cast<std::uint64_t>(
      std::distance(values.begin(), std::unique(values.begin(), values.end())));
  return out;
}

std::vector<fs::path> table_files(const fs::path& store) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(store, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at->path().extension() == ".table") files.push_back(at->path());
  }
  return files;
}

}  // namespace

bool is_version(const std::string& text) {
  return version_from(text).has_value();
}

bool earlier_version(const std::string& a, const std::string& b) {
  const auto left = version_from(a);
  const auto right = version_from(b);
  if (left && right) return *left < *right;
  if (left || right) return !left;
  return a < b;
}

Result<std::vector<StoredTable>> stored_tables(const fs::path& store) {
  std::vector<StoredTable> tables;
  for (const fs::path& file : table_files(store)) {
    const fs::path relative = file.lexically_relative(store);
    const std::vector<fs::path> parts(relative.begin(), relative.end());
    if (parts.size() != 4) continue;
    tables.push_back(
        {{parts[0].string(), parts[1].string(), parts[2].string(), parts[3].stem().string()},
         file});
  }
  if (tables.empty())
    return fail({.code = "perfdata.no_tables",
                 .message = "no measured tables in this directory",
                 .place = {.file = store.string()},
                 .hint = "write them with 'servecast perfdata import'"});
  std::sort(tables.begin(), tables.end(), [](const StoredTable& a, const StoredTable& b) {
    const auto key = [](const TableSource& s) { return std::tie(s.system, s.table, s.backend); };
    if (key(a.source) != key(b.source)) return key(a.source) < key(b.source);
    return earlier_version(a.source.version, b.source.version);
  });
  return tables;
}

std::vector<Coverage> coverage_of(const MeasuredTable& table) {
  std::vector<Coverage> out;
  for (const Column& column : table.columns) out.push_back(coverage_of(column));
  return out;
}

}  // namespace servecast::perf
