// SPDX-License-Identifier: Apache-2.0
// What the passes of one placement cost: its operators, collectives and host cost, folded into
// lines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "perf/coefficients.hpp"
#include "perf/cost_lines.hpp"
#include "perf/operators.hpp"
#include "perf/placement.hpp"

namespace servecast::perf {

// A decode batch of one size, as a function of its context.
struct DecodeBatch {
  double batch_ms = 0.0;  // everything but attention
  std::array<DecodeAttention, kWindowsMax> attention = {};

  double ms(std::uint64_t context) const { return batch_ms + attention_ms(as_double(context)); }
  double attention_ms(double context) const {
    double ms = 0.0;
    for (const DecodeAttention& part : attention) ms += part.at(context);
    return ms;
  }
};

struct PassCost {
  HostCost host;
  std::vector<Line> tokens;  // operators on every token of the pass
  Line head;                 // output head, on one token per request
  std::optional<ExpertLine> experts;
  std::array<AttentionLine, kWindowsMax> attention = {};  // one for each window; the rest is 0

  // Everything but attention, of a pass of `tokens_new` tokens in `sequences` requests, with logits
  // of `sampled` of the tokens. Weights are read once.
  double batch_ms(std::uint64_t tokens_new, std::uint64_t sequences, std::uint64_t sampled) const;
  DecodeBatch decode_batch(std::uint32_t requests, std::uint32_t tokens_each) const;
  // As AttentionLine::prefill, for all layers.
  double prefill_attention_ms(std::uint64_t fresh, std::uint64_t context,
                              std::uint64_t pairs) const;
};

// requires: check(placement) is empty.
PassCost pass_cost_of(const Placement& placement);

}  // namespace servecast::perf
