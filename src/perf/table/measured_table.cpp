// SPDX-License-Identifier: Apache-2.0
#include "perf/table/measured_table.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/hash.hpp"

namespace servecast::perf {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "servecast.perf_table.v1";
constexpr std::uint64_t kColumnBytesMax = std::uint64_t{1} << 32;  // of one column, uncompressed
constexpr int kCompression = 6;
static_assert(std::endian::native == std::endian::little, "columns are little-endian");

tl::unexpected<Problems> bad(std::string code, std::string message,
                             const std::filesystem::path& path, std::string hint = "") {
  return fail({.code = std::move(code),
               .message = std::move(message),
               .place = {.file = path.string()},
               .hint = std::move(hint)});
}

std::string_view kind_name(Column::Kind kind) {
  switch (kind) {
    case Column::Kind::Whole:
      return "whole";
    case Column::Kind::Text:
      return "text";
    case Column::Kind::Real:
      return "real";
  }
  return "";
}

// Bytes that every value of the column fits into; 8 for anything negative.
std::size_t width_of(const Column& column) {
  if (column.kind == Column::Kind::Real) return sizeof(double);
  std::uint64_t all = 0;
  for (const std::int64_t value : column.whole) all |= static_cast<std::uint64_t>(value);
  const int bits = 64 - std::countl_zero(all);
  return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

std::string raw_bytes(const Column& column, std::size_t width) {
  std::string out(column.size() * width, '\0');
  for (std::size_t row = 0; row < column.size(); ++row) {
    const void* value = column.kind == Column::Kind::Real
                            ? static_cast<const void*>(&column.real[row])
                            : static_cast<const void*>(&column.whole[row]);
    std::memcpy(out.data() + row * width, value, width);
  }
  return out;
}

std::string deflated(const std::string& raw) {
  uLongf size = compressBound(static_cast<uLong>(raw.size()));
  std::string out(size, '\0');
  compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(raw.data()),
            static_cast<uLong>(raw.size()), kCompression);
  out.resize(size);
  return out;
}

struct Layout {
  std::size_t width = 0;
  std::size_t stored = 0;  // bytes in the file
};

struct Header {
  MeasuredTable table;
  std::vector<Layout> layouts;
  std::uint64_t checksum = 0;
};

Json header_json(const MeasuredTable& table, const std::vector<Layout>& layouts,
                 std::uint64_t checksum) {
  Json columns = Json::array();
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    Json one = {{"name", column.name},
                {"kind", kind_name(column.kind)},
                {"width", layouts[c].width},
                {"bytes", layouts[c].stored}};
    if (column.kind == Column::Kind::Text) one["words"] = column.words;
    columns.push_back(std::move(one));
  }
  return {{"schema", kSchema},
          {"system", table.source.system},
          {"table", table.source.table},
          {"backend", table.source.backend},
          {"version", table.source.version},
          {"rows", table.rows},
          {"rows_skipped", table.rows_skipped},
          {"latency_unit", "ms"},
          {"columns", std::move(columns)},
          {"xxh3", fmt::format("{:016x}", checksum)}};
}

// Throws nlohmann's exceptions for what is not a header; the caller turns them into a Problem.
Header header_from(const std::string& line) {
  const Json json = Json::parse(line);
  if (json.at("schema") != kSchema) throw std::runtime_error("the schema is another one");
  Header header;
  MeasuredTable& table = header.table;
  table.source = {json.at("system"), json.at("table"), json.at("backend"), json.at("version")};
  table.rows = json.at("rows");
  table.rows_skipped = json.at("rows_skipped");
  header.checksum = std::stoull(json.at("xxh3").get<std::string>(), nullptr, 16);
  for (const Json& one : json.at("columns")) {
    Column column;
    column.name = one.at("name");
    const std::string kind = one.at("kind");
    column.kind = kind == "text"   ? Column::Kind::Text
                  : kind == "real" ? Column::Kind::Real
                                   : Column::Kind::Whole;
    if (one.contains("words")) column.words = one.at("words");
    header.layouts.push_back({one.at("width"), one.at("bytes")});
    table.columns.push_back(std::move(column));
  }
  return header;
}

