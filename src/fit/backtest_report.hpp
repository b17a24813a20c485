// SPDX-License-Identifier: Apache-2.0
// A back-test as the user reads it. Equal results give equal bytes. Keys, columns and units:
// docs/reference/backtest.md.
#pragma once

#include <string>

#include "fit/backtest.hpp"

namespace servecast::fit {

// What stands on the terminal: the errors, by group, what was left out, and with `rows` a line a
// row before that.
std::string backtest_table(const Backtest& backtest, bool rows);
// One JSON object, indented, newline at the end.
std::string backtest_json(const Backtest& backtest);
// A line a row, with a header (RFC 4180, LF).
std::string backtest_csv(const Backtest& backtest);
// The errors and what was left out, as Markdown tables.
std::string backtest_markdown(const Backtest& backtest);
// One page without anything from outside: predicted against measured on logarithmic axes, for TTFT
// and TPOT, a dot a row with its id.
std::string backtest_html(const Backtest& backtest);

}  // namespace servecast::fit
