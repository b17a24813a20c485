// SPDX-License-Identifier: Apache-2.0
// From a directory of Parquet tables to the store (perfdata.md 2, 4-6).
//
//   auto report = import_tables("systems", "perfdata");
//   for (const ImportedTable& t : report->tables) ...
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "perf/table/measured_table.hpp"

namespace servecast::perf {

struct ImportedTable {
  TableSource source;
  std::uint64_t rows = 0;
  std::uint64_t rows_skipped = 0;
  std::uint64_t bytes = 0;  // in the store
};

struct ImportReport {
  std::vector<ImportedTable> tables;  // in order of path
  Problems refused;                   // tables that were left out, each with file, row and column
};

// Reads DIR/<system>/<family>/<backend>/<version>/<table>_perf.parquet; DIR may also be the parent
// of a `data` folder with that content. Writes OUT/<system>/<table>/<backend>/<version>.table and
// OUT/sources.json, what perf_data_reuse_manifest.yaml beside `data` says of kernels that other
// backends may share. A table with a bad row is left out as a whole and reported; the others are
// imported. Problems: no table in DIR, no Parquet reader, OUT cannot be written.
using Progress = std::function<void(const ImportedTable&)>;
Result<ImportReport> import_tables(const std::filesystem::path& in,
                                   const std::filesystem::path& out, const Progress& progress = {});

// The rules of one table: rows that upstream's loaders skip go, a bad value is a Problem that names
// file, row and column, and columns that say nothing about the shape are dropped. Exposed for
// tests.
Result<MeasuredTable> cleaned(MeasuredTable raw, const std::filesystem::path& file);

}  // namespace servecast::perf
