// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "cli/bench_case.hpp"
#include "cli/child_process.hpp"
#include "cli/commands.hpp"
#include "cli/terminal.hpp"
#include "cli/tree.hpp"
#include "report/value.hpp"

namespace servecast::cli {
namespace {

struct BenchOptions {
  std::vector<std::string> names;
  unsigned runs = 5;
  std::string compare;
  std::string cases;
  std::string format = "table";
  bool stepping = false;
};

// The runs of one program on one case, or why there are none.
struct Runs {
  std::vector<BenchFigures> figures;
  std::string skipped;
};

struct Measured {
  std::string name;
  Runs ours;
  std::optional<Runs> theirs;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

template <class Member>
double median_of(const Runs& runs, Member member) {
  std::vector<double> values;
  for (const BenchFigures& figures : runs.figures)
    values.push_back(static_cast<double>(figures.*member));
  return median(std::move(values));
}

Result<void> run_once(const std::string& program, const BenchCase& one, bool stepping, Runs& into) {
  std::vector<std::string> arguments{program, "bench-child", one.path};
  if (stepping) arguments.emplace_back("--stepping");
  const Result<std::string> text = output_of(arguments);
  if (!text) return tl::unexpected(text.error());
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (json.is_object() && json.contains("skipped")) {
    into.skipped = json["skipped"].get<std::string>();
    return {};
  }
  try {
    into.figures.push_back({json.at("requests"), json.at("output_tokens"), json.at("passes"),
                            json.at("loop_seconds"), json.at("cpu_seconds"),
                            json.at("peak_rss_bytes"), json.at("fingerprint")});
  } catch (const nlohmann::json::exception&) {
    return fail({"bench.child",
                 fmt::format("{} printed no figures for {}", program, one.name),
                 {},
                 "",
                 Fault::Execution});
  }
  if (into.figures.back().fingerprint != into.figures.front().fingerprint)
    return fail({"bench.not_deterministic",
                 fmt::format("{}: two runs of {} differ", one.name, program),
                 {},
                 "",
                 Fault::Execution});
  return {};
}

// Interleaves the two programs, so that a slow minute of the machine meets both.
Result<Measured> measure(const BenchCase& one, const BenchOptions& options,
                         const std::string& self) {
  Measured measured{.name = one.name, .ours = {}, .theirs = {}};
  if (!options.compare.empty()) measured.theirs.emplace();
  for (unsigned i = 0; i < options.runs; ++i) {
    Result<void> done = run_once(self, one, options.stepping, measured.ours);
    if (done && measured.theirs)
      done = run_once(options.compare, one, options.stepping, *measured.theirs);
    if (!done) return tl::unexpected(std::move(done.error()));
    if (!measured.ours.skipped.empty()) break;
  }
  return measured;
}

// Their time divided by ours, run by run: above 1 means that we are faster.
std::vector<double> ratios(const Measured& measured) {
  std::vector<double> all;
  if (!measured.theirs) return all;
  const std::size_t pairs = std::min(measured.ours.figures.size(), measured.theirs->figures.size());
  for (std::size_t i = 0; i < pairs; ++i)
    all.push_back(measured.theirs->figures[i].loop_seconds / measured.ours.figures[i].loop_seconds);
  std::sort(all.begin(), all.end());
  return all;
}

report::Object comparison(const Measured& measured) {
  const std::vector<double> all = ratios(measured);
  if (all.empty()) return {{"skipped", measured.theirs->skipped}};
  return {{"loop_seconds", median_of(*measured.theirs, &BenchFigures::loop_seconds)},
          {"ratio_median", median(all)},
          {"ratio_min", all.front()},
          {"ratio_max", all.back()},
          {"same_fingerprint", measured.theirs->figures.front().fingerprint ==
                                   measured.ours.figures.front().fingerprint}};
}

report::Value json_of(const Measured& measured) {
  if (!measured.ours.skipped.empty())
    return report::Object{{"case", measured.name}, {"skipped", measured.ours.skipped}};
  const BenchFigures& first = measured.ours.figures.front();
  const double loop = median_of(measured.ours, &BenchFigures::loop_seconds);
  report::Object object{
      {"case", measured.name},
      {"requests", first.requests},
      {"output_tokens", first.output_tokens},
      {"passes", first.passes},
      {"loop_seconds", loop},
      {"cpu_seconds", median_of(measured.ours, &BenchFigures::cpu_seconds)},
      {"peak_rss_bytes",
       static_cast<std::uint64_t>(median_of(measured.ours, &BenchFigures::peak_rss_bytes))},
      {"ns_per_output_token",
       first.output_tokens == 0
           ? report::Value()
           : report::Value(loop * 1e9 / static_cast<double>(first.output_tokens))},
      {"requests_per_second",
       loop == 0 ? report::Value() : report::Value(static_cast<double>(first.requests) / loop)},
      {"fingerprint", first.fingerprint}};
  if (measured.theirs) object.push_back({"compare", comparison(measured)});
  return object;
}

std::string row_of(const Measured& measured) {
  if (!measured.ours.skipped.empty())
    return fmt::format("{:<22} skipped: {}\n", measured.name, measured.ours.skipped);
  const BenchFigures& first = measured.ours.figures.front();
  const double loop = median_of(measured.ours, &BenchFigures::loop_seconds);
  const double tokens = static_cast<double>(std::max<std::uint64_t>(first.output_tokens, 1));
  std::string row = fmt::format(
      "{:<22} {:>10} {:>10.4f} {:>10.2f} {:>14.0f} {:>9.1f}  {}", measured.name, first.requests,
      loop, loop * 1e9 / tokens, static_cast<double>(first.requests) / loop,
      median_of(measured.ours, &BenchFigures::peak_rss_bytes) / 1e6, first.fingerprint);
  const std::vector<double> all = ratios(measured);
  if (!all.empty())
    row += fmt::format("  x{:.3f} ({:.3f} to {:.3f}){}", median(all), all.front(), all.back(),
                       measured.theirs->figures.front().fingerprint == first.fingerprint
                           ? ""
                           : " DIFFERENT RESULTS");
  return row + "\n";
}

Exit bench(const BenchOptions& options) {
  const Result<std::vector<BenchCase>> cases = chosen_cases(options.cases, options.names);
  if (!cases) return print_problems(cases.error());
  std::error_code ignored;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  const bool json = options.format == "json";
  if (!json) {
    const std::string header =
        fmt::format("{:<22} {:>10} {:>10} {:>10} {:>14} {:>9}  {}{}\n", "case", "requests",
                    "loop s", "ns/token", "requests/s", "RSS MB", "fingerprint",
                    options.compare.empty() ? "" : "       other's time / ours (spread)");
    if (const Exit printed = print_result(header); printed != Exit::Success) return printed;
  }
  report::Array objects;
  for (const BenchCase& one : *cases) {
    const Result<Measured> measured = measure(one, options, self);
    if (!measured) return print_problems(measured.error());
    objects.push_back(json_of(*measured));
    if (json) continue;
    if (const Exit printed = print_result(row_of(*measured)); printed != Exit::Success)
      return printed;
  }
  if (!json) return Exit::Success;
  return print_result(report::to_json(std::move(objects), report::Layout::Indented) + "\n");
}

}  // namespace

void add_bench(CLI::App& root, Action& chosen) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App& app = *root.add_subcommand("bench", "Time the program on its benchmark cases");
  app.add_option("names", options->names, "Cases, named as their files; all when none is named")
      ->type_name("NAME...");
  app.add_option("--runs", options->runs,
                 "Runs of each case, each in a fresh process on one CPU; medians are shown")
      ->type_name("N")
      ->check(CLI::Range(1, 1000).description(""))
      ->capture_default_str();
  app.add_option("--compare", options->compare,
                 "Run this other servecast in turns with this one and print the ratios")
      ->type_name("BINARY")
      ->check(CLI::Validator(CLI::ExistingFile).description(""));
  app.add_option("--cases", options->cases, "The folder of the cases; bench/cases by default")
      ->type_name("DIR");
  take_one_of(
      *app.add_option("--format", options->format, "What stdout shows")->capture_default_str(),
      "table|json");
  app.add_flag("--stepping", options->stepping,
               "Compute every pass one by one: figures of the reference mode");
  app.footer(
      "Examples:\n"
      "  servecast bench dense-vllm long-decode\n"
      "  servecast bench w3-mooncake --compare ../before/build/release/bin/servecast --runs 9");
  app.callback([options, &chosen] {
    chosen = [options](const std::vector<std::string>&) { return bench(*options); };
  });
}

}  // namespace servecast::cli
