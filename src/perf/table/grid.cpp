// SPDX-License-Identifier: Apache-2.0
#include "perf/table/grid.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace servecast::perf {
namespace {

constexpr double kTiny = 1e-12;          // coordinates and distances are never below
constexpr std::size_t kAnchors = 4;      // neighbours whose utilisation is averaged
constexpr std::size_t kCandidates = 12;  // nearest points that are tried before all of them

struct Near {
  double distance;
  std::size_t point;
};

struct Anchor {
  double distance, util, watts;
};

double log_distance(const GridPoint& point, std::span<const double> query) {
  double sum = 0.0;
  for (std::size_t a = 0; a < query.size(); ++a) {
    const double here = std::log2(std::max(static_cast<double>(point.at[a]), kTiny));
    const double there = std::log2(std::max(query[a], kTiny));
    sum += (here - there) * (here - there);
  }
  return std::sqrt(sum);
}

// The share of an anchor at distance d where the next point beyond the anchors lies at distance r:
// it comes in and goes out at zero, so that the result has no jump where neighbours change.
double taper(double d, std::optional<double> r) {
  if (!r) return 1.0 / (d * d + kTiny);
  const double x = std::max(0.0, *r - d) / (*r * d + kTiny);
  return x * x;
}

Sample held_sample(std::span<const Anchor> anchors, std::optional<double> beyond, double bound) {
  double weights = 0.0, util = 0.0, watts = 0.0;
  for (const Anchor& anchor : anchors) weights += taper(anchor.distance, beyond);
  const bool equal = weights == 0.0;  // all as far away as the next one
  weights = equal ? static_cast<double>(anchors.size()) : weights;
  for (const Anchor& anchor : anchors) {
    const double weight = equal ? 1.0 : taper(anchor.distance, beyond);
    util += weight * anchor.util;
    watts += weight * anchor.watts;
  }
  return {bound / (util / weights), watts / weights};
}

}  // namespace

Grid::Grid(GridShape shape, std::vector<GridPoint> points)
    : shape_(shape), points_(std::move(points)) {
  SERVECAST_CHECK(shape_.axes >= 1 && shape_.axes <= kGridAxesMax);
  std::stable_sort(points_.begin(), points_.end(),
                   [](const GridPoint& a, const GridPoint& b) { return a.at < b.at; });
  points_.erase(std::unique(points_.begin(), points_.end(),
                            [](const GridPoint& a, const GridPoint& b) { return a.at == b.at; }),
                points_.end());
}

std::optional<Sample> Grid::at(std::span<const double> query, const BoundAt& bound) const {
  SERVECAST_CHECK(query.size() == shape_.axes);
  if (points_.empty()) return std::nullopt;
  if (const auto found = resolve({0, points_.size()}, 0, query, bound)) return found;
  return held(query, bound);
}

std::optional<Sample> Grid::resolve(Range range, std::size_t axis, std::span<const double> query,
                                    const BoundAt& bound) const {
  if (axis == shape_.axes) return points_[range.begin].sample;
  const auto begin = points_.begin();
  const auto key = [axis](const GridPoint& point) { return static_cast<double>(point.at[axis]); };
  const auto first = begin + static_cast<std::ptrdiff_t>(range.begin);
  const auto last = begin + static_cast<std::ptrdiff_t>(range.end);
  const auto from = std::partition_point(
      first, last, [&](const GridPoint& point) { return key(point) < query[axis]; });
  const auto place = [&](auto at) { return static_cast<std::size_t>(at - begin); };
  const auto same_as = [&](auto at) {  // the points with the key of `at`
    const double value = key(*at);
    const auto low =
        std::partition_point(first, last, [&](const GridPoint& p) { return key(p) < value; });
    const auto high =
        std::partition_point(low, last, [&](const GridPoint& p) { return key(p) <= value; });
    return Range{place(low), place(high)};
  };
  if (from == last) return std::nullopt;
  if (key(*from) == query[axis]) return resolve(same_as(from), axis + 1, query, bound);
  if (from == first) return std::nullopt;
  return between(same_as(from - 1), same_as(from), axis, query, bound);
}

std::optional<Sample> Grid::between(Range low, Range high, std::size_t axis,
                                    std::span<const double> query, const BoundAt& bound) const {
  const auto left = resolve(low, axis + 1, query, bound);
  const auto right = resolve(high, axis + 1, query, bound);
  const auto low_key = static_cast<double>(points_[low.begin].at[axis]);
  const auto high_key = static_cast<double>(points_[high.begin].at[axis]);
  if (left && right) {
    const double weight = (query[axis] - low_key) / (high_key - low_key);
    const double watts = blended(left->watts, right->watts, weight);
    if (shape_.sqrt_axis != axis) return Sample{blended(left->ms, right->ms, weight), watts};
    const double root = blended(std::sqrt(left->ms), std::sqrt(right->ms), weight);
    return Sample{root * root, watts};
  }
  if (!left && !right) return std::nullopt;
  // Only one side knows the other coordinates: it is moved to the query as the bound moves.
  std::array<double, kGridAxesMax> there{};
  std::copy(query.begin(), query.end(), there.begin());
  there[axis] = left ? low_key : high_key;
  const double ratio = bound(query) / bound(std::span(there).first(query.size()));
  if (!usable(ratio)) return std::nullopt;
  const Sample& known = left ? *left : *right;
  return Sample{known.ms * ratio, known.watts};
}

std::optional<Sample> Grid::held(std::span<const double> query, const BoundAt& bound) const {
  const double here = bound(query);
  if (!usable(here)) return std::nullopt;
  std::vector<Near> nearest;
  nearest.reserve(points_.size());
  for (std::size_t p = 0; p < points_.size(); ++p)
    nearest.push_back({log_distance(points_[p], query), p});
  const auto closer = [](const Near& a, const Near& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.point < b.point;
  };
  std::vector<Anchor> anchors;
  // Most often the first few do; all are sorted only where many have no bound.
  for (std::size_t sorted = 0; sorted < nearest.size() && anchors.size() <= kAnchors;) {
    const std::size_t end = sorted == 0 ? std::min(kCandidates, nearest.size()) : nearest.size();
    std::partial_sort(nearest.begin() + static_cast<std::ptrdiff_t>(sorted),
                      nearest.begin() + static_cast<std::ptrdiff_t>(end), nearest.end(), closer);
    for (; sorted < end && anchors.size() <= kAnchors; ++sorted) {
      const GridPoint& point = points_[nearest[sorted].point];
      std::array<double, kGridAxesMax> at{};
      for (std::size_t a = 0; a < query.size(); ++a) at[a] = static_cast<double>(point.at[a]);
      const double util = bound(std::span(at).first(query.size())) / point.sample.ms;
      if (usable(util) && usable(point.sample.ms))
        anchors.push_back({nearest[sorted].distance, util, point.sample.watts});
    }
  }
  if (anchors.empty()) return std::nullopt;
  std::optional<double> beyond;
  if (anchors.size() > kAnchors) {
    beyond = anchors.back().distance;
    anchors.pop_back();
  }
  return held_sample(anchors, beyond, here);
}

}  // namespace servecast::perf
