// SPDX-License-Identifier: Apache-2.0
// One timed run in a process of its own, pinned to one CPU: prints one JSON object.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "cli/commands.hpp"
#include "cli/host.hpp"
#include "cli/prediction.hpp"
#include "cli/terminal.hpp"
#include "report/value.hpp"

namespace servecast::cli {
namespace {

struct ChildOptions {
  std::string path;
  bool stepping = false;
};

Exit print_object(const report::Object& object) {
  return print_result(report::to_json(object, report::Layout::Compact) + "\n");
}

// A case that this program or this machine cannot run is no failure.
Exit skip(const std::string& reason) {
  return print_object({{"skipped", reason}});
}

bool says_why_not(const Problem& problem) {
  return problem.code == "config.unsupported" || problem.code == "config.no_data" ||
         problem.code == "model.unknown";
}

std::uint64_t count_of(const report::Report& report, std::string_view key) {
  const report::Value* value = report::find(report.summary, key);
  const auto number = value == nullptr ? std::nullopt : value->number();
  return static_cast<std::uint64_t>(number.value_or(0));
}

Exit measure(const ChildOptions& options) {
  pin_to_one_cpu();
  Result<config::Config> config =
      config::read({.path = options.path, .text = {}, .sets = {}, .seed = {}});
  if (!config && says_why_not(config.error().front())) return skip(config.error().front().message);
  if (!config) return print_problems(config.error());
  if (const auto* trace = std::get_if<workload::TraceSource>(&config->traffic.source)) {
    std::error_code ignored;
    if (!std::filesystem::exists(trace->path, ignored))
      return skip("the data is missing: " + trace->path);
  }
  const Result<Prepared> prepared = prepare(std::move(*config));
  if (!prepared && says_why_not(prepared.error().front()))
    return skip(prepared.error().front().message);
  if (!prepared) return print_problems(prepared.error());

  const double cpu_before = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  const Result<Prediction> prediction =
      run(*prepared, {.capture = {}, .stepping = options.stepping});
  const std::chrono::duration<double> loop = std::chrono::steady_clock::now() - start;
  const double cpu = cpu_seconds() - cpu_before;
  if (!prediction) return print_problems(prediction.error());
  return print_object({{"requests", count_of(prediction->report, "completed_requests")},
                       {"output_tokens", count_of(prediction->report, "total_output_tokens")},
                       {"passes", prediction->totals.passes},
                       {"loop_seconds", loop.count()},
                       {"cpu_seconds", cpu},
                       {"peak_rss_bytes", peak_rss_bytes()},
                       {"fingerprint", *report::find(prediction->report.summary, "fingerprint")}});
}

}  // namespace

void add_bench_child(CLI::App& root, Action& chosen) {
  const auto options = std::make_shared<ChildOptions>();
  CLI::App& app =
      *root.add_subcommand("bench-child", "One timed run of a benchmark case")->group("");
  app.add_option("case", options->path, "The case's file")->required();
  app.add_flag("--stepping", options->stepping, "Compute every pass one by one");
  app.callback([options, &chosen] {
    chosen = [options](const std::vector<std::string>&) { return measure(*options); };
  });
}

}  // namespace servecast::cli
