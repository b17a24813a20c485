// SPDX-License-Identifier: Apache-2.0
// What share of its physical bound an operator reaches, learned from its own measurements
// (perfmodel.md 5.1).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace servecast::perf {

class UtilGrid {
 public:
  struct Point {
    std::array<double, 4> at{};
    double util = 0.0;  // bound / measured
  };
  // In the order in which the table is read: it decides between equally near points.
  UtilGrid(std::size_t axes, std::vector<Point> points);

  // Of the two nearest points in normalised logarithms, by inverse distance; a query beyond the
  // points is moved to their edge. requires: not empty, query.size() == axes.
  double at(std::span<const double> query) const;
  bool empty() const { return points_.empty(); }

 private:
  std::size_t axes_;
  std::array<double, 4> least_{}, span_{};
  std::vector<Point> points_;  // normalised
};

}  // namespace servecast::perf
