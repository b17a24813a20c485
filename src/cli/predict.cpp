// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <utility>

#include "cli/commands.hpp"
#include "cli/host.hpp"
#include "cli/input_options.hpp"
#include "cli/prediction.hpp"
#include "cli/publish.hpp"
#include "cli/terminal.hpp"
#include "cli/tree.hpp"
#include "config/schema.hpp"
#include "config/setting.hpp"
#include "report/artifacts.hpp"

namespace servecast::cli {
namespace {

struct PredictOptions {
  InputOptions input;
  std::string output_dir = "./servecast-output";
  bool overwrite = false;
  std::string format = "table";
  Capture capture;
  std::string kv_events_format = "jsonl";
  bool stepping = false;
  bool dry_run = false;
  bool print_schema = false;
  bool print_config = false;
  bool quiet = false;
};

// vLLM wrote arrays until mid-2026 and maps since; whether the batch around its events became one
// too differs between reports, so that readers exist for each.
std::optional<cache::KvWireForm> wire_form(const std::string& format) {
  using cache::KvForm;
  if (format == "msgpack-array") return cache::KvWireForm{KvForm::Array, KvForm::Array};
  if (format == "msgpack-map") return cache::KvWireForm{KvForm::Map, KvForm::Map};
  if (format == "msgpack-mixed") return cache::KvWireForm{KvForm::Array, KvForm::Map};
  return std::nullopt;
}

std::optional<std::uint64_t> seed_of(const config::Config& config) {
  if (const auto* synthetic = std::get_if<workload::SyntheticSource>(&config.traffic.source))
    return synthetic->seed;
  if (const auto* session = std::get_if<workload::SessionSource>(&config.traffic.source))
    return session->seed;
  return std::nullopt;
}

report::Manifest manifest_of(const Prepared& prepared, const std::vector<std::string>& argv) {
  report::Manifest manifest;
  manifest.tool_version = SERVECAST_VERSION;
  manifest.argv = argv;
  manifest.seed = seed_of(prepared.config);
  manifest.host = report::host_facts();
  const workload::Notes& notes = prepared.workload.notes();
  if (!notes.source_sha256.empty()) manifest.data = {{"trace_sha256", notes.source_sha256}};
  return manifest;
}

report::OutputOptions output_of(const PredictOptions& options) {
  return {.path = options.output_dir, .overwrite = options.overwrite};
}

std::string path_in(const std::string& directory, const char* name) {
  return directory + (directory.ends_with('/') ? "" : "/") + name;
}

Exit show(const PredictOptions& options, const Prepared& prepared, const Prediction& prediction,
          const report::HostCost& cost) {
  if (options.format == "json") return print_result(report::summary_json(prediction.report) + "\n");
  if (options.format == "canonical") {
    return print_result(report::canonical_line(prediction.report, *prediction.collector,
                                               names_of(prepared.workload)));
  }
  return print_result(fmt::format("{}\n{}Full report: {}\n", plan_line(prepared),
                                  report::table(prediction.report, cost),
                                  path_in(options.output_dir, "prediction.json")));
}

Result<Prediction> run_with_progress(const PredictOptions& options, const Prepared& prepared) {
  Progress progress(options.quiet);
  return run(prepared,
             {.capture = options.capture, .stepping = options.stepping, .progress = &progress});
}

Exit simulate(const PredictOptions& options, const Prepared& prepared,
              const std::vector<std::string>& argv) {
  report::Manifest manifest = manifest_of(prepared, argv);
  manifest.started_at = utc_now();
  const auto start = std::chrono::steady_clock::now();
  Result<Prediction> prediction = run_with_progress(options, prepared);
  if (!prediction) return print_problems(prediction.error());
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
  const report::HostCost cost{.wall_time_ms = wall.count(), .peak_rss_bytes = peak_rss_bytes()};
  manifest.ended_at = utc_now();
  manifest.cost = report::host_cost(prediction->report, cost);
  const Result<void> published =
      publish(output_of(options), prepared, *prediction, options.capture, manifest);
  if (!published) return print_problems(published.error());
  return show(options, prepared, *prediction, cost);
}

Exit predict(const PredictOptions& options, const std::vector<std::string>& argv) {
  if (options.print_schema) return print_result(config::json_schema());
  Result<config::Config> config = read_config(options.input);
  if (!config) return print_problems(config.error());
  if (options.print_config) return print_result(config::to_yaml(config->settings));
  // A wrong directory is told before a long trace is read.
  const report::OutputDirectory directory(output_of(options));
  if (const Result<void> usable = directory.check(); !usable) return print_problems(usable.error());
  const Result<Prepared> prepared = prepare(std::move(*config));
  if (!prepared) return print_problems(prepared.error());
  if (!options.quiet) {
    for (const std::string& line : warnings(*prepared)) print_warning(line);
  }
  if (options.dry_run) return print_result(plan_line(*prepared) + "\n");
  return simulate(options, *prepared, argv);
}

}  // namespace

void add_predict(CLI::App& root, Action& chosen) {
  const auto options = std::make_shared<PredictOptions>();
  CLI::App& app = *root.add_subcommand(
      "predict", "Replay one configuration and report latencies and throughput");
  add_input_options(app, options->input);
  app.add_option("--output-dir", options->output_dir, "Where the artifacts go")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_flag("--overwrite", options->overwrite,
               "Replace artifacts of an earlier run in that directory");
  take_one_of(
      *app.add_option(
              "--format", options->format,
              "What stdout shows; files are the same; canonical: one line to compare runs by")
           ->capture_default_str(),
      "table|json|canonical");
  app.add_flag("--capture-per-request", options->capture.requests,
               "Also write requests.jsonl, one row a request");
  CLI::Option* events = app.add_flag("--capture-kv-events", options->capture.kv_events,
                                     "Also write every KV cache event");
  take_one_of(*app.add_option("--kv-events-format", options->kv_events_format,
                              "kv-events.jsonl, a row an event, or kv-events.msgpack, batches as "
                              "vLLM publishes them: arrays, maps, or arrays of map events")
                   ->capture_default_str()
                   ->needs(events),
              "jsonl|msgpack-array|msgpack-map|msgpack-mixed");
  app.add_flag("--capture-passes", options->capture.passes,
               "Also write passes.jsonl, one row a forward pass");
  app.add_flag("--stepping", options->stepping,
               "Compute every pass one by one: the slow reference, same results");
  app.add_flag("--dry-run", options->dry_run,
               "Check everything, print what would run, write nothing");
  app.add_flag("--print-config", options->print_config,
               "Print the resolved configuration and exit");
  app.add_flag("--print-schema", options->print_schema,
               "Print the JSON Schema of the configuration and exit");
  app.add_flag("-q,--quiet", options->quiet, "No warnings and no progress on stderr");
  app.footer(
      "Examples:\n"
      "  servecast predict -c examples/trace.yaml\n"
      "  servecast predict -c run.yaml --set traffic.load.concurrency=64 --format json\n"
      "  servecast predict --quick Qwen/Qwen3-32B h200_sxm tensor=2 concurrency=64 input=4000 "
      "output=500\n"
      "  servecast predict --quick Qwen/Qwen3-8B l4 rate=2 --print-config > run.yaml\n"
      "\n"
      "Exit code 2 also means that the model does not fit into the GPUs: needed and available "
      "bytes are\n"
      "printed.");
  app.callback([options, &chosen] {
    options->capture.kv_events_wire = wire_form(options->kv_events_format);
    chosen = [options](const std::vector<std::string>& arguments) {
      return predict(*options, arguments);
    };
  });
}

}  // namespace servecast::cli
