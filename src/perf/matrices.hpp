// SPDX-License-Identifier: Apache-2.0
// The weight matrices of one rank: one list that both memory and time read, so that they cannot
// disagree.
#pragma once

#include <cstdint>
#include <vector>

#include "perf/placement.hpp"

namespace servecast::perf {

// A matrix of out * in weights, applied to every token of the pass.
struct Matrix {
  std::uint64_t out = 0;
  std::uint64_t in = 0;
  catalog::Precision precision = catalog::Precision::Bfloat16;
};

// Routed experts that a rank holds in one layer. Each has three matrices of hidden * width.
struct ExpertShard {
  std::uint64_t experts = 0;
  std::uint64_t width = 0;  // inner width on this rank
};

// The shares of one tensor-parallel rank, rounded up where a width does not divide
// (perfmodel.md 3.1-3.4).
struct RankMatrices {
  std::vector<Matrix> attention;  // of one layer
  std::vector<Matrix> dense;      // feed-forward part of one dense layer
  std::vector<Matrix> mixture;    // router and shared experts of one layer with experts
  ExpertShard routed;             // of one layer with experts
  Matrix head;                    // output head; the embedding has the same shape
  std::uint32_t layers_mixture = 0;
  std::uint32_t layers_dense = 0;
};

// requires: check(placement) is empty.
RankMatrices matrices_of(const Placement& placement);

}  // namespace servecast::perf
