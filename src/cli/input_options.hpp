// SPDX-License-Identifier: Apache-2.0
// The options that say which configuration to read, equal for all commands that read one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/problem.hpp"
#include "config/config.hpp"

namespace CLI {
class App;
}

namespace servecast::cli {

struct InputOptions {
  std::string config;
  std::vector<std::string> sets;
  std::string stack = "engine";
  std::string seed;                    // text; empty: keep the seeds
  std::vector<std::string> quick;      // MODEL HARDWARE [KEY=VALUE...]
  std::string quick_name = "--quick";  // the option that these words came with, for messages
};

void add_input_options(CLI::App& app, InputOptions& options);

// The configuration that the options name.
Result<config::Config> read_config(const InputOptions& options);

}  // namespace servecast::cli
