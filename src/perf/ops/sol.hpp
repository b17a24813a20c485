// SPDX-License-Identifier: Apache-2.0
// Physical lower bound of an operator: what its arithmetic takes at the tensor cores' peak and what
// its bytes take at the memory's or link's peak (perfmodel.md 4). Real operators are slower;
// measured ones rarely faster.
//
//   auto bound = sol(Gemm{.n = 4096, .k = 4096}, {.tokens = 8}, system);
//   if (bound) use(bound->ms());
#pragma once

#include <algorithm>
#include <string>
#include <tl/expected.hpp>

#include "catalog/system_card.hpp"
#include "perf/ops/op.hpp"

namespace servecast::perf {

struct Sol {
  double math_ms = 0.0;
  double mem_ms = 0.0;
  double ms() const { return std::max(math_ms, mem_ms); }
};

// Why an operator has no duration.
struct Miss {
  enum class Kind : std::uint8_t {
    NoData,              // the tables hold nothing that answers
    NoEmpirical,         // and nothing to learn an efficiency from
    MissingSystemFlops,  // the GPU has no rate for the precision; no mode helps
    Unsupported,         // the combination cannot be evaluated
  };
  Kind kind = Kind::NoData;
  std::string message;
};

template <class T>
using OpResult = tl::expected<T, Miss>;

// requires: counts are not negative and divisors are positive. An operator without work takes 0.
// Overlap: of its longer group. Fallback: of its primary. A list's bound is sol_ms of op_eval.hpp.
OpResult<Sol> sol(const Op& op, const OpShape& shape, const catalog::SystemCard& system);

// Tokens after a divisor and a split over ranks: ceil(floor(x / divisor) / split).
std::int64_t split_tokens(std::int64_t tokens, std::int64_t divisor, std::int64_t split);

// Bytes/s between the ranks of a group of n, one direction of one GPU.
double link_rate(const catalog::SystemCard& system, std::int64_t ranks);

// Dispatch as the collectives it consists of; each with its message width in two-byte numbers a
// token.
OpResult<std::vector<Op>> parts_of(const Dispatch& dispatch, const catalog::SystemCard& system);

// Query-key pairs that sparse attention computes for `batch` sequences of s new tokens.
double dsa_pairs(double batch, double s, double prefix, double topk);

}  // namespace servecast::perf
