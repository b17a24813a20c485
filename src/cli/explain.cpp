// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/input_options.hpp"
#include "cli/terminal.hpp"
#include "config/schema.hpp"
#include "config/setting.hpp"

namespace servecast::cli {
namespace {

struct ExplainOptions {
  InputOptions input;
  std::string field;
};

Exit explain(const ExplainOptions& options) {
  if (!options.field.empty()) {
    const Result<std::string> text = config::field_help(options.field);
    return text ? print_result(*text) : print_problems(text.error());
  }
  const Result<config::Config> config = read_config(options.input);
  if (!config) return print_problems(config.error());
  for (const std::string& line : config->warnings) print_warning(line);
  return print_result(config::explained(config->settings));
}

}  // namespace

void add_explain(CLI::App& root, Action& chosen) {
  const auto options = std::make_shared<ExplainOptions>();
  CLI::App& app = *root.add_subcommand(
      "explain", "Print every value of a configuration and where it comes from");
  add_input_options(app, options->input);
  app.add_option("field", options->field,
                 "Tell about this field, such as traffic.load.type, instead");
  app.footer(
      "Examples:\n"
      "  servecast explain -c run.yaml\n"
      "  servecast explain -c run.yaml --set router.policy=random\n"
      "  servecast explain engine.workers.aggregated.kv_cache.capacity");
  app.callback([options, &chosen] {
    chosen = [options](const std::vector<std::string>&) { return explain(*options); };
  });
}

}  // namespace servecast::cli
