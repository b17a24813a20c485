// SPDX-License-Identifier: Apache-2.0
#include "perf/breakdown.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.hpp"
#include "perf/shape_sums.hpp"

namespace servecast::perf {
namespace {

double& of(PartSums& sums, PartName name) {
  return sums[static_cast<std::size_t>(name)];
}

bool decodes(const StepShape& shape) {
  return shape.decode_requests > 0;
}

std::uint64_t fresh_tokens(const StepShape& shape) {
  if (shape.prefill_requests == 0) return 0;
  return shape.prefill_isl - std::min(shape.prefill_isl, shape.prefill_prefix);
}

// As parts_of counts a pass: prompts and decodes are one fused batch.
BatchCounts counts_of(const PassCost& cost, const StepShape& shape) {
  const std::uint64_t decoded = std::uint64_t{shape.decode_requests} * shape.decode_tokens_each;
  const std::uint64_t fresh = fresh_tokens(shape);
  const std::uint64_t prompts = fresh > 0 ? shape.prefill_requests : 0;
  const std::uint64_t tokens = decoded + fresh;
  return {.tokens = tokens,
          .group =
              shape.group_tokens > 0 ? std::max(shape.group_tokens, tokens) : cost.group_of(tokens),
          .sequences = prompts + shape.decode_requests,
          .sampled = prompts + decoded,
          .verifies = decodes(shape) && shape.decode_tokens_each > 1};
}

// What costs no bytes and no operations.
void add_waits(const PassCost& cost, const StepShape& shape, const BatchCounts& counts,
               PartSums& sums) {
  of(sums, PartName::HostAndLaunches) =
      counts.verifies ? cost.host_ms * cost.verify_factor : cost.host_ms;
  of(sums, PartName::Sequences) = cost.per_sequence_ms * as_double(counts.sequences);
  if (fresh_tokens(shape) > 0) of(sums, PartName::PrefillLaunches) = cost.per_prefill_pass_ms;
}

void add_attention(const PassCost& cost, const StepShape& shape, PartSums& sums) {
  if (const std::uint64_t fresh = fresh_tokens(shape); fresh > 0)
    of(sums, PartName::PromptAttention) =
        cost.prefill_attention_ms(fresh, shape.prefill_isl, shape.prefill_attention);
  if (!decodes(shape)) return;
  for (const AttentionLine& line : cost.attention)
    of(sums, PartName::DecodeAttention) +=
        line.decode(shape.decode_requests).at(as_double(shape.decode_context));
}

// `time_of` says how bytes and operations of a line overlap.
template <class TimeOf>
void add_lines(const PassCost& cost, const BatchCounts& counts, TimeOf time_of, PartSums& sums) {
  SERVECAST_CHECK(cost.tokens.size() == cost.token_parts.size());
  for (std::size_t i = 0; i < cost.tokens.size(); ++i)
    of(sums, cost.token_parts[i]) += time_of(cost.tokens[i], as_double(counts.tokens));
  of(sums, PartName::Head) = time_of(cost.head, as_double(counts.sampled));
  if (cost.experts) of(sums, PartName::Experts) = time_of(*cost.experts, counts.group);
}

template <class TimeOf>
PartSums sums_of(const PassCost& cost, const StepShape& shape, TimeOf time_of) {
  PartSums sums{};
  const BatchCounts counts = counts_of(cost, shape);
  if (counts.tokens == 0) return sums;
  add_waits(cost, shape, counts, sums);
  add_attention(cost, shape, sums);
  add_lines(cost, counts, time_of, sums);
  return sums;
}

double total_of(const PartSums& sums) {
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

PartSums part_sums(const PassCost& cost, const StepShape& shape) {
  return sums_of(cost, shape, [](const auto& line, auto tokens) { return line.at(tokens); });
}

PartSums part_bounds(const PassCost& peak, const StepShape& shape) {
  return sums_of(peak, shape,
                 [](const auto& line, auto tokens) { return line.overlapped(tokens); });
}

double bound_ms(const PassCost& peak, const StepShape& shape) {
  return total_of(part_bounds(peak, shape));
}

// The ends of the parts are rounded, not their lengths, so that the lengths sum to the total.
Breakdown breakdown_of(const PassCost& cost, const PassCost& peak, const StepShape& shape,
                       Duration total) {
  const PartSums sums = part_sums(cost, shape);
  const PartSums bounds = part_bounds(peak, shape);
  const double all_ms = total_of(sums);
  Breakdown breakdown{.total = total, .bound_ms = total_of(bounds)};
  double end_ms = 0.0;
  std::int64_t begin_ns = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] == 0.0) continue;
    end_ms += sums[i];
    const std::int64_t end_ns =
        end_ms >= all_ms ? total.ns : std::llround(end_ms / all_ms * static_cast<double>(total.ns));
    breakdown.parts.push_back(
        {.name = static_cast<PartName>(i), .time = {end_ns - begin_ns}, .bound_ms = bounds[i]});
    begin_ns = end_ns;
  }
  return breakdown;
}

}  // namespace servecast::perf
