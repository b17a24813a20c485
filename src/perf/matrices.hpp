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

// Routed experts that a rank holds in one layer.
struct ExpertShard {
  std::uint64_t experts = 0;
  std::uint64_t width = 0;     // inner width on this rank
  std::uint64_t hidden = 0;    // width of what they take and give
  std::uint64_t matrices = 3;  // of hidden * width, in each
  std::uint64_t elements() const { return experts * matrices * hidden * width; }
};

// One layer of a group.
struct LayerMatrices {
  std::uint32_t count = 0;  // layers of the group, in all pipeline stages
  std::vector<Matrix> mixer = {};
  std::vector<Matrix> dense = {};    // dense feed-forward part, also one beside experts
  std::vector<Matrix> mixture = {};  // router, shared experts, ways into and out of a latent width
  ExpertShard routed = {};           // experts is 0 in layers without
};

// The shares of one tensor-parallel rank, rounded up where a width does not divide
// (perfmodel.md 3).
struct RankMatrices {
  std::vector<LayerMatrices> groups;  // as the model's
  Matrix embedding;
  Matrix head;
  std::uint32_t layers_mixture() const;
  // Of the first group with experts; requires: there is one.
  const ExpertShard& routed() const;
};

// requires: check(placement) is empty.
RankMatrices matrices_of(const Placement& placement);

// Weights of the whole model, without norms, biases and convolutions; a tied head counts once.
std::uint64_t parameters_of(const catalog::ModelCard& model);

}  // namespace servecast::perf
