// SPDX-License-Identifier: Apache-2.0
// A slice of a measured table: samples at whole coordinates of two to four axes, and what lies
// between and beyond them (perfmodel.md 6.1, 6.2). Immutable.
//
//   Grid grid({.axes = 3, .sqrt_axis = 1}, points);
//   auto sample = grid.at(coordinates, bound);
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "perf/table/sample.hpp"

namespace servecast::perf {

inline constexpr std::size_t kGridAxesMax = 4;

struct GridPoint {
  std::array<std::int64_t, kGridAxesMax> at{};  // unused axes 0
  Sample sample;
};

struct GridShape {
  std::size_t axes = 0;
  std::optional<std::size_t> sqrt_axis = {};  // along it the root of the duration is blended
};

class Grid {
 public:
  // The first of several points at one place counts. requires: 1 <= axes <= kGridAxesMax.
  Grid(GridShape shape, std::vector<GridPoint> points);

  // The measured sample where there is one; between samples a blend axis by axis; beyond them the
  // utilisation of the nearest samples, held. Nothing where no sample and bound are usable.
  std::optional<Sample> at(std::span<const double> query, const BoundAt& bound) const;

  std::span<const GridPoint> points() const { return points_; }  // sorted by coordinates

 private:
  // Points [begin, end) that agree in the axes before `axis`.
  struct Range {
    std::size_t begin, end;
  };
  std::optional<Sample> resolve(Range range, std::size_t axis, std::span<const double> query,
                                const BoundAt& bound) const;
  std::optional<Sample> between(Range low, Range high, std::size_t axis,
                                std::span<const double> query, const BoundAt& bound) const;
  std::optional<Sample> held(std::span<const double> query, const BoundAt& bound) const;

  GridShape shape_;
  std::vector<GridPoint> points_;
};

}  // namespace servecast::perf