// False where the bytes are not those of such a column.
bool fill(Column& column, std::uint64_t rows, const Layout& layout, std::string_view stored) {
  if (layout.width == 0 || layout.width > 8 || rows > kColumnBytesMax / 8) return false;
  std::string raw(rows * layout.width, '\0');
  uLongf size = static_cast<uLongf>(raw.size());
  const int code =
      uncompress(reinterpret_cast<Bytef*>(raw.data()), &size,
                 reinterpret_cast<const Bytef*>(stored.data()), static_cast<uLong>(stored.size()));
  if (code != Z_OK || size != raw.size()) return false;
  const bool real = column.kind == Column::Kind::Real;
  if (real && layout.width != sizeof(double)) return false;
  if (real) column.real.resize(rows);
  if (!real) column.whole.assign(rows, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    void* value =
        real ? static_cast<void*>(&column.real[row]) : static_cast<void*>(&column.whole[row]);
    std::memcpy(value, raw.data() + row * layout.width, layout.width);
  }
  if (column.kind != Column::Kind::Text) return true;
  const auto words = static_cast<std::int64_t>(column.words.size());
  return std::all_of(column.whole.begin(), column.whole.end(),
                     [&](std::int64_t place) { return place >= 0 && place < words; });
}

Result<Header> read_header(std::istream& in, const std::filesystem::path& path) {
  std::string line;
  if (!in || !std::getline(in, line))
    return bad("perfdata.unreadable", "the table cannot be read", path,
               "write it with 'servecast perfdata import'");
  try {
    return header_from(line);
  } catch (const std::exception& error) {
    return bad("perfdata.corrupt", fmt::format("not a table of this program: {}", error.what()),
               path, "write it again with 'servecast perfdata import'");
  }
}

}  // namespace

const Column* MeasuredTable::find(std::string_view name) const {
  const auto column = std::find_if(columns.begin(), columns.end(),
                                   [&](const Column& one) { return one.name == name; });
  return column == columns.end() ? nullptr : &*column;
}

Result<void> write_table(const MeasuredTable& table, const std::filesystem::path& path) {
  std::string payload;
  std::vector<Layout> layouts;
  for (const Column& column : table.columns) {
    const std::size_t width = width_of(column);
    const std::string stored = deflated(raw_bytes(column, width));
    layouts.push_back({width, stored.size()});
    payload += stored;
  }
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  // Written beside its place and moved there, so that a reader never sees half a table.
  const std::filesystem::path beside = path.string() + ".new";
  {
    std::ofstream out(beside, std::ios::binary);
    out << header_json(table, layouts, xxh3(payload.data(), payload.size(), 0)).dump() << '\n'
        << payload;
    if (!out.flush()) return bad("perfdata.unwritable", "the table cannot be written", path);
  }
  std::error_code error;
  std::filesystem::rename(beside, path, error);
  if (error) return bad("perfdata.unwritable", error.message(), path);
  return {};
}

Result<MeasuredTable> read_table_header(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return read_header(in, path).map([](Header header) { return std::move(header.table); });
}

Result<MeasuredTable> read_table(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  auto header = read_header(in, path);
  if (!header) return tl::unexpected(header.error());
  std::ostringstream rest;
  rest << in.rdbuf();
  const std::string payload = rest.str();
  const std::string hint = "write it again with 'servecast perfdata import'";
  if (xxh3(payload.data(), payload.size(), 0) != header->checksum)
    return bad("perfdata.corrupt", "the columns do not match their checksum", path, hint);
  std::size_t at = 0;
  MeasuredTable& table = header->table;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Layout& layout = header->layouts[c];
    const bool whole = layout.stored <= payload.size() - at &&
                       fill(table.columns[c], table.rows, layout,
                            std::string_view(payload).substr(at, layout.stored));
    if (!whole)
      return bad("perfdata.corrupt",
                 fmt::format("column {} cannot be unpacked", table.columns[c].name), path, hint);
    at += layout.stored;
  }
  return std::move(table);
}

}  // namespace servecast::perf
