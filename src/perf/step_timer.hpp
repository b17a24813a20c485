// SPDX-License-Identifier: Apache-2.0
// How long one forward pass of one rank takes. The shape holds exact sums over the batch, so that
// timing costs the same for any batch size (architecture.md 5).
//
//   StepTime t = timer.time({.decode_requests = 9, .decode_context = 9, .capacity_tokens = 64});
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/time.hpp"

namespace servecast::perf {

// All counts in tokens unless the name says otherwise.
struct StepShape {
  // Requests that compute prompt tokens in this pass (engine-vllm.md 5.4.10).
  std::uint32_t prefill_requests = 0;
  std::uint64_t prefill_isl = 0;     // sum of prompt tokens computed when the pass ends
  std::uint64_t prefill_prefix = 0;  // sum of prompt tokens computed before the pass
  // Sum over the prefill requests of new * (2 * past + new): twice the causal attention work.
  std::uint64_t prefill_attention = 0;
  // Requests that decode in this pass, and the sum of their known tokens at its start.
  std::uint32_t decode_requests = 0;
  std::uint64_t decode_context = 0;
  // Tokens that each of them computes: more than one where it verifies draft tokens.
  std::uint32_t decode_tokens_each = 1;
  // The decoding requests are in the batch of the prefill, each with one token to extend by
  // (engine-sglang.md S7.6).
  bool mixed_chunk = false;
  // Images that the vision tower encodes before the prefill (engine-sglang.md S10).
  std::uint32_t images = 0;
  // Tokens that the rank's KV pool holds in all.
  std::uint64_t capacity_tokens = 0;
  // New tokens of all attention-data ranks in this pass, this one's among them: they meet in the
  // experts. 0: not told; each is taken to have as many as this one.
  std::uint64_t group_tokens = 0;
};

// A mixed chunk for a timer that knows no such batch: its decoding requests as prompts of which all
// but the last token are computed (engine-sglang.md S7.6). Any other shape as it is.
inline StepShape without_mixed_chunk(StepShape shape) {
  if (!shape.mixed_chunk) return shape;
  const std::uint64_t known = shape.decode_context;
  shape.prefill_requests += shape.decode_requests;
  shape.prefill_isl += known;
  shape.prefill_prefix += known - shape.decode_requests;
  shape.prefill_attention += 2 * known - shape.decode_requests;  // of one token: 2 * past + 1
  shape.decode_requests = 0;
  shape.decode_context = 0;
  shape.mixed_chunk = false;
  return shape;
}

// The parts add up to the pass (engine-vllm.md 5.7). Each is rounded to whole nanoseconds.
struct StepTime {
  Duration prefill;
  Duration decode;
  Duration vision = {};  // images, before the prefill

  Duration sum() const { return vision + prefill + decode; }
};

// Where a duration comes from; stands in the report as `provenance`.
enum class Provenance : std::uint8_t {
  Fixed,
  Polynomial,
  Analytic,
  Table,      // measured operators
  Hybrid,     // measured operators, formulas where the tables end
  Empirical,  // physical bounds at learned efficiencies
  Sol,        // physical bounds
};
std::string_view to_string(Provenance provenance);

// Decode passes of one rank with a fixed batch; the context grows by one token a request and pass.
struct DecodeRun {
  std::uint32_t requests = 0;
  std::uint64_t context = 0;  // sum over them in the first pass
  std::uint64_t capacity_tokens = 0;
  std::uint64_t group_tokens = 0;  // as in StepShape
};

// Immutable and shared by every rank of a role. Durations are finite and not negative.
class StepTimer {
 public:
  virtual ~StepTimer() = default;
  virtual StepTime time(const StepShape& shape) const = 0;
  // Durations of out.size() successive decode passes. Equal to time() of each shape, to the
  // nanosecond; what depends on the batch size is computed once.
  virtual void decode_run(const DecodeRun& run, std::span<Duration> out) const = 0;
  virtual Provenance provenance() const = 0;
  // Whether time() knows what an image costs; a shape with images is for those that do.
  virtual bool prices_images() const { return false; }
  // Passes that a run should ask for at most: 256 for cheap timers, 64 for the rest
  // (seam-notes.md 4.4).
  virtual std::uint32_t run_passes_max() const = 0;
};

}  // namespace servecast::perf
