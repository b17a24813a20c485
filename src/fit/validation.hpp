// SPDX-License-Identifier: Apache-2.0
// How good is a fit on groups that it has not seen, and on the rest of a group of which it has seen
// one curve? (accuracy-notes.md 5, 7)
#pragma once

#include <cstddef>
#include <vector>

#include "fit/solver.hpp"

namespace servecast::fit {

// Folds of rows by whole groups, so that the rows of a group are never on both sides. Groups go,
// largest first, to the fold that has fewest rows; equal ones in order of their names.
std::vector<std::size_t> folds_of(const std::vector<FitRow>& rows, std::size_t folds);

// Each row as predicted by a fit to the other folds.
std::vector<Times> cross_validated(const std::vector<FitRow>& rows,
                                   const std::vector<std::size_t>& folds,
                                   const catalog::StepModel& model, const FitOptions& options);

// Each row as predicted when the rest of the other groups and one curve of its own group are known:
// the curve (equal widths, lengths, version) with most rows, the first of several. Rows of that
// curve are not predicted (both times 0).
std::vector<Times> calibrated(const std::vector<FitRow>& rows,
                              const std::vector<std::size_t>& folds,
                              const catalog::StepModel& model, const FitOptions& options);

// How near the measurements of a fit are to a deployment.
enum class Support : unsigned char { Group, EngineAndNetwork, Engine, None };
std::string_view to_string(Support support);  // "group", "engine_and_network", ...
Support support_of(const catalog::LabelValues& labels, const std::string& group,
                   const std::vector<std::string>& groups);

// The model's interval for that support; null when it states none.
const catalog::Interval* interval_of(const catalog::StepModel& model, Support support);

// Groups of the rows, in order of their names.
std::vector<std::string> groups_of(const std::vector<FitRow>& rows);

// Half widths of 90 % intervals from what a fit misses: of rows that it has seen for Group, of rows
// that it has not seen for the others.
std::vector<catalog::Interval> intervals_of(const std::vector<FitRow>& rows,
                                            const std::vector<std::size_t>& folds,
                                            const std::vector<Times>& seen,
                                            const std::vector<Times>& unseen);

}  // namespace servecast::fit
