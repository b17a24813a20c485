// SPDX-License-Identifier: Apache-2.0
// A table of measured durations as columns, with where it comes from. Durations are milliseconds.
//
//   auto table = read_table("tables/h200_sxm/gemm/vllm/0.24.0.table");
//   const Column* m = table->find("m");
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"

namespace servecast::perf {

struct Column {
  enum class Kind : std::uint8_t { Whole, Text, Real };
  std::string name;
  Kind kind = Kind::Whole;
  std::vector<std::int64_t> whole;  // Whole: values; Text: places in `words`
  std::vector<double> real;         // Real: values, NaN for none
  std::vector<std::string> words;   // in order of first appearance

  std::size_t size() const { return kind == Kind::Real ? real.size() : whole.size(); }
  std::string_view text(std::size_t row) const {
    return words[static_cast<std::size_t>(whole[row])];
  }
};

struct TableSource {
  std::string system, table, backend, version;
  friend bool operator==(const TableSource&, const TableSource&) = default;
};

struct MeasuredTable {
  TableSource source;
  std::uint64_t rows = 0;
  std::uint64_t rows_skipped = 0;  // by the rules of import
  std::vector<Column> columns;     // each of `rows` values

  const Column* find(std::string_view name) const;  // nothing when absent
};

// The store's own format (docs/reference/perfdata.md): one line of JSON that describes the columns,
// then the columns, compressed one by one. Problems: "perfdata.unwritable".
Result<void> write_table(const MeasuredTable& table, const std::filesystem::path& path);

// Problems: "perfdata.unreadable" (no such file), "perfdata.corrupt" (not this format, or the bytes
// do not match the checksum).
Result<MeasuredTable> read_table(const std::filesystem::path& path);

// As read_table, but only the description: columns carry names and words, no values.
Result<MeasuredTable> read_table_header(const std::filesystem::path& path);

}  // namespace servecast::perf
