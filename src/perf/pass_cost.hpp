// SPDX-License-Identifier: Apache-2.0
// What the passes of one placement cost: its operators, collectives and host cost, folded into
// lines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "perf/coefficients.hpp"
#include "perf/cost_lines.hpp"
#include "perf/operators.hpp"
#include "perf/placement.hpp"
#include "perf/step_timer.hpp"

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

// The new tokens of a pass.
struct BatchCounts {
  std::uint64_t tokens = 0;     // of this rank
  std::uint64_t group = 0;      // of all attention-data ranks; at least `tokens`
  std::uint64_t sequences = 0;  // requests that have some
  std::uint64_t sampled = 0;    // tokens whose logits are computed
  bool verifies = false;        // drafts are among them
};

// What a pass spends its time on, as reports call it.
enum class PartName : std::uint8_t {
  HostAndLaunches,
  Sequences,
  PrefillLaunches,
  DenseWeights,  // in the format that most weights of every token have
  OtherWeights,  // in other formats: router, shared experts, dense parts beside experts
  Elementwise,
  Experts,
  PromptAttention,
  DecodeAttention,
  AllReduce,
  ExpertExchange,
  PipelineHops,
  Head,
};
inline constexpr std::size_t kPartNames = 13;
std::string_view to_string(PartName part);  // "host_and_launches"

struct PassCost {
  double host_ms = 0.0;        // and kernel launches of all layers
  double verify_factor = 1.0;  // on host_ms
  double per_sequence_ms = 0.0;
  double per_prefill_pass_ms = 0.0;   // launches outside CUDA graphs when prompts are in the pass
  std::vector<Line> tokens;           // operators on every token of the pass
  std::vector<PartName> token_parts;  // what each of these lines is
  Line head;                          // output head, on one token per request
  std::optional<ExpertLine> experts;
  std::array<AttentionLine, kWindowsMax> attention = {};  // one for each window; the rest is 0

  // Everything but attention. Weights are read once.
  double batch_ms(const BatchCounts& counts) const;
  // `group` as in BatchCounts.
  DecodeBatch decode_batch(std::uint32_t requests, std::uint32_t tokens_each,
                           std::uint64_t group) const;
  // As AttentionLine::prefill, for all layers.
  double prefill_attention_ms(std::uint64_t fresh, std::uint64_t context,
                              std::uint64_t pairs) const;
  // Of a rank with `tokens` new tokens when nobody tells what the other ranks have: as many each.
  std::uint64_t group_of(std::uint64_t own) const { return experts ? own * experts->ranks : own; }
};

// A pass in ms. `total_ms` is at least `decode_ms`, which the decoding requests would take alone.
struct PassParts {
  double decode_ms = 0.0;
  double total_ms = 0.0;
};
PassParts parts_of(const PassCost& cost, const StepShape& shape);

// requires: check(placement) is empty.
PassCost pass_cost_of(const Placement& placement, const Coefficients& coefficients);

// The same bytes and operations at the peaks of the system card, without host, launches and
// latencies: what no kernel can undercut. requires: as pass_cost_of.
PassCost peak_cost_of(const Placement& placement);

}  // namespace servecast::perf
