// SPDX-License-Identifier: Apache-2.0
// Whole passes from operator lists as the public estimators assemble them (perfmodel.md 7.1-7.3):
// every request alike. The timers of estimate_timer.hpp take the batch as it is instead.
#pragma once

#include <vector>

#include "perf/ops/estimator.hpp"
#include "perf/ops/op_lists.hpp"

namespace servecast::perf {

// Prefill of `batch` prompts of isl tokens, of which `prefix` are cached. requires: isl > prefix.
OpResult<OpTime> context_pass(const Estimator& estimator, const OpLists& lists, std::int64_t batch,
                              std::int64_t isl, std::int64_t prefix = 0);

// One decode pass of `batch` requests that each see `length` tokens, the new one included.
OpResult<OpTime> generation_pass(const Estimator& estimator, const OpLists& lists,
                                 std::int64_t batch, std::int64_t length,
                                 std::int64_t draft_tokens = 0);

struct MixedPass {
  std::int64_t context_tokens = 0, decode_requests = 0;
  std::int64_t isl = 0, osl = 0, prefix = 0, draft_tokens = 0;
};
OpResult<OpTime> mixed_pass(const Estimator& estimator, const OpLists& lists,
                            const MixedPass& pass);

// Passes that stand for a whole decode: at every 32nd token, with the number of passes each stands
// for.
struct DecodeSample {
  std::int64_t length = 0, passes = 0;
};
std::vector<DecodeSample> decode_samples(std::int64_t isl, std::int64_t osl);
OpResult<OpTime> whole_decode(const Estimator& estimator, const OpLists& lists, std::int64_t batch,
                              std::int64_t isl, std::int64_t osl, std::int64_t draft_tokens = 0);

}  // namespace servecast::perf
