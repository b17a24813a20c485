// SPDX-License-Identifier: Apache-2.0
// Replays every row that can be replayed and keeps what was predicted beside what was measured.
//
//   Backtest done = run_backtest(judge(rows, shipped_rules(), {}), {.threads = 2});
//   print(backtest_table(done));
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fit/hygiene.hpp"
#include "fit/trajectory.hpp"

namespace servecast::fit {

struct RowResult {
  JudgedRow judged = {};                // with the final status
  std::string model = {}, system = {};  // names of the cards; as filed where there are none
  std::uint64_t gpus = 0;               // 0: not known
  std::string widths = {};              // "tp8 ep8", those that ran
  std::string repaired = {};
  std::optional<Figures> predicted = {};
};

struct Backtest {
  std::vector<RowResult> rows = {};  // in the order of the file
};

struct BacktestOptions {
  unsigned threads = 1;
  // Called from any thread, one at a time, with (rows done, rows in all).
  std::function<void(std::uint64_t, std::uint64_t)> progress = {};
};

// The result does not depend on the number of threads.
Backtest run_backtest(std::vector<JudgedRow> rows, const BacktestOptions& options);

// One row, as run_backtest does it.
RowResult run_judged(JudgedRow judged);

}  // namespace servecast::fit
