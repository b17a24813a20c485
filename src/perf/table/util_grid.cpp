// SPDX-License-Identifier: Apache-2.0
#include "perf/table/util_grid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"

namespace servecast::perf {
namespace {

double logarithm(double value) {
  return std::log(std::max(value, 1e-9));
}

}  // namespace

UtilGrid::UtilGrid(std::size_t axes, std::vector<Point> points)
    : axes_(axes), points_(std::move(points)) {
  for (std::size_t a = 0; a < axes_; ++a) {
    double least = std::numeric_limits<double>::infinity();
    double most = -least;
    for (Point& point : points_) {
      point.at[a] = logarithm(point.at[a]);
      least = std::min(least, point.at[a]);
      most = std::max(most, point.at[a]);
    }
    least_[a] = least;
    span_[a] = most - least;
    for (Point& point : points_)
      point.at[a] = span_[a] > 0.0 ? (point.at[a] - least) / span_[a] : 0.0;
  }
}

double UtilGrid::at(std::span<const double> query) const {
  SERVECAST_CHECK(!points_.empty() && query.size() == axes_);
  std::array<double, 4> q{};
  for (std::size_t a = 0; a < axes_; ++a) {
    if (span_[a] > 0.0) q[a] = std::clamp((logarithm(query[a]) - least_[a]) / span_[a], 0.0, 1.0);
  }
  struct Near {
    double squared = std::numeric_limits<double>::infinity();
    double util = 0.0;
  };
  Near first, second;
  for (const Point& point : points_) {
    double squared = 0.0;
    for (std::size_t a = 0; a < axes_; ++a) squared += (point.at[a] - q[a]) * (point.at[a] - q[a]);
    if (squared < first.squared) {
      second = first;
      first = {squared, point.util};
    } else if (squared < second.squared) {
      second = {squared, point.util};
    }
  }
  if (first.squared == 0.0 || std::isinf(second.squared)) return first.util;
  const double near = 1.0 / std::sqrt(first.squared);
  const double far = 1.0 / std::sqrt(second.squared);
  return (near * first.util + far * second.util) / (near + far);
}

}  // namespace servecast::perf
