// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "perf/table/grid.hpp"
#include "perf/table/sites.hpp"
#include "perf/table/util_grid.hpp"

namespace servecast::perf {
namespace {

GridPoint point(std::array<std::int64_t, 4> at, double ms, double watts = NAN) {
  return {at, {ms, watts}};
}

double product(std::span<const double> at) {
  double bound = 1.0;
  for (const double x : at) bound *= x;
  return bound;
}

TEST(Grid, BlendsTheRootAlongTheSequence) {
  const std::vector<GridPoint> points = {point({32, 1024, 1}, 1.0), point({32, 4096, 1}, 16.0)};
  const std::vector<double> query = {32, 2048, 1};
  EXPECT_DOUBLE_EQ(Grid({.axes = 3, .sqrt_axis = 1}, points).at(query, product)->ms, 4.0);
  EXPECT_DOUBLE_EQ(Grid({.axes = 3}, points).at(query, product)->ms, 6.0);
}

TEST(Grid, GivesBackWhatWasMeasured) {
  const Grid grid({.axes = 2}, {point({1, 1}, 3.0, 400.0), point({1, 1}, 9.0), point({1, 2}, 5.0)});
  const std::vector<double> query = {1, 1};
  EXPECT_EQ(grid.at(query, product)->ms, 3.0);  // the first of two
  EXPECT_EQ(grid.at(query, product)->watts, 400.0);
  EXPECT_FALSE(grid.at(std::vector<double>{1, 1.5}, product)->has_power());
}

TEST(Grid, MovesTheOnlyNeighbourThatKnowsTheOtherAxes) {
  const Grid grid({.axes = 2}, {point({2, 8}, 3.0), point({2, 16}, 5.0), point({4, 16}, 9.0)});
  // At 3, the side of 4 knows nothing of 8: the side of 2 counts, by the ratio of bounds 24 / 16.
  EXPECT_DOUBLE_EQ(grid.at(std::vector<double>{3, 8}, product)->ms, 4.5);
}

TEST(Grid, HoldsTheUtilisationBeyondItsEdge) {
  const Grid one({.axes = 2}, {point({2, 8}, 32.0)});
  EXPECT_DOUBLE_EQ(one.at(std::vector<double>{4, 16}, product)->ms, 128.0);
  // Five points at one utilisation: their mean is that.
  std::vector<GridPoint> row;
  for (std::int64_t x = 1; x <= 16; x *= 2)
    row.push_back(point({x, 1}, 4.0 * static_cast<double>(x), 300.0));
  const auto far = Grid({.axes = 2}, row).at(std::vector<double>{64, 1}, product);
  EXPECT_NEAR(far->ms, 256.0, 1e-9);
  EXPECT_NEAR(far->watts, 300.0, 1e-9);
}

TEST(Grid, HasNoJumpWhereNeighboursChange) {
  std::vector<GridPoint> points;
  for (std::int64_t x = 1; x <= 64; x *= 2)
    points.push_back(point({x, 1}, static_cast<double>(x) * (x > 8 ? 2.0 : 5.0)));
  const Grid grid({.axes = 2}, points);
  double before = 0.0;
  for (double x = 66.0; x < 400.0; x += 0.01) {
    const double ms = grid.at(std::vector<double>{x, 1}, product)->ms;
    if (before > 0.0) {
      EXPECT_LT(std::abs(ms / before - 1.0), 0.01) << x;
    }
    before = ms;
  }
}

TEST(Grid, HasNoAnswerWithoutABound) {
  const Grid grid({.axes = 2}, {point({2, 8}, 32.0)});
  const auto none = [](std::span<const double>) { return 0.0; };
  EXPECT_FALSE(grid.at(std::vector<double>{4, 16}, none));
  EXPECT_FALSE(Grid({.axes = 2}, {}).at(std::vector<double>{4, 16}, product));
}

TEST(Curve, IsStraightInsideAndHeldOutside) {
  const Curve curve({{1'000'000, {0.1, NAN}}, {2'000'000, {0.15, NAN}}}, 1);
  const auto size = [](double x) { return x; };
  EXPECT_DOUBLE_EQ(curve.at(1.5e6, size)->ms, 0.125);
  EXPECT_DOUBLE_EQ(curve.at(4e6, size)->ms, 0.30);
  EXPECT_DOUBLE_EQ(curve.at(0.5e6, size)->ms, 0.05);
}

TEST(Curve, TakesTheMedianOfItsTail) {
  const Curve curve({{1, {9.0, 100.0}}, {2, {1.0, 300.0}}, {4, {4.0, 200.0}}, {8, {8.0, NAN}}}, 3);
  const auto size = [](double x) { return x; };
  EXPECT_DOUBLE_EQ(curve.at(16.0, size)->ms, 16.0);  // utilisations 2, 1, 1
  EXPECT_DOUBLE_EQ(curve.at(16.0, size)->watts, 250.0);
}

double volume(const SiteKey& key, double x) {
  return static_cast<double>(key[0] * key[1]) * x;
}

Site site(std::int64_t n, std::int64_t k, double util) {
  std::vector<CurvePoint> points;
  for (std::int64_t m = 1; m <= 64; m *= 4)
    points.push_back({m, {static_cast<double>(n * k * m) / util, NAN}});
  return {{n, k}, Curve(std::move(points), 3)};
}

TEST(Sites, LetTheOwnCurveAnswerAlone) {
  const Sites sites({site(64, 64, 0.5), site(128, 64, 0.25)});
  EXPECT_DOUBLE_EQ(sites.at({64, 64}, 16, volume)->ms, 64.0 * 64 * 16 / 0.5);
}

TEST(Sites, WeighNeighboursByDistance) {
  const Sites sites({site(64, 64, 0.5), site(256, 64, 0.25), site(4096, 4096, 0.9)});
  // One octave from either; the third is out of reach.
  EXPECT_NEAR(sites.at({128, 64}, 16, volume)->ms, 128.0 * 64 * 16 / 0.375, 1e-6);
}

TEST(Sites, ReachFartherOnlyBeyondOneEdge) {
  const Sites sites({site(64, 64, 0.5), site(256, 64, 0.5)});
  EXPECT_TRUE(sites.at({4096, 64}, 16, volume));
  EXPECT_FALSE(sites.at({4096, 4096}, 16, volume));  // beyond two edges
  EXPECT_FALSE(sites.at({1, 64}, 16, volume));       // below
}

TEST(UtilGrid, WeighsTheTwoNearest) {
  const UtilGrid grid(1, {{{1.0}, 0.2}, {{100.0}, 0.6}, {{10000.0}, 0.9}});
  EXPECT_DOUBLE_EQ(grid.at(std::vector<double>{100.0}), 0.6);
  EXPECT_NEAR(grid.at(std::vector<double>{10.0}), 0.4, 1e-12);
  EXPECT_DOUBLE_EQ(grid.at(std::vector<double>{1e9}), 0.9);  // moved to the edge
}

}  // namespace
}  // namespace servecast::perf
