// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "fit/measured/layout.hpp"
#include "fit/measured/notes.hpp"

namespace servecast::fit {
namespace {

constexpr std::size_t kProblemsMax = 20;

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// "1024" and, as spreadsheets write it, "1024.0"; of a data set whose lengths differ the mean, as
// "openorca mean~294".
std::optional<std::uint32_t> whole(std::string_view text) {
  constexpr std::string_view kMean = "mean~";
  if (const auto at = text.find(kMean); at != std::string_view::npos)
    text.remove_prefix(at + kMean.size());
  if (text.ends_with(".0")) text.remove_suffix(2);
  return number<std::uint32_t>(text);
}

class Reader {
 public:
  Reader(const Layout& layout, Problems& problems) : layout_(layout), problems_(problems) {}

  void set(const Field& field, const std::string& text, const Place& place, MeasuredRow& row) {
    if (text.empty()) return;
    switch (field.kind) {
      case FieldKind::Text:
        *field.text(row) = text;
        return;
      case FieldKind::Whole:
        *field.whole(row) = whole(text);
        if (!*field.whole(row)) unreadable(field, text, "a whole number", row);
        return;
      case FieldKind::Real:
        *field.real(row) = number<double>(text);
        if (!*field.real(row) || !std::isfinite(**field.real(row)))
          unreadable(field, text, "a number", row);
        return;
      case FieldKind::Measured:
        set_measured(field, text, place, row);
        return;
    }
  }

 private:
  // A file may well hold runs of another kind, such as prompts of a named data set: such a row is
  // kept and says why it cannot be replayed.
  static void unreadable(const Field& field, const std::string& text, const char* what,
                         MeasuredRow& row) {
    if (row.unreadable.empty())
      row.unreadable = fmt::format("{} is '{}', not {}", field.name, text, what);
  }

  void set_measured(const Field& field, const std::string& text, const Place& place,
                    MeasuredRow& row) {
    const auto value = number<double>(text);
    if (value && *value > 0 && *value < 1e15) {
      const auto factor = layout_.factors.find(std::string(field.name));
      *field.real(row) = *value * (factor == layout_.factors.end() ? 1.0 : factor->second);
      return;
    }
    if (problems_.size() < kProblemsMax)
      problems_.push_back({"measured.number",
                           fmt::format("{}: '{}' is no number above 0", field.name, text), place,
                           "leave empty what was not measured"});
  }

  const Layout& layout_;
  Problems& problems_;
};

// A field and the column it comes from.
struct Source {
  const Field* field;
  std::size_t column;
};

std::vector<Source> sources_of(const CsvTable& table, const Layout& layout, Problems& problems) {
  std::vector<Source> sources;
  for (const Field& field : fields()) {
    const auto named = layout.columns.find(std::string(field.name));
    if (named == layout.columns.end()) continue;
    std::size_t at = 0;
    while (at < table.header.fields.size() && table.header.fields[at].text != named->second) ++at;
    if (at < table.header.fields.size()) {
      sources.push_back({&field, at});
      continue;
    }
    problems.push_back({"measured.no_column",
                        fmt::format("the file has no column {}, which {} names as {}",
                                    named->second, layout.name, field.name),
                        {table.file, table.header.line, 1},
                        ""});
  }
  return sources;
}

}  // namespace

Result<std::vector<MeasuredRow>> rows_of(const CsvTable& table, const Layout& layout) {
  Problems problems;
  const std::vector<Source> sources = sources_of(table, layout, problems);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  Reader reader(layout, problems);
  std::vector<MeasuredRow> rows;
  rows.reserve(table.rows.size());
  for (const CsvRow& from : table.rows) {
    MeasuredRow& row = rows.emplace_back();
    row.place = {table.file, from.line, 1};
    for (const auto& [name, text] : layout.constants)
      reader.set(*find_field(name), text, {layout.name, 0, 0}, row);
    for (const Source& source : sources) {
      const CsvField& field = from.fields[source.column];
      reader.set(*source.field, field.text, {table.file, field.line, field.column}, row);
    }
    if (row.id.empty()) row.id = fmt::format("line {}", from.line);
    read_notes(row);
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return rows;
}

}  // namespace servecast::fit
