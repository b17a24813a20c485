// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "cli/commands.hpp"
#include "cli/result_file.hpp"
#include "cli/step_model_file.hpp"
#include "cli/terminal.hpp"
#include "cli/tree.hpp"
#include "fit/errors.hpp"
#include "fit/fit_rows.hpp"
#include "fit/read_rows.hpp"
#include "fit/validation.hpp"

namespace servecast::cli {
namespace {

struct FitCommand {
  std::vector<std::string> files;
  std::string mapping;
  std::string base;
  std::string start = "fitted";
  std::string output;
  std::string source;
  std::string licence = "as that of the measurements";
  std::optional<std::uint32_t> nextn;
  std::size_t folds = 0;
  unsigned threads = 0;
  bool quiet = false;
};

Result<std::vector<fit::JudgedRow>> read_all(const FitCommand& command) {
  std::vector<fit::JudgedRow> rows;
  for (const std::string& file : command.files) {
    auto some = fit::read_rows(file, command.mapping, {.nextn = command.nextn, .accepted = {}});
    if (!some) return some;
    std::move(some->begin(), some->end(), std::back_inserter(rows));
  }
  return rows;
}

fit::FitRows run_rows(const FitCommand& command, const std::vector<fit::JudgedRow>& rows,
                      const fit::StepModelPointer& base, unsigned threads) {
  Progress progress(command.quiet);
  fit::FitRowsOptions how{.threads = threads, .step_model = base, .progress = {}};
  if (progress.is_wanted())
    how.progress = [&](std::uint64_t done, std::uint64_t all) { progress.show(done, all); };
  return fit::fit_rows(rows, how);
}

std::string errors_line(std::string_view name, const std::vector<fit::FitRow>& rows,
                        const std::vector<fit::Times>& times) {
  std::vector<double> ttft, tpot;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (times[i].tpot_ms == 0.0) continue;
    if (rows[i].ttft_ms) ttft.push_back(100.0 * (times[i].ttft_ms / *rows[i].ttft_ms - 1.0));
    if (rows[i].tpot_ms) tpot.push_back(100.0 * (times[i].tpot_ms / *rows[i].tpot_ms - 1.0));
  }
  const auto text = [](const std::optional<fit::ErrorStats>& stats) {
    if (!stats) return std::string("-");
    return fmt::format("{:.1f}/{:.1f}/{:.1f}", stats->mape, stats->median_ape, stats->p90_ape);
  };
  return fmt::format("{:<34} {:>5} {:>17} {:>17}\n", name, std::max(ttft.size(), tpot.size()),
                     text(fit::stats_of(tpot)), text(fit::stats_of(ttft)));
}

std::string left_out_lines(const fit::FitRows& fit, const std::vector<fit::JudgedRow>& rows) {
  std::map<std::string, std::size_t> reasons;
  for (const auto& [index, reason] : fit.left_out) ++reasons[reason];
  for (const fit::JudgedRow& row : rows) {
    if (row.status == fit::Status::Use || row.status == fit::Status::Special) continue;
    ++reasons[row.status == fit::Status::Duplicate ? "an exact repetition of another row"
                                                   : row.reason];
  }
  std::string text;
  for (const auto& [reason, count] : reasons)
    text += fmt::format("{:>5} rows left out: {}\n", count, reason);
  return text;
}

std::vector<fit::Times> times_by(const catalog::StepModel& model,
                                 const std::vector<fit::FitRow>& rows) {
  std::vector<fit::Times> times;
  for (const fit::FitRow& row : rows)
    times.push_back(fit::predicted(row, perf::Coefficients(model, row.labels)));
  return times;
}

Exit run_fit(const FitCommand& command) {
  if (!command.output.empty()) {
    if (const auto usable = check_result_path(command.output); !usable)
      return print_problems(usable.error());
  }
  const auto base = read_step_model(command.base);
  if (!base) return print_problems(base.error());
  const auto rows = read_all(command);
  if (!rows) return print_problems(rows.error());
  const unsigned threads =
      command.threads > 0 ? command.threads : std::max(std::thread::hardware_concurrency(), 1U);
  const fit::FitRows fit = run_rows(command, *rows, *base, threads);
  if (fit.rows.empty())
    return print_problems({{"fit.no_rows",
                            "no row of the files can teach anything",
                            {},
                            "servecast backtest tells why, row by row"}});

  std::vector<const fit::FitRow*> all;
  for (const fit::FitRow& row : fit.rows) all.push_back(&row);
  const bool adds = command.start == "fitted";
  const fit::FitOptions options{.prior = adds ? fit::Prior::Fitted : fit::Prior::Tables,
                                .threads = threads};
  catalog::StepModel fitted = fit::fit_model(all, **base, options);
  const std::vector<fit::Times> seen = times_by(fitted, fit.rows);
  std::string out = left_out_lines(fit, *rows);
  out += fmt::format("\n{:<34} {:>5} {:>17} {:>17}\n", "errors in percent: MAPE/median/p90", "rows",
                     "TPOT", "TTFT");
  out += errors_line("before", fit.rows, times_by(**base, fit.rows));
  out += errors_line("after", fit.rows, seen);
  if (command.folds > 1) {
    const auto folds = fit::folds_of(fit.rows, command.folds);
    const auto unseen = fit::cross_validated(fit.rows, folds, **base, options);
    out += errors_line(fmt::format("groups not seen, {} folds", command.folds), fit.rows, unseen);
    if (!adds) fitted.intervals = fit::intervals_of(fit.rows, folds, seen, unseen);
  }
  std::vector<std::string> groups = fit::groups_of(fit.rows);
  if (adds) groups.insert(groups.end(), fitted.groups.begin(), fitted.groups.end());
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  fitted.groups = std::move(groups);
  if (!command.source.empty()) fitted.source = command.source;
  fitted.licence = command.licence;
  out += fmt::format("{} rows of {} groups, {} effects\n", fit.rows.size(), fitted.groups.size(),
                     fitted.effects.size());
  if (!command.output.empty()) {
    if (const auto written = write_result_file(command.output, catalog::to_json(fitted)); !written)
      return print_problems(written.error());
  }
  return print_result(out);
}

}  // namespace

