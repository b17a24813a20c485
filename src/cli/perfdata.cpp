// SPDX-License-Identifier: Apache-2.0
// Measured tables: import them once, see what they cover.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/terminal.hpp"
#include "cli/tree.hpp"
#include "perf/table/import.hpp"
#include "perf/table/store.hpp"

namespace servecast::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PerfdataOptions {
  std::string in;
  std::string out = "servecast-perfdata";
  std::string system, table, backend, version;
  std::string format = "table";
};

bool chosen(const PerfdataOptions& o, const perf::TableSource& s) {
  const auto fits = [](const std::string& asked, const std::string& is) {
    return asked.empty() || asked == is;
  };
  return fits(o.system, s.system) && fits(o.table, s.table) && fits(o.backend, s.backend) &&
         fits(o.version, s.version);
}

Json source_json(const perf::TableSource& source) {
  return {{"system", source.system},
          {"table", source.table},
          {"backend", source.backend},
          {"version", source.version}};
}

Exit import(const PerfdataOptions& options) {
  const auto report = perf::import_tables(options.in, options.out);
  if (!report) return print_problems(report.error());
  std::uint64_t rows = 0, skipped = 0, bytes = 0;
  for (const perf::ImportedTable& table : report->tables) {
    rows += table.rows;
    skipped += table.rows_skipped;
    bytes += table.bytes;
  }
  const Exit printed = print_result(
      fmt::format("{} tables, {} rows, {:.1f} MB in {}; {} rows left out by rule, {} tables "
                  "refused\n",
                  report->tables.size(), rows, static_cast<double>(bytes) / 1e6, options.out,
                  skipped, report->refused.size()));
  return report->refused.empty() ? printed : print_problems(report->refused);
}

Exit list(const PerfdataOptions& options) {
  const auto tables = perf::stored_tables(options.in);
  if (!tables) return print_problems(tables.error());
  Json rows = Json::array();
  std::string text = fmt::format("{:<20} {:<30} {:<8} {:<12} {:>9}\n", "system", "table", "backend",
                                 "version", "rows");
  for (const perf::StoredTable& stored : *tables) {
    if (!chosen(options, stored.source)) continue;
    const auto header = perf::read_table_header(stored.path);
    if (!header) return print_problems(header.error());
    const perf::TableSource& s = stored.source;
    text += fmt::format("{:<20} {:<30} {:<8} {:<12} {:>9}\n", s.system, s.table, s.backend,
                        s.version, header->rows);
    Json row = source_json(s);
    row["rows"] = header->rows;
    row["rows_skipped"] = header->rows_skipped;
    rows.push_back(std::move(row));
  }
  return print_result(options.format == "json" ? rows.dump(2) + "\n" : text);
}

std::string coverage_text(const perf::Coverage& c) {
  if (c.kind == perf::Column::Kind::Text)
    return fmt::format("  {:<22} {:>7}  {}\n", c.column, c.distinct, fmt::join(c.words, ", "));
  return fmt::format("  {:<22} {:>7}  {:.10g} .. {:.10g}\n", c.column, c.distinct, c.least, c.most);
}

Json coverage_json(const perf::Coverage& c) {
  Json out = {{"column", c.column}, {"distinct", c.distinct}};
  if (c.kind == perf::Column::Kind::Text) {
    out["values"] = c.words;
  } else {
    out["min"] = c.least;
    out["max"] = c.most;
  }
  return out;
}

Exit show(const PerfdataOptions& options) {
  const auto tables = perf::stored_tables(options.in);
  if (!tables) return print_problems(tables.error());
  Json all = Json::array();
  std::string text;
  for (const perf::StoredTable& stored : *tables) {
    if (!chosen(options, stored.source)) continue;
    const auto table = perf::read_table(stored.path);
    if (!table) return print_problems(table.error());
    const perf::TableSource& s = stored.source;
    text += fmt::format("{} {} {} {}: {} rows, {} left out by rule\n", s.system, s.table, s.backend,
                        s.version, table->rows, table->rows_skipped);
    Json one = source_json(s);
    one["rows"] = table->rows;
    for (const perf::Coverage& c : perf::coverage_of(*table)) {
      text += coverage_text(c);
      one["columns"].push_back(coverage_json(c));
    }
    all.push_back(std::move(one));
  }
  if (all.empty())
    return print_problems(
        {{.code = "perfdata.unknown_table",
          .message = "no stored table is of this system, table, backend and version",
          .place = {.file = options.in},
          .hint = "'servecast perfdata list' names them"}});
  return print_result(options.format == "json" ? all.dump(2) + "\n" : text);
}

void add_filters(CLI::App& app, PerfdataOptions& options) {
  app.add_option("--system", options.system, "Only tables of this system, such as h200_sxm");
  app.add_option("--table", options.table, "Only this table, such as gemm");
  app.add_option("--backend", options.backend, "Only tables of this engine or library");
  app.add_option("--engine-version", options.version, "Only tables of this version of it");
  CLI::Option& format = *app.add_option("--format", options.format, "How to print");
  format.capture_default_str();
  take_one_of(format, "table|json");
}

}  // namespace

void add_perfdata(CLI::App& root, Action& chosen_action) {
  CLI::App& app =
      *root.add_subcommand("perfdata", "Import measured operator tables and see what they cover");
  app.require_subcommand(1);
  const auto add =
      [&](const char* name, const char* says, const char* input,
          Exit (*run)(const PerfdataOptions&)) -> std::pair<CLI::App*, PerfdataOptions*> {
    const auto options = std::make_shared<PerfdataOptions>();
    CLI::App* command = app.add_subcommand(name, says);
    command->add_option("dir", options->in, input)->required();
    command->callback([options, run, &chosen_action] {
      chosen_action = [options, run](const std::vector<std::string>&) { return run(*options); };
    });
    return {command, options.get()};
  };
  const auto [importing, import_options] = add(
      "import", "Read Parquet tables into a directory of compact ones",
      "The directory that holds <system>/<family>/<engine>/<version>/<table>_perf.parquet", import);
  importing->add_option("--out", import_options->out, "Where the compact tables go")
      ->capture_default_str();
  const char* store = "The directory that 'servecast perfdata import' wrote";
  const auto [listing, list_options] = add("list", "List the tables with their rows", store, list);
  add_filters(*listing, *list_options);
  const auto [showing, show_options] =
      add("show", "Print what each column of a table covers", store, show);
  add_filters(*showing, *show_options);
  // After the subcommands, which would inherit it.
  app.footer(
      "Examples:\n"
      "  servecast perfdata import systems --out perfdata\n"
      "  servecast perfdata list perfdata --system h200_sxm\n"
      "  servecast perfdata show perfdata --system h200_sxm --table gemm --backend vllm");
}

}  // namespace servecast::cli
