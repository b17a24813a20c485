// SPDX-License-Identifier: Apache-2.0
#include "perf/table/curve.hpp"

#include <algorithm>

namespace servecast::perf {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2.0;
}

}  // namespace

Curve::Curve(std::vector<CurvePoint> points, std::size_t tail)
    : points_(std::move(points)), tail_(tail) {
  std::stable_sort(points_.begin(), points_.end(),
                   [](const CurvePoint& a, const CurvePoint& b) { return a.at < b.at; });
  points_.erase(std::unique(points_.begin(), points_.end(),
                            [](const CurvePoint& a, const CurvePoint& b) { return a.at == b.at; }),
                points_.end());
}

std::optional<Sample> Curve::at(double x, const CurveBound& bound) const {
  if (points_.empty()) return std::nullopt;
  const auto high = std::partition_point(
      points_.begin(), points_.end(),
      [&](const CurvePoint& point) { return static_cast<double>(point.at) < x; });
  if (high != points_.end() && static_cast<double>(high->at) == x) return high->sample;
  if (high == points_.begin()) return beyond(x, bound, false);
  if (high == points_.end()) return beyond(x, bound, true);
  const CurvePoint& low = *(high - 1);
  const double weight = (x - static_cast<double>(low.at)) / static_cast<double>(high->at - low.at);
  return Sample{blended(low.sample.ms, high->sample.ms, weight),
                blended(low.sample.watts, high->sample.watts, weight)};
}

std::optional<Sample> Curve::beyond(double x, const CurveBound& bound, bool above) const {
  const std::size_t count = std::min(tail_, points_.size());
  const std::size_t first = above ? points_.size() - count : 0;
  std::vector<double> utils, watts;
  for (std::size_t i = first; i < first + count; ++i) {
    const double util = bound(static_cast<double>(points_[i].at)) / points_[i].sample.ms;
    if (usable(util)) utils.push_back(util);
    if (points_[i].sample.has_power()) watts.push_back(points_[i].sample.watts);
  }
  const double here = bound(x);
  if (utils.empty() || !usable(here)) return std::nullopt;
  Sample out{.ms = here / median(std::move(utils))};
  if (!watts.empty()) out.watts = median(std::move(watts));
  return out;
}

}  // namespace servecast::perf
