// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "cli/commands.hpp"
#include "cli/result_file.hpp"
#include "cli/step_model_file.hpp"
#include "cli/terminal.hpp"
#include "cli/tree.hpp"
#include "fit/backtest.hpp"
#include "fit/backtest_report.hpp"
#include "fit/read_rows.hpp"

namespace servecast::cli {
namespace {

constexpr std::uint32_t kDraftsMax = 5;

struct BacktestOptions {
  std::string file;
  std::string mapping;
  std::string format = "table";
  std::string html;
  std::optional<std::uint32_t> nextn;
  std::optional<double> nextn_accepted;
  std::string step_model;
  std::size_t folds = 0;
  bool one_curve = false;
  unsigned threads = 0;
  bool no_rows = false;
  bool quiet = false;
};

fit::Backtest run_rows(const BacktestOptions& options, std::vector<fit::JudgedRow> rows,
                       const fit::StepModelPointer& step_model) {
  Progress progress(options.quiet);
  fit::BacktestOptions how{.threads = options.threads > 0
                                          ? options.threads
                                          : std::max(std::thread::hardware_concurrency(), 1U),
                           .step_model = step_model,
                           .progress = {}};
  if (progress.is_wanted())
    how.progress = [&](std::uint64_t done, std::uint64_t all) { progress.show(done, all); };
  if (options.folds == 0) return fit::run_backtest(std::move(rows), how);
  return fit::run_cross_validation(std::move(rows),
                                   {.folds = options.folds, .one_curve = options.one_curve}, how);
}

Exit backtest(const BacktestOptions& options) {
  // Not "more than": no number compares so.
  if (options.nextn_accepted &&
      !(*options.nextn_accepted <= static_cast<double>(options.nextn.value_or(0))))
    return print_problems({{"backtest.nextn",
                            "--nextn-accepted is more than the drafts that --nextn gives",
                            {},
                            "of N draft tokens at most N are accepted"}});
  if (!options.html.empty()) {
    if (const auto usable = check_result_path(options.html); !usable)
      return print_problems(usable.error());
  }
  const auto step_model = read_step_model(options.step_model);
  if (!step_model) return print_problems(step_model.error());
  Result<std::vector<fit::JudgedRow>> rows = fit::read_rows(
      options.file, options.mapping, {.nextn = options.nextn, .accepted = options.nextn_accepted});
  if (!rows) return print_problems(rows.error());
  const fit::Backtest done = run_rows(options, std::move(*rows), *step_model);
  if (!options.html.empty()) {
    if (const auto written = write_result_file(options.html, fit::backtest_html(done)); !written)
      return print_problems(written.error());
  }
  if (options.format == "json") return print_result(fit::backtest_json(done));
  if (options.format == "markdown") return print_result(fit::backtest_markdown(done));
  if (options.format == "csv") return print_result(fit::backtest_csv(done));
  return print_result(fit::backtest_table(done, !options.no_rows));
}

}  // namespace

void add_backtest(CLI::App& root, Action& chosen) {
  const auto options = std::make_shared<BacktestOptions>();
  CLI::App& app = *root.add_subcommand(
      "backtest", "Replay the runs of a file of measurements and tell how far predictions are off");
  app.add_option("measured", options->file,
                 "The CSV file; its header tells the layout, or --mapping does")
      ->required();
  app.add_option("--mapping", options->mapping,
                 "A YAML file that says which column is which field: columns, constants, factors")
      ->type_name("PATH");
  take_one_of(*app.add_option("--format", options->format, "What stdout shows; csv: one line a row")
                   ->capture_default_str(),
              "table|json|csv|markdown");
  app.add_option("--html", options->html,
                 "Also write a page that plots predicted against measured, replacing that file")
      ->type_name("PATH");
  CLI::Option* nextn =
      app.add_option("--nextn", options->nextn,
                     "Draft tokens of runs whose row does not say; without it a rule infers them")
          ->type_name("N")
          ->check(CLI::Range(0U, kDraftsMax).description(""));
  app.add_option("--nextn-accepted", options->nextn_accepted,
                 "Draft tokens that a verification accepts on average, with --nextn")
      ->type_name("X")
      ->check(CLI::Range(0.0, double{kDraftsMax}).description(""))
      ->needs(nextn);
  app.add_option("--step-model", options->step_model,
                 "A file that servecast fit wrote; without it the program's")
      ->type_name("PATH");
  CLI::Option* folds =
      app.add_option("--cv", options->folds,
                     "Predict each row by a fit that has not seen its group, in so many folds")
          ->type_name("K")
          ->check(CLI::Range(2U, 100U).description(""));
  app.add_flag("--one-curve", options->one_curve,
               "With --cv: the fit also knows one measured curve of the row's group")
      ->needs(folds);
  app.add_option("--threads", options->threads, "Runs at a time; all processors if not given")
      ->type_name("N")
      ->check(CLI::Range(1U, 1024U).description(""));
  app.add_flag("--no-rows", options->no_rows, "Of the table only the errors and their groups");
  app.add_flag("-q,--quiet", options->quiet, "No progress on stderr");
  app.footer(
      "Examples:\n"
      "  servecast backtest served.csv --no-rows --html scatter.html\n"
      "  servecast backtest served.csv --cv 5 --no-rows\n"
      "  servecast backtest mine.csv --mapping mine.yaml --nextn 0 --format json");
  app.callback([options, &chosen] {
    chosen = [options](const std::vector<std::string>&) { return backtest(*options); };
  });
}

}  // namespace servecast::cli
