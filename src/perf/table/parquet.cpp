// SPDX-License-Identifier: Apache-2.0
#include "perf/table/parquet.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <type_traits>
#include <unordered_map>

#ifdef SERVECAST_HAS_DUCKDB
#include <dlfcn.h>
#include <duckdb.h>
#endif

namespace servecast::perf {

#ifdef SERVECAST_HAS_DUCKDB

namespace {

// The functions in use, looked up when the first file is read: the program starts without the
// library's 70 MB and runs where it is not installed.
class Api {
 public:
  Api() {
    // Where the build found it, else where the loader looks.
    library_ = dlopen(SERVECAST_DUCKDB_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) library_ = dlopen("libduckdb.so", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    bool all = true;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library_, name));
      all = all && function != nullptr;
    };
    find(open, "duckdb_open");
    find(close, "duckdb_close");
    find(connect, "duckdb_connect");
    find(disconnect, "duckdb_disconnect");
    find(query, "duckdb_query");
    find(result_error, "duckdb_result_error");
    find(destroy_result, "duckdb_destroy_result");
    find(column_count, "duckdb_column_count");
    find(column_name, "duckdb_column_name");
    find(column_type, "duckdb_column_type");
    find(fetch_chunk, "duckdb_fetch_chunk");
    find(destroy_chunk, "duckdb_destroy_data_chunk");
    find(chunk_size, "duckdb_data_chunk_get_size");
    find(chunk_vector, "duckdb_data_chunk_get_vector");
    find(vector_data, "duckdb_vector_get_data");
    find(vector_validity, "duckdb_vector_get_validity");
    find(row_is_valid, "duckdb_validity_row_is_valid");
    find(text_data, "duckdb_string_t_data");
    find(text_length, "duckdb_string_t_length");
    complete_ = all;
  }
  // The library stays loaded: it has threads of its own.
  bool complete() const { return complete_; }

  decltype(&duckdb_open) open = nullptr;
  decltype(&duckdb_close) close = nullptr;
  decltype(&duckdb_connect) connect = nullptr;
  decltype(&duckdb_disconnect) disconnect = nullptr;
  decltype(&duckdb_query) query = nullptr;
  decltype(&duckdb_result_error) result_error = nullptr;
  decltype(&duckdb_destroy_result) destroy_result = nullptr;
  decltype(&duckdb_column_count) column_count = nullptr;
  decltype(&duckdb_column_name) column_name = nullptr;
  decltype(&duckdb_column_type) column_type = nullptr;
  decltype(&duckdb_fetch_chunk) fetch_chunk = nullptr;
  decltype(&duckdb_destroy_data_chunk) destroy_chunk = nullptr;
  decltype(&duckdb_data_chunk_get_size) chunk_size = nullptr;
  decltype(&duckdb_data_chunk_get_vector) chunk_vector = nullptr;
  decltype(&duckdb_vector_get_data) vector_data = nullptr;
  decltype(&duckdb_vector_get_validity) vector_validity = nullptr;
  decltype(&duckdb_validity_row_is_valid) row_is_valid = nullptr;
  decltype(&duckdb_string_t_data) text_data = nullptr;
  decltype(&duckdb_string_t_length) text_length = nullptr;

 private:
  void* library_ = nullptr;
  bool complete_ = false;
};

}  // namespace

struct ParquetReader::Library {
  Api api;
  duckdb_database database = nullptr;
  duckdb_connection connection = nullptr;
};

namespace {

struct QueryResult {
  const Api& api;
  duckdb_result result{};
  explicit QueryResult(const Api& functions) : api(functions) {}
  QueryResult(const QueryResult&) = delete;
  QueryResult& operator=(const QueryResult&) = delete;
  ~QueryResult() { api.destroy_result(&result); }
};

struct Chunk {
  const Api& api;
  duckdb_data_chunk chunk;
  Chunk(const Api& functions, duckdb_data_chunk one) : api(functions), chunk(one) {}
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
  ~Chunk() { api.destroy_chunk(&chunk); }
};

std::optional<Column::Kind> kind_of(duckdb_type type) {
  if (type == DUCKDB_TYPE_BIGINT || type == DUCKDB_TYPE_INTEGER || type == DUCKDB_TYPE_BOOLEAN)
    return Column::Kind::Whole;
  if (type == DUCKDB_TYPE_VARCHAR) return Column::Kind::Text;
  if (type == DUCKDB_TYPE_DOUBLE || type == DUCKDB_TYPE_FLOAT) return Column::Kind::Real;
  return std::nullopt;
}

// One column that is being filled, chunk by chunk.
class Filling {
 public:
  Filling(const Api& api, std::string name, Column::Kind kind, duckdb_type type)
      : api_(api), type_(type) {
    column_.name = std::move(name);
    column_.kind = kind;
  }