void add_fit(CLI::App& root, Action& chosen) {
  const auto command = std::make_shared<FitCommand>();
  CLI::App& app = *root.add_subcommand(
      "fit", "Learn the coefficients of pass times from files of measured runs");
  app.add_option("measured", command->files, "CSV files as backtest reads them")->required();
  app.add_option("-o,--output", command->output,
                 "Where the fitted step model goes, replacing that file; without it errors alone")
      ->type_name("PATH");
  app.add_option("--base", command->base, "A step model to start from; without it the program's")
      ->type_name("PATH");
  take_one_of(
      *app.add_option("--start", command->start,
                      "fitted: add the measurements to those that the base has learnt from; "
                      "tables: learn anew from its priors")
           ->capture_default_str(),
      "fitted|tables");
  app.add_option("--cv", command->folds,
                 "Also tell the errors of groups that a fit has not seen, in so many folds")
      ->type_name("K")
      ->check(CLI::Range(2U, 100U).description(""));
  app.add_option("--mapping", command->mapping, "As of backtest")->type_name("PATH");
  app.add_option("--nextn", command->nextn, "As of backtest")
      ->type_name("N")
      ->check(CLI::Range(0U, 5U).description(""));
  app.add_option("--source", command->source, "Where the measurements come from, for the file");
  app.add_option("--licence", command->licence, "Of what was learnt from them, for the file")
      ->capture_default_str();
  app.add_option("--threads", command->threads, "Runs at a time; all processors if not given")
      ->type_name("N")
      ->check(CLI::Range(1U, 1024U).description(""));
  app.add_flag("-q,--quiet", command->quiet, "No progress on stderr");
  app.footer(
      "Examples:\n"
      "  servecast fit mine.csv -o mine.json\n"
      "  servecast predict -c run.yaml --set "
      "engine.workers.aggregated.timing.step_model=mine.json\n"
      "  servecast fit served.csv --start tables --cv 5");
  app.callback([command, &chosen] {
    chosen = [command](const std::vector<std::string>&) { return run_fit(*command); };
  });
}

}  // namespace servecast::cli
