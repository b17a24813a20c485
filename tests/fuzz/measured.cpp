// SPDX-License-Identifier: Apache-2.0
// Whatever bytes a file of measurements and its mapping hold, the readers answer with Problems or
// with rows that are judged, each with one status and a reason unless it is used.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "fit/hygiene.hpp"
#include "fit/measured/layout.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace servecast;
  using namespace servecast::fit;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  // A mapping may stand before the file, ended by a zero byte.
  const std::size_t zero = text.find('\0');
  const bool has_mapping = zero != std::string_view::npos;
  const Result<CsvTable> table = parse_csv(has_mapping ? text.substr(zero + 1) : text, "fuzz.csv");
  if (!table) {
    SERVECAST_CHECK(!table.error().empty());
    return 0;
  }
  for (const CsvRow& row : table->rows)
    SERVECAST_CHECK(row.fields.size() == table->header.fields.size());
  const Result<Layout> layout =
      has_mapping ? parse_mapping(text.substr(0, zero), "fuzz.yaml") : layout_of(*table);
  if (!layout) return 0;
  Result<std::vector<MeasuredRow>> rows = rows_of(*table, *layout);
  if (!rows) return 0;
  SERVECAST_CHECK(rows->size() == table->rows.size());
  for (const JudgedRow& row : judge(std::move(*rows), shipped_rules(), {}))
    SERVECAST_CHECK((row.status == Status::Use) == row.reason.empty());
  return 0;
}
