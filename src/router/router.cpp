// SPDX-License-Identifier: Apache-2.0
#include "router/router.hpp"

#include "base/check.hpp"

namespace servecast::router {

Router::Router(const Spec& spec, const Topology& topology)
    : spec_(spec),
      workers_(topology.workers),
      ranks_(topology.ranks),
      targets_(topology.workers * topology.ranks),
      random_(spec.seed, "router") {
  SERVECAST_CHECK(workers_ > 0 && ranks_ > 0);
  if (spec_.policy == Policy::RoundRobin) next_rank_.resize(workers_);
  if (!watches_load()) return;
  while (leaves_ < targets_) leaves_ *= 2;
  tree_.resize(2 * std::size_t{leaves_});
  for (std::uint32_t t = 0; t < targets_; ++t) tree_[leaves_ + t] = {0, 1};
  for (std::uint32_t i = leaves_ - 1; i > 0; --i) tree_[i] = join(tree_[2 * i], tree_[2 * i + 1]);
}

bool Router::watches_load() const {
  return spec_.policy == Policy::LeastLoaded || spec_.policy == Policy::PowerOfTwo;
}

Router::Node Router::join(const Node& a, const Node& b) {
  if (a.load != b.load) return a.load < b.load ? a : b;
  return {a.load, a.count + b.count};
}

void Router::add(std::uint32_t index, std::uint64_t tokens, bool more) {
  std::uint32_t at = leaves_ + index;
  std::uint64_t& load = tree_[at].load;
  SERVECAST_CHECK(more || load >= weight(tokens));
  load = more ? load + weight(tokens) : load - weight(tokens);
  for (at /= 2; at > 0; at /= 2) tree_[at] = join(tree_[2 * at], tree_[2 * at + 1]);
}

// The n-th target among those with the least load.
std::uint32_t Router::nth_least_loaded(std::uint32_t n) const {
  const std::uint64_t least = tree_[1].load;
  std::uint32_t at = 1;
  while (at < leaves_) {
    at *= 2;
    const std::uint32_t left = tree_[at].load == least ? tree_[at].count : 0;
    if (n < left) continue;
    n -= left;
    ++at;
  }
  return at - leaves_;
}

// The first target with the least load at or after `first`, going around.
std::uint32_t Router::least_loaded_from(std::uint32_t first) const {
  const std::uint64_t least = tree_[1].load;
  std::uint32_t before = 0;  // targets with the least load and a lower number
  for (std::uint32_t at = leaves_ + first; at > 1; at /= 2) {
    if (at % 2 == 1 && tree_[at - 1].load == least) before += tree_[at - 1].count;
  }
  return nth_least_loaded(before < tree_[1].count ? before : 0);
}

// Round robin goes around the workers, and on each worker around its ranks.
Target Router::choose() {
  if (spec_.policy != Policy::RoundRobin) return at(choose_index());
  const std::uint32_t worker = cursor_ % workers_;
  cursor_ = worker + 1;
  std::uint32_t& next = next_rank_[worker];
  const std::uint32_t rank = next;
  next = rank + 1 == ranks_ ? 0 : rank + 1;
  return {worker, rank};
}

std::uint32_t Router::choose_index() {
  switch (spec_.policy) {
    case Policy::RoundRobin:
      break;
    case Policy::Random:
      return static_cast<std::uint32_t>(random_.below(targets_));
    case Policy::PowerOfTwo: {
      if (targets_ == 1) return 0;
      auto a = static_cast<std::uint32_t>(random_.below(targets_));
      auto b = static_cast<std::uint32_t>(random_.below(targets_ - 1));
      if (b >= a) ++b;
      if (b < a) std::swap(a, b);
      return tree_[leaves_ + b].load < tree_[leaves_ + a].load ? b : a;
    }
    case Policy::LeastLoaded:
      switch (spec_.tie) {
        case Tie::LowestId:
          return nth_least_loaded(0);
        case Tie::RoundRobin: {
          const std::uint32_t index = least_loaded_from(cursor_ % targets_);
          cursor_ = index + 1;
          return index;
        }
        case Tie::Random:
          return nth_least_loaded(static_cast<std::uint32_t>(random_.below(tree_[1].count)));
      }
  }
  SERVECAST_CHECK(false);
  return 0;
}

Target Router::place(std::uint64_t tokens) {
  const Target target = choose();
  if (watches_load()) add(index_of(target), tokens, true);
  return target;
}

void Router::ended(const Target& target, std::uint64_t tokens) {
  if (watches_load()) add(index_of(target), tokens, false);
}

}  // namespace servecast::router
