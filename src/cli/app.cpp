// SPDX-License-Identifier: Apache-2.0
#include "cli/app.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "base/text.hpp"
#include "cli/suggest.hpp"
#include "cli/terminal.hpp"

namespace servecast::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  servecast predict -c examples/trace.yaml\n"
    "  servecast predict -c run.yaml --set engine.workers.aggregated.parallelism.replicas=4\n"
    "  servecast predict --quick Qwen/Qwen3-32B h200_sxm tensor=2 concurrency=64\n"
    "  servecast explain -c run.yaml\n"
    "\n"
    "Exit codes: 0 success, 1 the run failed, 2 wrong command line or input, 3 a resource of this\n"
    "machine is missing, 70 a bug of ours, 130 interrupted.\n"
    "Environment: SERVECAST_DATA names the folder that data: stands for in paths.";

}  // namespace

std::unique_ptr<CLI::App> make_app(Action& chosen) {
  auto app = std::make_unique<CLI::App>(
      "Predicts how an LLM serving deployment behaves, without a GPU.", "servecast");
  app->set_version_flag("--version", std::string("servecast ") + SERVECAST_VERSION,
                        "Print the version and exit");
  app->set_help_flag("-h,--help", "Print this help and exit");
  app->require_subcommand(1);
  add_predict(*app, chosen);
  add_estimate(*app, chosen);
  add_explain(*app, chosen);
  add_events(*app, chosen);
  add_bench(*app, chosen);
  add_backtest(*app, chosen);
  add_fit(*app, chosen);
  add_bench_child(*app, chosen);
  add_card(*app, chosen);
  add_perfdata(*app, chosen);
  add_completion(*app, chosen);
  add_reference(*app, chosen);
  app->footer(kExamples);  // after the subcommands, which would inherit it
  return app;
}

Exit run_command_line(const std::vector<std::string>& arguments) {
  Action chosen;
  const auto app = make_app(chosen);
  // CLI11 takes the arguments in reverse and without the program's name.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend() - 1);
  try {
    app->parse(reversed);
  } catch (const CLI::Success& asked) {
    // --help and --version: CLI11 knows which text belongs to which subcommand.
    std::ostringstream out;
    std::ostringstream error;
    app->exit(asked, out, error);
    return print_result(out.str());
  } catch (const CLI::ParseError& error) {
    const auto better = explain_arguments(*app, arguments);
    print_diagnostic(printable(better.value_or(error.what())));
    print_diagnostic("see servecast --help");
    return Exit::Input;
  }
  return chosen(arguments);
}

}  // namespace servecast::cli
