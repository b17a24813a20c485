// SPDX-License-Identifier: Apache-2.0
// The subcommands, one file each. Adding one declares its options and, when it is the one that the
// user chose, sets `chosen` to what it does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/exit_code.hpp"

namespace CLI {
class App;
}

namespace servecast::cli {

// Takes the whole command line, for the manifest.
using Action = std::function<Exit(const std::vector<std::string>& arguments)>;

void add_predict(CLI::App& root, Action& chosen);
void add_estimate(CLI::App& root, Action& chosen);
void add_explain(CLI::App& root, Action& chosen);
void add_events(CLI::App& root, Action& chosen);
void add_bench(CLI::App& root, Action& chosen);
void add_backtest(CLI::App& root, Action& chosen);
void add_fit(CLI::App& root, Action& chosen);
void add_bench_child(CLI::App& root, Action& chosen);  // hidden: one timed run
void add_card(CLI::App& root, Action& chosen);         // hidden: a card of a config.json
void add_perfdata(CLI::App& root, Action& chosen);
void add_completion(CLI::App& root, Action& chosen);
void add_reference(CLI::App& root, Action& chosen);  // hidden: manual page and reference pages

}  // namespace servecast::cli
