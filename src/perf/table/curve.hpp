// SPDX-License-Identifier: Apache-2.0
// Samples along one axis (perfmodel.md 6.2, 6.3): straight between them, constant utilisation
// beyond them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "perf/table/sample.hpp"

namespace servecast::perf {

struct CurvePoint {
  std::int64_t at = 0;
  Sample sample;
};

// Physical bound in ms at a place of the curve.
using CurveBound = std::function<double(double)>;

class Curve {
 public:
  // The first of several points at one place counts. `tail` points at an end give the utilisation
  // beyond it.
  Curve(std::vector<CurvePoint> points, std::size_t tail);

  std::optional<Sample> at(double x, const CurveBound& bound) const;

  bool covers(double x) const {
    return !points_.empty() && x >= static_cast<double>(points_.front().at) &&
           x <= static_cast<double>(points_.back().at);
  }
  const std::vector<CurvePoint>& points() const { return points_; }

 private:
  std::optional<Sample> beyond(double x, const CurveBound& bound, bool above) const;

  std::vector<CurvePoint> points_;
  std::size_t tail_;
};

}  // namespace servecast::perf
