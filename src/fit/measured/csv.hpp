// SPDX-License-Identifier: Apache-2.0
// A CSV file (RFC 4180) as text fields with their places.
//
//   Result<CsvTable> table = read_csv_file("served.csv");
//   for (const CsvRow& row : table->rows) print(row.line, row.fields[0].text);
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"

namespace servecast::fit {

inline constexpr std::size_t kCsvBytesMax = std::size_t{256} << 20;

struct CsvField {
  std::string text = {};  // without quotes
  int line = 0;           // where it begins; both count from 1, columns in bytes
  int column = 0;
};

struct CsvRow {
  int line = 0;
  std::vector<CsvField> fields = {};  // as many as the header has
};

struct CsvTable {
  std::string file = {};
  CsvRow header = {};  // names are distinct and not empty
  std::vector<CsvRow> rows = {};
};

// The bytes of a file. Problem "file.unreadable".
Result<std::string> read_text_file(const std::string& path);

// The first row is the header. Lines end in LF or CRLF; blank lines and a byte order mark are
// passed over. Problems (20 at most, codes "csv.*"): no header, a name twice, a row of another
// width, a quote that is never closed or stands inside a field, text after a closing quote.
Result<CsvTable> parse_csv(std::string_view text, const std::string& file);
// Problems as above, and that of read_text_file.
Result<CsvTable> read_csv_file(const std::string& path);

}  // namespace servecast::fit
