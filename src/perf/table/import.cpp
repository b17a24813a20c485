// SPDX-License-Identifier: Apache-2.0
#include "perf/table/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "perf/table/parquet.hpp"
#include "perf/table/sidecars.hpp"
#include "perf/table/suspects.hpp"

namespace servecast::perf {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = "_perf.parquet";

tl::unexpected<Problems> bad(std::string code, std::string message, const fs::path& file,
                             std::string hint = "") {
  return fail({.code = std::move(code),
               .message = std::move(message),
               .place = {.file = file.string()},
               .hint = std::move(hint)});
}

// DIR/<system>/<family>/<backend>/<version>/<table>_perf.parquet
std::optional<TableSource> source_of(const fs::path& relative) {
  const std::vector<fs::path> parts(relative.begin(), relative.end());
  if (parts.size() != 5) return std::nullopt;
  std::string name = parts[4].string();
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.resize(name.size() - kSuffix.size());
  return TableSource{parts[0].string(), name, parts[2].string(), parts[3].string()};
}

std::vector<fs::path> parquet_files(const fs::path& root) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(root, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at->path().extension() == ".parquet") files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool says_text(const MeasuredTable& table, std::string_view column, std::size_t row,
               std::string_view word) {
  const Column* found = table.find(column);
  return found != nullptr && found->kind == Column::Kind::Text && found->text(row) == word;
}

bool is_eager(const MeasuredTable& table, std::size_t row) {
  for (const char* column : {"backend", "implementation", "kernel_source"}) {
    const Column* found = table.find(column);
    if (found != nullptr && found->kind == Column::Kind::Text &&
        found->text(row).ends_with("_eager"))
      return true;
  }
  return false;
}

// perfdata.md 4: rows that no query may see. Engines capture graphs, so that eager collectives do
// not occur, except on the one system whose engine has no graphs.
bool skipped(const MeasuredTable& table, std::size_t row) {
  if (table.source.table == "gemm")
    return says_text(table, "gemm_dtype", row, "awq") ||
           says_text(table, "gemm_dtype", row, "gptq");
  if (table.source.table == "custom_allreduce" && table.source.system != "b60")
    return is_eager(table, row);
  return is_suspect(table, row);
}

// A duration of zero is a measurement where a table holds what one operator costs more than
// another, and where a short context leaves the choice of tokens nothing to do.
bool zero_is_a_value(std::string_view table) {
  return table == "computescale" || table == "scale_matrix" || table == "glm5_topk_module" ||
         table == "dsv4_csa_topk_calib";
}

std::optional<std::string> bad_latency(double ms, bool zero_counts) {
  if (!std::isfinite(ms)) return "is not a number";
  if (ms < 0.0 || (ms == 0.0 && !zero_counts)) return "is not positive";
  return std::nullopt;
}

Result<void> check_rows(const MeasuredTable& table, const fs::path& file) {
  const Column* latency = table.find("latency");
  if (latency != nullptr && latency->kind != Column::Kind::Real)
    return bad("perfdata.column", "column latency does not hold real numbers", file);
  const bool zero_counts = zero_is_a_value(table.source.table);
  for (std::size_t row = 0; row < table.rows; ++row) {
    if (latency != nullptr) {
      if (const auto why = bad_latency(latency->real[row], zero_counts))
        return bad("perfdata.row",
                   fmt::format("row {}, column latency: {} {}", row + 1, latency->real[row], *why),
                   file);
    }
    for (const Column& column : table.columns) {
      if (column.kind == Column::Kind::Whole && column.whole[row] < 0)
        return bad("perfdata.row",
                   fmt::format("row {}, column {}: {} is negative", row + 1, column.name,
                               column.whole[row]),
                   file);
    }
  }
  return {};
}

template <class T>
void keep(std::vector<T>& values, const std::vector<bool>& kept) {
  if (values.empty()) return;
  std::size_t at = 0;
  for (std::size_t row = 0; row < kept.size(); ++row) {
    if (kept[row]) values[at++] = values[row];
  }
  values.resize(at);
}

void drop_columns(MeasuredTable& table) {
  // The first three stand in the path, the others never vary or are no shape.
  constexpr std::array<std::string_view, 5> kDropped = {"framework", "version", "device",
                                                        "beam_width", "power_limit"};
  std::erase_if(table.columns, [&](const Column& column) {
    return std::find(kDropped.begin(), kDropped.end(), column.name) != kDropped.end();
  });
}

}  // namespace

Result<MeasuredTable> cleaned(MeasuredTable table, const fs::path& file) {
  drop_columns(table);
  if (const auto checked = check_rows(table, file); !checked)
    return tl::unexpected(checked.error());
  std::vector<bool> kept(table.rows);
  for (std::size_t row = 0; row < table.rows; ++row) kept[row] = !skipped(table, row);
  for (Column& column : table.columns) {
    keep(column.whole, kept);
    keep(column.real, kept);
  }
  const auto rows = static_cast<std::uint64_t>(std::count(kept.begin(), kept.end(), true));
  table.rows_skipped = table.rows - rows;
  table.rows = rows;
  return table;
}

Result<ImportReport> import_tables(const fs::path& in, const fs::path& out,
                                   const Progress& progress) {
  std::error_code ignored;
  const bool has_data = fs::is_directory(in / "data", ignored);
  const fs::path root = has_data ? in / "data" : in;
  const ParquetReader reader;
  ImportReport report;
  for (const fs::path& file : parquet_files(root)) {
    const auto source = source_of(file.lexically_relative(root));
    if (!source) continue;
    auto raw = reader.read(file);
    if (!raw && raw.error().front().code == "perfdata.no_duckdb")
      return tl::unexpected(raw.error());
    if (raw) raw->source = *source;
    auto table = raw ? cleaned(std::move(*raw), file) : std::move(raw);
    if (!table) {
      report.refused.insert(report.refused.end(), table.error().begin(), table.error().end());
      continue;
    }
    const fs::path place =
        out / source->system / source->table / source->backend / (source->version + ".table");
    if (const auto written = write_table(*table, place); !written)
      return tl::unexpected(written.error());
    report.tables.push_back(
        {*source, table->rows, table->rows_skipped, fs::file_size(place, ignored)});
    if (progress) progress(report.tables.back());
  }
  if (report.tables.empty() && report.refused.empty())
    return bad("perfdata.no_tables",
               "no <system>/<family>/<backend>/<version>/<table>_perf.parquet in this directory",
               in, "name the directory that holds the systems");
  if (const auto written = write_sources(read_sidecars(in), out); !written)
    return tl::unexpected(written.error());
  return report;
}

}  // namespace servecast::perf
