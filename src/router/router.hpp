// SPDX-License-Identifier: Apache-2.0
// Which worker gets this request: policies over observations only (replay.md 16). The router sees
// what it placed and what ended; it never sees an engine. Cost per request is O(log workers).
//
//   Router router(spec, 8);
//   std::uint32_t worker = router.place(tokens);
//   ... router.ended(worker, tokens);
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "router/spec.hpp"

namespace servecast::router {

class Router {
 public:
  // requires: workers > 0.
  Router(const Spec& spec, std::uint32_t workers);

  // Chooses the worker for a request of `tokens` (prompt plus requested output) and counts it
  // there.
  std::uint32_t place(std::uint64_t tokens);
  // A request of `tokens` placed on `worker` has ended.
  void ended(std::uint32_t worker, std::uint64_t tokens);
  // True when the choice depends on what has ended.
  bool watches_load() const;

 private:
  std::uint32_t choose();
  void add(std::uint32_t worker, std::uint64_t tokens, bool more);
  std::uint64_t weight(std::uint64_t tokens) const {
    return spec_.metric == Metric::Tokens ? tokens : 1;
  }
  std::uint32_t nth_least_loaded(std::uint32_t n) const;
  std::uint32_t least_loaded_from(std::uint32_t first) const;

  // The least load below a node of a complete binary tree and how many workers have it.
  struct Node {
    std::uint64_t load = UINT64_MAX;
    std::uint32_t count = 0;
  };
  static Node join(const Node& a, const Node& b);

  Spec spec_;
  std::uint32_t workers_;
  std::uint32_t leaves_ = 1;  // a power of two; leaf of worker w is tree_[leaves_ + w]
  std::vector<Node> tree_;
  std::uint32_t cursor_ = 0;
  Random random_;
};

}  // namespace servecast::router
