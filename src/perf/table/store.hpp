// SPDX-License-Identifier: Apache-2.0
// What a store of measured tables holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "perf/table/measured_table.hpp"

namespace servecast::perf {

struct StoredTable {
  TableSource source;
  std::filesystem::path path;
};

// Every table under the store by system, table, backend and version. Reads names only.
// Problems: "perfdata.no_tables" where there is none.
Result<std::vector<StoredTable>> stored_tables(const std::filesystem::path& store);

// What the values of one column cover.
struct Coverage {
  std::string column;
  Column::Kind kind = Column::Kind::Whole;
  std::uint64_t distinct = 0;
  double least = 0.0, most = 0.0;       // of numbers
  std::vector<std::string> words = {};  // of a text, sorted
};

std::vector<Coverage> coverage_of(const MeasuredTable& table);

// Whether version a comes before b, number by number; a release candidate comes before its release,
// a post release after it. Texts that are no version come first, by their bytes.
bool earlier_version(const std::string& a, const std::string& b);
bool is_version(const std::string& text);

}  // namespace servecast::perf
