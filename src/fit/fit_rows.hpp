// SPDX-License-Identifier: Apache-2.0
// From judged rows to what a fit needs: each is run once, its passes are kept.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fit/hygiene.hpp"
#include "fit/row_case.hpp"
#include "fit/solver.hpp"

namespace servecast::fit {

struct FitRows {
  std::vector<FitRow> rows = {};  // in the order of the file
  // Of the rows given: index and why it teaches nothing. Rows that are not to be used are left out.
  std::vector<std::pair<std::size_t, std::string>> left_out = {};
};

struct FitRowsOptions {
  unsigned threads = 1;
  StepModelPointer step_model = {};  // nothing: the one in the program
  // As BacktestOptions::progress.
  std::function<void(std::uint64_t, std::uint64_t)> progress = {};
};

// The Use and Special rows whose TTFT or TPOT was measured.
FitRows fit_rows(const std::vector<JudgedRow>& judged, const FitRowsOptions& options);

// The value of Label::Source.
std::string_view source_of(Protocol protocol);

}  // namespace servecast::fit
