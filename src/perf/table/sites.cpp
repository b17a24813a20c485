// SPDX-License-Identifier: Apache-2.0
#include "perf/table/sites.hpp"

#include <algorithm>

namespace servecast::perf {
namespace {

constexpr double kTiny = 1e-12;
constexpr double kReachOctaves = 2.0;
constexpr std::size_t kNeighbours = 4;

double octaves(std::int64_t a, std::int64_t b) {
  return std::log2(std::max(static_cast<double>(a), kTiny)) -
         std::log2(std::max(static_cast<double>(b), kTiny));
}

double distance(const SiteKey& a, const SiteKey& b) {
  const double x = octaves(a[0], b[0]);
  const double y = octaves(a[1], b[1]);
  return std::sqrt(x * x + y * y);
}

}  // namespace

Sites::Sites(std::vector<Site> sites) : sites_(std::move(sites)) {}

// Sites whose curve covers x, else all, with their distances.
std::vector<Sites::Near> Sites::candidates(const SiteKey& key, double x) const {
  std::vector<Near> near;
  for (std::size_t s = 0; s < sites_.size(); ++s) {
    if (sites_[s].curve.covers(x)) near.push_back({distance(key, sites_[s].key), s});
  }
  if (!near.empty()) return near;
  for (std::size_t s = 0; s < sites_.size(); ++s) near.push_back({distance(key, sites_[s].key), s});
  return near;
}

// Far from all sites, but only because one axis lies above all of them: those that are near in the
// other axis stay.
bool Sites::is_frontier(const SiteKey& key, std::vector<Near>& near) const {
  std::size_t above = 0, axis = 0;
  for (std::size_t a = 0; a < key.size(); ++a) {
    std::int64_t least = INT64_MAX, most = INT64_MIN;
    for (const Near& one : near) {
      least = std::min(least, sites_[one.site].key[a]);
      most = std::max(most, sites_[one.site].key[a]);
    }
    if (key[a] < least) return false;
    if (key[a] > most) {
      ++above;
      axis = a;
    }
  }
  if (above != 1) return false;
  const std::size_t other = 1 - axis;
  std::erase_if(near, [&](const Near& one) {
    return std::abs(octaves(key[other], sites_[one.site].key[other])) > kReachOctaves;
  });
  return !near.empty();
}

std::optional<Sample> Sites::at(const SiteKey& key, double x, const SiteBound& bound) const {
  const auto own =
      std::find_if(sites_.begin(), sites_.end(), [&](const Site& site) { return site.key == key; });
  if (own != sites_.end()) return own->curve.at(x, [&](double at) { return bound(key, at); });
  std::vector<Near> near = candidates(key, x);
  const auto within = [](const Near& one) { return one.distance <= kReachOctaves; };
  if (std::any_of(near.begin(), near.end(), within))
    std::erase_if(near, [&](const Near& one) { return !within(one); });
  else if (near.empty() || !is_frontier(key, near))
    return std::nullopt;
  std::stable_sort(near.begin(), near.end(),
                   [](const Near& a, const Near& b) { return a.distance < b.distance; });
  near.resize(std::min(near.size(), kNeighbours));
  double weights = 0.0, util = 0.0, watts = 0.0;
  for (const Near& one : near) {
    const Site& site = sites_[one.site];
    const auto sample = site.curve.at(x, [&](double at) { return bound(site.key, at); });
    if (!sample) continue;
    const double there = bound(site.key, x) / sample->ms;
    if (!usable(there)) continue;
    const double weight = 1.0 / (one.distance * one.distance + kTiny);
    weights += weight;
    util += weight * there;
    watts += weight * sample->watts;
  }
  const double here = bound(key, x);
  if (weights == 0.0 || !usable(here)) return std::nullopt;
  return Sample{here / (util / weights), watts / weights};
}

}  // namespace servecast::perf
