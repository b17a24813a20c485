// SPDX-License-Identifier: Apache-2.0
#include "fit/read_rows.hpp"

#include "fit/measured/layout.hpp"
#include "fit/named_rules.hpp"

namespace servecast::fit {

Result<std::vector<JudgedRow>> read_rows(const std::string& path, const std::string& mapping,
                                         const DraftOptions& drafts) {
  const Result<CsvTable> table = read_csv_file(path);
  if (!table) return tl::unexpected(table.error());
  const Result<Layout> layout = mapping.empty() ? layout_of(*table) : read_mapping(mapping);
  if (!layout) return tl::unexpected(layout.error());
  Result<std::vector<MeasuredRow>> rows = rows_of(*table, *layout);
  if (!rows) return tl::unexpected(std::move(rows.error()));
  return judge(std::move(*rows), shipped_rules(), drafts);
}

}  // namespace servecast::fit
