// SPDX-License-Identifier: Apache-2.0
#include "cli/input_options.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "cli/quick.hpp"

namespace servecast::cli {

void add_input_options(CLI::App& app, InputOptions& options) {
  app.add_option("-c,--config", options.config, "The configuration, a YAML file")
      ->type_name("PATH");
  app.add_option("--set", options.sets,
                 "Override one field, such as traffic.load.concurrency=8; may be repeated")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  app.add_option("--seed", options.seed, "Replace every seed of the configuration")->type_name("N");
  app.add_option("--stack", options.stack, "The simulated stack; this version has one: engine")
      ->type_name("NAME");
  app.add_option("--quick", options.quick,
                 "Make the configuration from a model, a system and a few settings")
      ->type_name("MODEL HARDWARE [KEY=VALUE...]")
      ->expected(1, 64);
}

Result<config::Config> read_config(const InputOptions& options) {
  if (options.stack != "engine")
    return fail({"cli.stack",
                 fmt::format("--stack {}: there is no such stack; this program has one: engine",
                             options.stack),
                 {},
                 ""});
  if (options.config.empty() == options.quick.empty())
    return fail({"cli.config",
                 options.quick.empty() ? "a configuration is required"
                                       : "--config and --quick go not together",
                 {},
                 "give --config PATH or --quick MODEL HARDWARE"});
  config::Input input{.path = options.config, .text = {}, .sets = {}, .seed = {}};
  if (options.quick.size() == 1)
    return fail({"cli.quick",
                 "--quick needs a model and a system",
                 {},
                 "such as --quick Qwen/Qwen3-32B h200_sxm"});
  if (!options.quick.empty()) {
    Result<config::Input> quick = quick_input(options.quick);
    if (!quick) return tl::unexpected(std::move(quick.error()));
    input = std::move(*quick);
    input.path = options.quick_name;
  }
  input.sets.insert(input.sets.end(), options.sets.begin(), options.sets.end());
  if (!options.seed.empty()) {
    std::uint64_t seed = 0;
    const char* last = options.seed.data() + options.seed.size();
    const auto end = std::from_chars(options.seed.data(), last, seed);
    if (end.ec != std::errc() || end.ptr != last)
      return fail(
          {"cli.seed",
           fmt::format("--seed must be a whole number from 0 to 2^64 - 1, not {}", options.seed),
           {},
           ""});
    input.seed = seed;
  }
  return config::read(input);
}

}  // namespace servecast::cli
