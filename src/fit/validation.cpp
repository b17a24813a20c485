// SPDX-License-Identifier: Apache-2.0
#include "fit/validation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace servecast::fit {
namespace {

std::vector<const FitRow*> outside(const std::vector<FitRow>& rows,
                                   const std::vector<std::size_t>& folds, std::size_t fold) {
  std::vector<const FitRow*> others;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (folds[i] != fold) others.push_back(&rows[i]);
  }
  return others;
}

std::size_t count_of(const std::vector<std::size_t>& folds) {
  return folds.empty() ? 0 : *std::max_element(folds.begin(), folds.end()) + 1;
}

Times predicted_by(const catalog::StepModel& model, const FitRow& row) {
  return predicted(row, perf::Coefficients(model, row.labels));
}

// Rows that differ in concurrency alone.
std::string curve_of(const FitRow& row) {
  const perf::Parallelism& p = row.placement.parallelism;
  return fmt::format("{} {} {} {} {} {} {}", row.placement.engine_version, p.tensor,
                     p.attention_data, p.moe_tensor, p.moe_expert,
                     std::lround(row.features.load.input_tokens / 64.0), row.curve_output_tokens);
}

std::map<std::string, std::vector<std::size_t>> rows_by_group(const std::vector<FitRow>& rows) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) groups[rows[i].group].push_back(i);
  return groups;
}

// The rows of a group's longest curve.
std::set<std::size_t> known_curve(const std::vector<FitRow>& rows,
                                  const std::vector<std::size_t>& group) {
  std::map<std::string, std::set<std::size_t>> curves;
  for (const std::size_t i : group) curves[curve_of(rows[i])].insert(i);
  const auto longest = std::max_element(
      curves.begin(), curves.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  return longest->second;
}

// The first `count` words.
std::string_view words(std::string_view text, int count) {
  std::size_t end = 0;
  while (count-- > 0 && end != std::string_view::npos) end = text.find(' ', end + 1);
  return text.substr(0, end);
}
std::string_view word(std::string_view text, int index) {
  if (index > 0) text.remove_prefix(std::min(words(text, index).size() + 1, text.size()));
  return words(text, 1);
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::min(rank, values.size()) - 1];
}

}  // namespace

std::vector<std::size_t> folds_of(const std::vector<FitRow>& rows, std::size_t folds) {
  const auto groups = rows_by_group(rows);
  std::vector<std::pair<std::size_t, std::string>> order;
  for (const auto& [name, members] : groups) order.emplace_back(members.size(), name);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::size_t> load(folds), fold_of(rows.size());
  for (const auto& [size, name] : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += size;
    for (const std::size_t i : groups.at(name))
      fold_of[i] = static_cast<std::size_t>(least - load.begin());
  }
  return fold_of;
}

std::vector<Times> cross_validated(const std::vector<FitRow>& rows,
                                   const std::vector<std::size_t>& folds,
                                   const catalog::StepModel& model, const FitOptions& options) {
  std::vector<Times> times(rows.size());
  for (std::size_t fold = 0; fold < count_of(folds); ++fold) {
    const catalog::StepModel fitted = fit_model(outside(rows, folds, fold), model, options);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (folds[i] == fold) times[i] = predicted_by(fitted, rows[i]);
    }
  }
  return times;
}

std::vector<Times> calibrated(const std::vector<FitRow>& rows,
                              const std::vector<std::size_t>& folds,
                              const catalog::StepModel& model, const FitOptions& options) {
  std::vector<Times> times(rows.size());
  for (std::size_t fold = 0; fold < count_of(folds); ++fold) {
    const catalog::StepModel base = fit_model(outside(rows, folds, fold), model, options);
    for (const auto& [name, group] : rows_by_group(rows)) {
      if (folds[group.front()] != fold) continue;
      const std::set<std::size_t> known = known_curve(rows, group);
      std::vector<const FitRow*> curve;
      for (const std::size_t i : known) curve.push_back(&rows[i]);
      FitOptions add = options;
      add.prior = Prior::Fitted;
      const catalog::StepModel own = fit_model(curve, base, add);
      for (const std::size_t i : group) {
        if (!known.contains(i)) times[i] = predicted_by(own, rows[i]);
      }
    }
  }
  return times;
}

std::string_view to_string(Support support) {
  switch (support) {
    case Support::Group:
      return "group";
    case Support::EngineAndNetwork:
      return "engine_and_network";
    case Support::Engine:
      return "engine";
    case Support::None:
      break;
  }
  return "none";
}

Support support_of(const catalog::LabelValues& labels, const std::string& group,
                   const std::vector<std::string>& groups) {
  Support best = Support::None;
  for (const std::string& known : groups) {
    if (known == group) return Support::Group;
    if (word(known, 2) != labels[catalog::Label::Engine]) continue;
    const bool network = word(known, 0) == labels[catalog::Label::Network];
    best = std::min(best, network ? Support::EngineAndNetwork : Support::Engine);
  }
  return best;
}

const catalog::Interval* interval_of(const catalog::StepModel& model, Support support) {
  const auto found =
      std::find_if(model.intervals.begin(), model.intervals.end(),
                   [&](const auto& each) { return each.support == to_string(support); });
  return found != model.intervals.end() ? &*found : nullptr;
}

std::vector<std::string> groups_of(const std::vector<FitRow>& rows) {
  std::vector<std::string> names;
  for (const auto& [name, members] : rows_by_group(rows)) names.push_back(name);
  return names;
}

std::vector<catalog::Interval> intervals_of(const std::vector<FitRow>& rows,
                                            const std::vector<std::size_t>& folds,
                                            const std::vector<Times>& seen,
                                            const std::vector<Times>& unseen) {
  constexpr double kShare = 0.9;
  // Nobody measured there: twice what an unseen group of a known engine misses.
  constexpr double kUnknown = 2.0;
  std::map<Support, std::pair<std::vector<double>, std::vector<double>>> misses;
  const auto add = [&](Support support, const FitRow& row, const Times& times) {
    auto& [ttft, tpot] = misses[support];
    if (row.ttft_ms) ttft.push_back(std::abs(std::log(times.ttft_ms / *row.ttft_ms)));
    if (row.tpot_ms) tpot.push_back(std::abs(std::log(times.tpot_ms / *row.tpot_ms)));
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    add(Support::Group, rows[i], seen[i]);
    std::vector<std::string> others;
    for (std::size_t j = 0; j < rows.size(); ++j) {
      if (folds[j] != folds[i] && (others.empty() || others.back() != rows[j].group))
        others.push_back(rows[j].group);
    }
    add(support_of(rows[i].labels, rows[i].group, others), rows[i], unseen[i]);
  }
  std::vector<catalog::Interval> intervals;
  for (const Support support : {Support::Group, Support::EngineAndNetwork, Support::Engine}) {
    const auto& [ttft, tpot] = misses[support];
    // What is farther away is not known better, whatever the few rows there say.
    const catalog::Interval nearer =
        intervals.empty() ? catalog::Interval{.support = {}, .ttft = 0.0, .tpot = 0.0}
                          : intervals.back();
    intervals.push_back({.support = std::string(to_string(support)),
                         .ttft = std::max(quantile(ttft, kShare), nearer.ttft),
                         .tpot = std::max(quantile(tpot, kShare), nearer.tpot)});
  }
  const catalog::Interval& engine = intervals.back();
  intervals.push_back({.support = std::string(to_string(Support::None)),
                       .ttft = engine.ttft * kUnknown,
                       .tpot = engine.tpot * kUnknown});
  return intervals;
}

}  // namespace servecast::fit
