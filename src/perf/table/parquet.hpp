// SPDX-License-Identifier: Apache-2.0
// Parquet files as columns. Reads with DuckDB's C library, an optional component of a build.
#pragma once

#include <filesystem>
#include <memory>

#include "perf/table/measured_table.hpp"

namespace servecast::perf {

bool can_read_parquet();  // this build has DuckDB

class ParquetReader {
 public:
  ParquetReader();
  ~ParquetReader();
  ParquetReader(const ParquetReader&) = delete;
  ParquetReader& operator=(const ParquetReader&) = delete;
  // All columns of a flat file in row order. Problems: "perfdata.no_duckdb" where the build has
  // none, "perfdata.parquet" with the library's reason, "perfdata.column" for a type that tables do
  // not have or for a missing value in a column that is not Real.
  Result<MeasuredTable> read(const std::filesystem::path& path) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace servecast::perf