  // The first row of the chunk without a value it needs; nothing when all is well.
  std::optional<idx_t> take(duckdb_vector vector, idx_t rows) {
    std::uint64_t* valid = api_.vector_validity(vector);
    const void* data = api_.vector_data(vector);
    for (idx_t row = 0; row < rows; ++row) {
      const bool present = valid == nullptr || api_.row_is_valid(valid, row);
      if (!present && column_.kind != Column::Kind::Real) return row;
      if (column_.kind == Column::Kind::Real)
        column_.real.push_back(present ? real(data, row)
                                       : std::numeric_limits<double>::quiet_NaN());
      else if (column_.kind == Column::Kind::Text)
        column_.whole.push_back(word(static_cast<const duckdb_string_t*>(data)[row]));
      else
        column_.whole.push_back(whole(data, row));
    }
    return std::nullopt;
  }

  Column finish() { return std::move(column_); }
  const std::string& name() const { return column_.name; }

 private:
  double real(const void* data, idx_t row) const {
    if (type_ == DUCKDB_TYPE_FLOAT) return static_cast<const float*>(data)[row];
    return static_cast<const double*>(data)[row];
  }
  std::int64_t whole(const void* data, idx_t row) const {
    if (type_ == DUCKDB_TYPE_BOOLEAN) return static_cast<const bool*>(data)[row] ? 1 : 0;
    if (type_ == DUCKDB_TYPE_INTEGER) return static_cast<const std::int32_t*>(data)[row];
    return static_cast<const std::int64_t*>(data)[row];
  }
  std::int64_t word(duckdb_string_t stored) {
    const std::string text(api_.text_data(&stored), api_.text_length(stored));
    const auto [place, fresh] =
        places_.try_emplace(text, static_cast<std::int64_t>(column_.words.size()));
    if (fresh) column_.words.push_back(text);
    return place->second;
  }

  const Api& api_;
  Column column_;
  duckdb_type type_;
  std::unordered_map<std::string, std::int64_t> places_;
};

std::string quoted(const std::string& path) {
  std::string out = "'";
  for (const char c : path) {
    out += c;
    if (c == '\'') out += c;
  }
  return out + "'";
}

tl::unexpected<Problems> bad(std::string code, std::string message,
                             const std::filesystem::path& path) {
  return fail({.code = std::move(code),
               .message = std::move(message),
               .place = {.file = path.string()},
               .hint = ""});
}

Result<std::vector<Filling>> columns_of(const Api& api, duckdb_result& result,
                                        const std::filesystem::path& path) {
  std::vector<Filling> columns;
  for (idx_t c = 0; c < api.column_count(&result); ++c) {
    const std::string name = api.column_name(&result, c);
    const duckdb_type type = api.column_type(&result, c);
    const auto kind = kind_of(type);
    if (!kind)
      return bad("perfdata.column", fmt::format("column {} is neither a number nor a text", name),
                 path);
    columns.emplace_back(api, name, *kind, type);
  }
  return columns;
}

}  // namespace

bool can_read_parquet() {
  return true;
}

ParquetReader::ParquetReader() : library_(std::make_unique<Library>()) {
  const Api& api = library_->api;
  if (!api.complete() || api.open(nullptr, &library_->database) != DuckDBSuccess) return;
  api.connect(library_->database, &library_->connection);
}

ParquetReader::~ParquetReader() {
  if (library_->connection != nullptr) library_->api.disconnect(&library_->connection);
  if (library_->database != nullptr) library_->api.close(&library_->database);
}

Result<MeasuredTable> ParquetReader::read(const std::filesystem::path& path) const {
  const Api& api = library_->api;
  if (library_->connection == nullptr)
    return bad("perfdata.no_duckdb", "DuckDB's C library cannot be loaded", path);
  QueryResult query(api);
  const std::string text = "SELECT * FROM read_parquet(" + quoted(path.string()) + ")";
  if (api.query(library_->connection, text.c_str(), &query.result) != DuckDBSuccess) {
    const char* reason = api.result_error(&query.result);
    return bad("perfdata.parquet", reason == nullptr ? "cannot be read" : reason, path);
  }
  auto columns = columns_of(api, query.result, path);
  if (!columns) return tl::unexpected(columns.error());
  MeasuredTable table;
  while (duckdb_data_chunk raw = api.fetch_chunk(query.result)) {
    const Chunk chunk(api, raw);
    const idx_t rows = api.chunk_size(raw);
    for (std::size_t c = 0; c < columns->size(); ++c) {
      Filling& column = (*columns)[c];
      if (const auto row = column.take(api.chunk_vector(raw, c), rows))
        return bad("perfdata.column",
                   fmt::format("row {}, column {}: no value", table.rows + *row + 1, column.name()),
                   path);
    }
    table.rows += rows;
  }
  for (Filling& column : *columns) table.columns.push_back(column.finish());
  return table;
}

#else

struct ParquetReader::Library {};

bool can_read_parquet() {
  return false;
}
ParquetReader::ParquetReader() = default;
ParquetReader::~ParquetReader() = default;

Result<MeasuredTable> ParquetReader::read(const std::filesystem::path& path) const {
  return fail({.code = "perfdata.no_duckdb",
               .message = "this build cannot read Parquet: DuckDB's C library was not found when "
                          "it was configured",
               .place = {.file = path.string()},
               .hint = "run tools/duckdb.sh, configure and build again"});
}

#endif

}  // namespace servecast::perf
