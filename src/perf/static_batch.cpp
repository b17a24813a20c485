// SPDX-License-Identifier: Apache-2.0
#include "perf/static_batch.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/check.hpp"
#include "base/int128.hpp"

namespace servecast::perf {

StepShape prefill_shape(const StaticBatch& batch) {
  const std::uint64_t tokens = std::uint64_t{batch.requests} * batch.input_tokens;
  return {.prefill_requests = batch.requests,
          .prefill_isl = tokens,
          .prefill_attention = tokens * batch.input_tokens,
          .capacity_tokens = batch.capacity_tokens};
}

StepShape decode_shape(const StaticBatch& batch, std::uint32_t pass) {
  SERVECAST_CHECK(pass < batch.decode_passes());
  const std::uint64_t known = std::uint64_t{batch.input_tokens} + 1 + pass;
  return {.decode_requests = batch.requests,
          .decode_context = batch.requests * known,
          .capacity_tokens = batch.capacity_tokens};
}

double StaticTimes::tpot_ms() const {
  if (decode_passes == 0) return 0.0;
  const auto ps = static_cast<std::uint64_t>(
      (UInt128{static_cast<std::uint64_t>(decode.ns)} * 2000 + decode_passes) /
      (UInt128{decode_passes} * 2));
  return static_cast<double>(ps) / 1e9;
}

StaticTimes static_times(const StepTimer& timer, const StaticBatch& batch) {
  StaticTimes times{.prefill = timer.time(prefill_shape(batch)).sum(),
                    .decode_passes = batch.decode_passes()};
  std::array<Duration, 64> run;
  for (std::uint32_t pass = 0; pass < batch.decode_passes();) {
    const std::uint32_t count = std::min<std::uint32_t>(static_cast<std::uint32_t>(run.size()),
                                                        batch.decode_passes() - pass);
    const std::span<Duration> out(run.data(), count);
    timer.decode_run({.requests = batch.requests,
                      .context = decode_shape(batch, pass).decode_context,
                      .capacity_tokens = batch.capacity_tokens},
                     out);
    for (const Duration each : out) times.decode = times.decode + each;
    pass += count;
  }
  return times;
}

}  // namespace servecast::perf
