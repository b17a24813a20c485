// SPDX-License-Identifier: Apache-2.0
// Which rank of which worker gets this request: policies over observations only (replay.md 16). The
// router sees what it placed and what ended; it never sees an engine. Cost per request is O(log
// ranks of all workers).
//
//   Router router(spec, {.workers = 8, .ranks = 2});
//   Target target = router.place(tokens);
//   ... router.ended(target, tokens);
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "router/spec.hpp"

namespace servecast::router {

// A rank of a worker; policies see each as a target of its own, in this order.
struct Target {
  std::uint32_t worker = 0, rank = 0;
  friend auto operator<=>(const Target&, const Target&) = default;
};

struct Topology {
  std::uint32_t workers = 1;
  std::uint32_t ranks = 1;  // of each worker
};

class Router {
 public:
  // requires: workers > 0 and ranks > 0.
  Router(const Spec& spec, const Topology& topology);

  // Chooses the target for a request of `tokens` (prompt plus requested output) and counts it
  // there.
  Target place(std::uint64_t tokens);
  // A request of `tokens` placed on `target` has ended.
  void ended(const Target& target, std::uint64_t tokens);
  // True when the choice depends on what has ended.
  bool watches_load() const;

 private:
  Target choose();
  std::uint32_t choose_index();
  Target at(std::uint32_t index) const { return {index / ranks_, index % ranks_}; }
  std::uint32_t index_of(const Target& target) const {
    return target.worker * ranks_ + target.rank;
  }
  void add(std::uint32_t index, std::uint64_t tokens, bool more);
  std::uint64_t weight(std::uint64_t tokens) const {
    return spec_.metric == Metric::Tokens ? tokens : 1;
  }
  std::uint32_t nth_least_loaded(std::uint32_t n) const;
  std::uint32_t least_loaded_from(std::uint32_t first) const;

  // The least load below a node of a complete binary tree and how many targets have it.
  struct Node {
    std::uint64_t load = UINT64_MAX;
    std::uint32_t count = 0;
  };
  static Node join(const Node& a, const Node& b);

  Spec spec_;
  std::uint32_t workers_, ranks_;
  std::uint32_t targets_;     // ranks of all workers; policies but round robin number them through
  std::uint32_t leaves_ = 1;  // a power of two; leaf of target t is tree_[leaves_ + t]
  std::vector<Node> tree_;
  std::uint32_t cursor_ = 0;
  std::vector<std::uint32_t> next_rank_;  // round robin: of each worker
  Random random_;
};

}  // namespace servecast::router
