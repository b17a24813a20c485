// SPDX-License-Identifier: Apache-2.0
// Which column of a file is which field of a measured row.
//
//   Result<Layout> layout = layout_of(table);         // by its header
//   Result<Layout> layout = read_mapping("map.yaml");  // as the user says
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/problem.hpp"
#include "fit/measured/csv.hpp"
#include "fit/measured/measured.hpp"

namespace servecast::fit {

// What a field takes: text, a whole number, a measured number above 0, or any number.
enum class FieldKind : std::uint8_t { Text, Whole, Measured, Real };

struct Field {
  std::string_view name;
  FieldKind kind;
  std::string* (*text)(MeasuredRow&);
  std::optional<std::uint32_t>* (*whole)(MeasuredRow&);
  std::optional<double>* (*real)(MeasuredRow&);
};
// In a fixed order.
const std::vector<Field>& fields();
const Field* find_field(std::string_view name);

struct Layout {
  std::string name = {};                            // "silicon", "common" or the mapping's file
  std::map<std::string, std::string> columns = {};  // field -> column
  std::map<std::string, std::string> constants = {};
  std::map<std::string, double> factors = {};  // field -> what its numbers are multiplied by
};

// The layout that the header has. Problem "measured.layout": none of those known.
Result<Layout> layout_of(const CsvTable& table);

// A mapping file: YAML with `columns`, `constants` and `factors`, each field: value. Problems with
// file, line and column: an unknown field (with the nearest name), a value that is no text or no
// number above 0.
Result<Layout> read_mapping(const std::string& path);
Result<Layout> parse_mapping(std::string_view text, const std::string& file);

// Every row as the layout reads it. Problems (20 at most): a column of the layout that the file
// lacks, a measured number that is none or is not above 0.
Result<std::vector<MeasuredRow>> rows_of(const CsvTable& table, const Layout& layout);

}  // namespace servecast::fit
