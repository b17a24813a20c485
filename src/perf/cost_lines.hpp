// SPDX-License-Identifier: Apache-2.0
// Durations as functions of a batch, with everything that does not depend on it folded into a few
// numbers: what the loop over passes evaluates.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "perf/operators.hpp"
#include "perf/shape_sums.hpp"

namespace servecast::perf {

// One kind of operator, for all layers together: moving its bytes (fixed + per_token * t) and
// running its operations (math_per_token * t), which overlap in part. The root of the squares is at
// most 1.41 times the longer and tends to it where one is much longer; it needs no function whose
// last bit depends on the machine.
struct Line {
  double fixed_ms = 0.0;
  double per_token_ms = 0.0;
  double math_per_token_ms = 0.0;

  double at(double tokens) const {
    const double moving = fixed_ms + per_token_ms * tokens;
    const double running = math_per_token_ms * tokens;
    return std::sqrt(moving * moving + running * running);
  }
  // As if the shorter of the two hid behind the longer; at most at(tokens).
  double overlapped(double tokens) const {
    return std::max(fixed_ms + per_token_ms * tokens, math_per_token_ms * tokens);
  }
};

// bytes/s and FLOP/s.
struct Rates {
  double bytes_per_s = 1.0;
  double flops_per_s = 1.0;
};

inline Line line_of(const Work& work, const Rates& rates, double count) {
  const double ms = 1000.0 * count;
  return {.fixed_ms = work.bytes / rates.bytes_per_s * ms,
          .per_token_ms = work.bytes_per_token / rates.bytes_per_s * ms,
          .math_per_token_ms = work.flops_per_token / rates.flops_per_s * ms};
}

// The expert weights that a pass reads depend on how many experts its tokens visit: fewer than if
// each token chose evenly, for routers have favourites. The share to the power 1.25 follows tables
// of measured expert kernels (accuracy-notes.md 4).
struct ExpertLine {
  double read_all_ms = 0.0;  // if a pass visited all experts of the rank
  double math_per_token_ms = 0.0;
  double share_missed = 0.0;
  std::uint32_t ranks = 1;  // attention-data ranks whose tokens meet here

  // `group` tokens enter the experts.
  double at(std::uint64_t group) const {
    const double touched = share_touched(share_missed, group);
    const double moving = read_all_ms * touched * std::sqrt(std::sqrt(touched));
    const double running = math_per_token_ms * as_double(group);
    return std::sqrt(moving * moving + running * running);
  }
  // As Line::overlapped.
  double overlapped(std::uint64_t group) const {
    const double touched = share_touched(share_missed, group);
    return std::max(read_all_ms * touched * std::sqrt(std::sqrt(touched)),
                    math_per_token_ms * as_double(group));
  }
};

// Decode attention of one batch size, as a function of the context alone.
struct DecodeAttention {
  double read_max = 0.0;  // tokens that a window leaves to the whole batch
  double fixed_ms = 0.0;
  double ms_per_context = 0.0;
  double math_ms_per_context = 0.0;
  double index_ms_per_context = 0.0;

  double at(double context) const {
    const double read = std::min(context, read_max);
    return std::max(fixed_ms + ms_per_context * read, math_ms_per_context * read) +
           index_ms_per_context * context;
  }
};

// Attention of some layers; ms per unit of each sum of a StepShape. A window bounds the sums: no
// request attends to more than its window, nor to more than all. That is exact when all requests of
// the batch are longer than the window, or none is; in between it is an upper bound.
struct AttentionLine {
  std::uint64_t window = 0;  // tokens that a query attends to at most; 0: all
  double prefill_math_ms_per_pair = 0.0;
  double prefill_ms_per_new = 0.0;
  double prefill_ms_per_context = 0.0;
  double decode_math_ms_per_context = 0.0;
  double decode_ms_per_context = 0.0;
  double decode_ms_per_request = 0.0;
  double index_math_ms_per_context = 0.0;
  double index_ms_per_context = 0.0;

  // `pairs` as StepShape::prefill_attention: twice the causal pairs.
  double prefill(std::uint64_t fresh, std::uint64_t context, std::uint64_t pairs) const {
    double attended = as_double(pairs);
    double read = as_double(context);
    if (window > 0) {
      const double reach = as_double(fresh) * as_double(window);
      attended = std::min(attended, 2.0 * reach);
      read = std::min(read, reach);
    }
    const double memory = prefill_ms_per_new * as_double(fresh) + prefill_ms_per_context * read;
    const double index = std::max(index_ms_per_context * as_double(context),
                                  index_math_ms_per_context * as_double(pairs) * 0.5);
    return std::max(prefill_math_ms_per_pair * attended, memory) + index;
  }

  DecodeAttention decode(std::uint32_t requests) const {
    return {.read_max = window > 0 ? double(requests) * as_double(window)
                                   : std::numeric_limits<double>::infinity(),
            .fixed_ms = decode_ms_per_request * requests,
            .ms_per_context = decode_ms_per_context,
            .math_ms_per_context = decode_math_ms_per_context,
            .index_ms_per_context = std::max(index_ms_per_context, index_math_ms_per_context)};
  }
};

}  // namespace servecast::perf
