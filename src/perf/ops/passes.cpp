// SPDX-License-Identifier: Apache-2.0
#include "perf/ops/passes.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace servecast::perf {
namespace {

constexpr std::int64_t kStride = 32;  // tokens between two decode passes that are evaluated

std::int64_t div_ceil(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// The part of a mixed pass that is priced apart. Latent attention as one block is not: the public
// estimators price it with everything else, over the whole mixed batch as one prompt.
OpList only_attention(const OpList& list) {
  OpList out;
  for (const OpStep& step : list) {
    const bool attention = std::holds_alternative<ContextAttention>(step.op) ||
                           std::holds_alternative<GenerationAttention>(step.op) ||
                           std::holds_alternative<DsaModule>(step.op);
    if (attention) out.push_back(step);
  }
  return out;
}

OpList without_attention(const OpList& list) {
  OpList out;
  const OpList attention = only_attention(list);
  for (const OpStep& step : list) {
    const bool is = std::any_of(attention.begin(), attention.end(),
                                [&](const OpStep& one) { return one.name == step.name; });
    if (!is) out.push_back(step);
  }
  return out;
}

OpShape prompts(std::int64_t batch, std::int64_t isl, std::int64_t prefix) {
  return {.tokens = batch * (isl - prefix),
          .batch = batch,
          .length = static_cast<double>(isl - prefix),
          .prefix = static_cast<double>(prefix)};
}

}  // namespace

OpResult<OpTime> context_pass(const Estimator& estimator, const OpLists& lists, std::int64_t batch,
                              std::int64_t isl, std::int64_t prefix) {
  SERVECAST_CHECK(isl > prefix);
  return estimator.time(lists.context, prompts(batch, isl, prefix));
}

OpResult<OpTime> generation_pass(const Estimator& estimator, const OpLists& lists,
                                 std::int64_t batch, std::int64_t length,
                                 std::int64_t draft_tokens) {
  const std::int64_t tokens = batch * (draft_tokens + 1);
  return estimator.time(lists.generation,
                        {.tokens = tokens, .batch = tokens, .length = static_cast<double>(length)});
}

OpResult<OpTime> mixed_pass(const Estimator& estimator, const OpLists& lists,
                            const MixedPass& pass) {
  const std::int64_t decoded = pass.decode_requests * (pass.draft_tokens + 1);
  OpTime sum;
  const auto add = [&](const OpResult<OpTime>& part) { sum = sum + *part; };
  // Everything but attention, prompts and decodes as one prompt.
  const std::int64_t tokens = pass.context_tokens + decoded;
  if (tokens > 0) {
    const std::int64_t cached = pass.prefix * (pass.context_tokens / pass.isl);
    const auto rest = estimator.time(without_attention(lists.context), prompts(1, tokens, cached));
    if (!rest) return rest;
    add(rest);
  }
  if (pass.context_tokens > 0) {
    const std::int64_t batch = div_ceil(pass.context_tokens, pass.isl);
    const auto whole =
        estimator.time(only_attention(lists.context), prompts(batch, pass.isl, pass.prefix));
    if (!whole) return whole;
    const auto chunks = static_cast<double>(div_ceil(pass.isl, pass.context_tokens));
    sum = sum + (1.0 / chunks) * *whole;
  }
  if (decoded > 0) {
    const auto decode =
        estimator.time(only_attention(lists.generation),
                       {.tokens = decoded,
                        .batch = decoded,
                        .length = static_cast<double>(pass.isl + pass.osl / 2 + 1)});
    if (!decode) return decode;
    add(decode);
  }
  return sum;
}

std::vector<DecodeSample> decode_samples(std::int64_t isl, std::int64_t osl) {
  std::vector<DecodeSample> out;
  for (std::int64_t i = 0; i < osl - 1; i += kStride)
    out.push_back({isl + i + 1, std::min(kStride, osl - 1 - i)});
  return out;
}

OpResult<OpTime> whole_decode(const Estimator& estimator, const OpLists& lists, std::int64_t batch,
                              std::int64_t isl, std::int64_t osl, std::int64_t draft_tokens) {
  OpTime sum;
  for (const DecodeSample& sample : decode_samples(isl, osl)) {
    const auto one = generation_pass(estimator, lists, batch, sample.length, draft_tokens);
    if (!one) return one;
    sum = sum + static_cast<double>(sample.passes) * *one;
  }
  return sum;
}

}  // namespace servecast::perf
