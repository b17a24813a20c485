// SPDX-License-Identifier: Apache-2.0
// Scattered shapes that each own a curve, as measured matrices do (perfmodel.md 6.3).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "perf/table/curve.hpp"

namespace servecast::perf {

using SiteKey = std::array<std::int64_t, 2>;

// Physical bound in ms of a site at a place of its curve.
using SiteBound = std::function<double(const SiteKey&, double)>;

struct Site {
  SiteKey key;
  Curve curve;
};

class Sites {
 public:
  // In the order in which the source names them: it decides between equally near ones.
  explicit Sites(std::vector<Site> sites);

  // The own curve of a measured site alone; else the utilisation of the four nearest, within two
  // octaves.
  std::optional<Sample> at(const SiteKey& key, double x, const SiteBound& bound) const;

  const std::vector<Site>& sites() const { return sites_; }

 private:
  struct Near {
    double distance;
    std::size_t site;
  };
  std::vector<Near> candidates(const SiteKey& key, double x) const;
  bool is_frontier(const SiteKey& key, std::vector<Near>& near) const;

  std::vector<Site> sites_;
};

}  // namespace servecast::perf
