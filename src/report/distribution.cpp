// SPDX-License-Identifier: Apache-2.0
#include "report/distribution.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/check.hpp"

namespace servecast::report {
namespace {

constexpr double kNsPerMs = 1e6;
constexpr double kPsPerMs = 1e9;
constexpr double kNsPerSecond = 1e9;
constexpr double kPsPerSecond = 1e12;
constexpr double kMicro = 1e6;

using Weighted = std::span<const std::pair<std::int64_t, std::uint64_t>>;

// The gap at each ascending 0-based rank. requires: ranks ascending and below the sum of weights.
std::vector<std::int64_t> at_ranks(Weighted gaps, std::span<const std::uint64_t> ranks) {
  std::vector<std::int64_t> values;
  std::uint64_t below = 0;
  std::size_t i = 0;
  for (const std::uint64_t rank : ranks) {
    while (below + gaps[i].second <= rank) below += gaps[i++].second;
    values.push_back(gaps[i].first);
  }
  return values;
}

std::array<std::uint64_t, kPercents.size()> ranks_of(std::uint64_t count) {
  std::array<std::uint64_t, kPercents.size()> ranks{};
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = rank_of(kPercents[i], count);
  return ranks;
}

// The same ranks counted from the largest of `total` samples, ascending: the last percentile comes
// first.
std::array<std::uint64_t, kPercents.size()> ranks_from_top(std::uint64_t count,
                                                           std::uint64_t total) {
  auto ranks = ranks_of(count);
  for (std::uint64_t& rank : ranks) rank = total - 1 - rank;
  std::reverse(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace

Result<Distribution> distribution_of(const SampleStore& samples, double per_unit) {
  Distribution d{.count = samples.count()};
  if (d.count == 0) return d;
  const auto ranks = ranks_of(d.count);
  const auto values = samples.at_ranks(ranks);
  if (!values) return tl::unexpected(values.error());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    d.percentiles[i] = static_cast<double>((*values)[i]) / per_unit;
  }
  d.mean = samples.sums().mean() / per_unit;
  d.std = samples.sums().standard_deviation() / per_unit;
  d.min = static_cast<double>(samples.min()) / per_unit;
  d.max = static_cast<double>(samples.max()) / per_unit;
  return d;
}

Result<PerRequestPace> pace_of(const SampleStore& tpot_ps, const ExactSums& output_micro_tps) {
  PerRequestPace pace;
  auto tpot = distribution_of(tpot_ps, kPsPerMs);
  if (!tpot) return tl::unexpected(tpot.error());
  pace.tpot_ms = *tpot;

  const std::uint64_t total = tpot_ps.count();
  const std::uint64_t rated = output_micro_tps.count;
  SERVECAST_CHECK(rated <= total);
  pace.output_tps.count = rated;
  if (rated == 0) return pace;
  std::vector<std::uint64_t> ranks{total - rated};  // the smallest TPOT above 0 is the highest rate
  for (const std::uint64_t rank : ranks_from_top(rated, total)) ranks.push_back(rank);
  const auto values = tpot_ps.at_ranks(ranks);
  if (!values) return tl::unexpected(values.error());
  const auto rate = [](std::uint64_t ps) { return kPsPerSecond / static_cast<double>(ps); };
  for (std::size_t i = 0; i < kPercents.size(); ++i) {
    pace.output_tps.percentiles[i] = rate((*values)[kPercents.size() - i]);
  }
  pace.output_tps.mean = output_micro_tps.mean() / kMicro;
  pace.output_tps.std = output_micro_tps.standard_deviation() / kMicro;
  pace.output_tps.min = rate(tpot_ps.max());
  pace.output_tps.max = rate(values->front());
  return pace;
}

Distribution distribution_of(const replay::GapTable& gaps) {
  Distribution d{.count = gaps.count};
  if (d.count == 0) return d;
  const ExactSums sums{.count = gaps.count, .sum = gaps.sum_ns, .squares = gaps.sum_squares_ns};
  const auto values = at_ranks(gaps.gaps_ns, ranks_of(d.count));
  for (std::size_t i = 0; i < kPercents.size(); ++i) {
    d.percentiles[i] = static_cast<double>(values[i]) / kNsPerMs;
  }
  d.mean = sums.mean() / kNsPerMs;
  d.std = sums.standard_deviation() / kNsPerMs;
  d.min = static_cast<double>(gaps.gaps_ns.front().first) / kNsPerMs;
  d.max = static_cast<double>(gaps.gaps_ns.back().first) / kNsPerMs;
  return d;
}

Distribution rates_of(const replay::GapTable& gaps) {
  const Weighted all = gaps.gaps_ns;
  const bool has_zero = !all.empty() && all.front().first == 0;
  const Weighted positive = all.subspan(has_zero ? 1 : 0);
  const std::uint64_t zeros = has_zero ? all.front().second : 0;
  Distribution d{.count = gaps.count - zeros};
  if (d.count == 0) return d;
  const auto rate = [](std::int64_t ns) { return kNsPerSecond / static_cast<double>(ns); };
  const auto values = at_ranks(positive, ranks_from_top(d.count, d.count));
  for (std::size_t i = 0; i < kPercents.size(); ++i) {
    d.percentiles[i] = rate(values[kPercents.size() - 1 - i]);
  }
  // Sums over the table in its own order: the same on every machine.
  const double n = static_cast<double>(d.count);
  double sum = 0;
  for (const auto& [ns, times] : positive) sum += rate(ns) * static_cast<double>(times);
  d.mean = sum / n;
  double deviations = 0;
  for (const auto& [ns, times] : positive) {
    const double deviation = rate(ns) - d.mean;
    deviations += deviation * deviation * static_cast<double>(times);
  }
  d.std = std::sqrt(deviations / n);
  d.min = rate(positive.back().first);
  d.max = rate(positive.front().first);
  return d;
}

}  // namespace servecast::report
