// SPDX-License-Identifier: Apache-2.0
// Speculative decoding as a scheduler sees it: how many of the draft tokens a verification accepts
// (engine-vllm.md 2.4, 8). The drafter itself, MTP, EAGLE or n-gram, is its acceptance rates.
//
//   AcceptanceSampler sampler({.rates = {0.8, 0.6}}, 0);
//   std::uint32_t tokens = sampler.draw();  // 1 to 3, 2.28 on average
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/problem.hpp"
#include "base/random.hpp"

namespace servecast::scheduler {

struct Speculation {
  // Chance that draft token i is accepted when those before it were; one for each draft token.
  std::vector<double> rates = {};
  std::uint64_t seed = 42;
  // The drafter needs the hidden states of the last block of a hit, so that one block more is
  // computed again (7.3b): MTP and EAGLE do, n-gram does not.
  bool needs_last_block = true;

  // Tokens that one verification computes a request, and emits at most.
  std::uint32_t width() const { return static_cast<std::uint32_t>(rates.size()) + 1; }
  // Tokens that one verification emits on average, before an output ends.
  double expected_tokens() const;
};

// The rates for `drafts` draft tokens from a list of fewer or more: cut, or filled with 0. Every
// number must be in [0, 1], also those that are cut. An empty list is 0.85, 0.3.
Result<std::vector<double>> acceptance_rates(std::vector<double> given, std::uint32_t drafts);
// The rates that accept `accepted` draft tokens on average with the least chance: so many ones,
// then the rest. requires: 0 <= accepted <= drafts.
std::vector<double> rates_of_accepted(double accepted, std::uint32_t drafts);

class AcceptanceSampler {
 public:
  // `rank` is the rank's ordinal among all ranks of its role: each has a stream of its own.
  AcceptanceSampler(const Speculation& speculation, std::uint64_t rank);

  // Tokens of one verification: the accepted drafts and the one that the model adds. A rate of 1
  // takes nothing from the stream.
  std::uint32_t draw();

 private:
  std::vector<std::uint64_t> limits_;  // a draw below it accepts; the highest number: always
  Random random_;
};

}  // namespace servecast::scheduler
