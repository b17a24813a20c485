// SPDX-License-Identifier: Apache-2.0
#include "fit/measured/csv.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

namespace servecast::fit {
namespace {

constexpr std::size_t kProblemsMax = 20;

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  Result<CsvTable> table() {
    CsvTable table{.file = file_, .header = {}, .rows = {}};
    if (!row(table.header)) problem("csv.no_header", 1, 1, "the file has no header row");
    check_header(table.header);
    CsvRow next;
    for (;;) {
      const std::size_t problems = problems_.size();
      if (problems == kProblemsMax || !row(next)) break;
      // After a wrong quote nobody knows how many fields were meant.
      if (problems_.size() == problems) check_width(table.header, next);
      table.rows.push_back(std::move(next));
      next = {};
    }
    if (!problems_.empty()) return tl::unexpected(std::move(problems_));
    return table;
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return text_[at_]; }
  int column() const { return static_cast<int>(at_ - line_begin_) + 1; }
  void step() {
    if (text_[at_++] != '\n') return;
    ++line_;
    line_begin_ = at_;
  }
  bool at_line_end() const { return at_end() || peek() == '\n' || text_.substr(at_, 2) == "\r\n"; }
  void take_line_end() {
    if (!at_end() && peek() == '\r') step();
    if (!at_end()) step();
  }
  void problem(const char* code, int line, int column, std::string message, std::string hint = {}) {
    if (problems_.size() < kProblemsMax)
      problems_.push_back({code, std::move(message), {file_, line, column}, std::move(hint)});
  }

  // False at the end of the text.
  bool row(CsvRow& row) {
    while (!at_end() && at_line_end()) take_line_end();
    if (at_end()) return false;
    row.line = line_;
    for (;;) {
      field(row.fields.emplace_back());
      if (at_end() || peek() != ',') break;
      step();
    }
    take_line_end();
    return true;
  }

  void field(CsvField& field) {
    field.line = line_;
    field.column = column();
    if (!at_end() && peek() == '"') return quoted(field);
    while (!at_line_end() && peek() != ',') {
      if (peek() == '"') {
        problem("csv.quote", line_, column(), "a quote inside a field that does not begin with one",
                "put the whole field in quotes and write the quote twice");
        skip_field();
        return;
      }
      field.text += peek();
      step();
    }
  }

  void quoted(CsvField& field) {
    step();
    while (!at_end()) {
      const bool is_quote = peek() == '"';
      if (is_quote && text_.substr(at_, 2) != "\"\"") break;
      field.text += peek();
      step();
      if (is_quote) step();
    }
    if (at_end()) {
      problem("csv.quote", field.line, field.column, "the quote is never closed");
      return;
    }
    step();
    if (at_line_end() || peek() == ',') return;
    problem("csv.quote", line_, column(), "text after the closing quote of a field",
            "a quote inside a quoted field is written twice");
    skip_field();
  }

  void skip_field() {
    while (!at_line_end() && peek() != ',') step();
  }

  void check_header(const CsvRow& header) {
    std::set<std::string_view> seen;
    for (const CsvField& name : header.fields) {
      if (name.text.empty())
        problem("csv.header", name.line, name.column, "a column has no name");
      else if (!seen.insert(name.text).second)
        problem("csv.header", name.line, name.column,
                fmt::format("the column {} stands twice in the header", name.text));
    }
  }

  void check_width(const CsvRow& header, const CsvRow& row) {
    if (row.fields.size() == header.fields.size()) return;
    problem("csv.width", row.line, 1,
            fmt::format("the row has {} fields; the header has {}", row.fields.size(),
                        header.fields.size()));
  }

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0, line_begin_ = 0;
  int line_ = 1;
  Problems problems_;
};

}  // namespace

Result<CsvTable> parse_csv(std::string_view text, const std::string& file) {
  if (text.size() > kCsvBytesMax)
    return fail(
        {"csv.too_large",
         fmt::format("the file has {} bytes; at most {} are read", text.size(), kCsvBytesMax),
         {file, 0, 0},
         "split it"});
  return Parser(text, file).table();
}

Result<std::string> read_text_file(const std::string& path) {
  const auto refused = [&](int error) {
    return fail({"file.unreadable",
                 fmt::format("cannot read: {}", std::strerror(error)),
                 {path, 0, 0},
                 ""});
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return refused(EISDIR);
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return refused(errno);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  if (stream.bad()) return refused(EIO);
  return text;
}

Result<CsvTable> read_csv_file(const std::string& path) {
  Result<std::string> text = read_text_file(path);
  if (!text) return tl::unexpected(std::move(text.error()));
  return parse_csv(*text, path);
}

}  // namespace servecast::fit
