# SPDX-License-Identifier: Apache-2.0
# DuckDB's C library: a system-wide one, else what tools/duckdb.sh put into build/third_party. Defines DuckDB::DuckDB.
set(packages "${CMAKE_CURRENT_LIST_DIR}/../build/third_party/node_modules")
find_path(DuckDB_INCLUDE_DIR duckdb.h HINTS "${packages}/duckdb/src/duckdb/src/include")
find_library(DuckDB_LIBRARY duckdb HINTS "${packages}/@duckdb/node-bindings-linux-x64")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(DuckDB REQUIRED_VARS DuckDB_LIBRARY DuckDB_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "'servecast perfdata import' needs it: run tools/duckdb.sh and configure again")
if(DuckDB_FOUND AND NOT TARGET DuckDB::DuckDB)
  add_library(DuckDB::DuckDB SHARED IMPORTED)
  set_target_properties(DuckDB::DuckDB PROPERTIES IMPORTED_LOCATION "${DuckDB_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${DuckDB_INCLUDE_DIR}")
endif()
mark_as_advanced(DuckDB_INCLUDE_DIR DuckDB_LIBRARY)
