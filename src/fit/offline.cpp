// SPDX-License-Identifier: Apache-2.0
#include "fit/offline.hpp"

#include <array>

#include "perf/memory.hpp"

namespace servecast::fit {
namespace {

struct Run {
  std::uint32_t input_tokens, output_tokens, requests;
};
constexpr std::array<Run, 15> kRuns{{{128, 128, 30000},
                                     {128, 2048, 3000},
                                     {128, 4096, 1500},
                                     {500, 2000, 3000},
                                     {1000, 1000, 3000},
                                     {1000, 2000, 1500},
                                     {1024, 1024, 3000},
                                     {1024, 8192, 1500},
                                     {1024, 32768, 1000},
                                     {2048, 128, 3000},
                                     {2048, 2048, 1500},
                                     {5000, 500, 1500},
                                     {8192, 1024, 1500},
                                     {20000, 2000, 1000},
                                     {32768, 1024, 1000}}};
constexpr std::uint32_t kRequests = 3000;  // of lengths that the overview does not name

}  // namespace

std::uint32_t offline_requests(std::uint32_t input_tokens, std::uint32_t output_tokens) {
  for (const Run& run : kRuns) {
    if (run.input_tokens == input_tokens && run.output_tokens == output_tokens) return run.requests;
  }
  return kRequests;
}

perf::Parallelism offline_widths(const perf::Parallelism& filed, bool has_experts) {
  perf::Parallelism ran = filed;
  if (!has_experts || filed.attention_data > 1) return ran;
  ran.attention_data = filed.tensor;
  ran.tensor = 1;
  ran.moe_tensor = 1;
  ran.moe_expert = ran.attention_data;
  return ran;
}

std::uint32_t likely_tensor(const perf::Placement& placement, std::uint32_t gpus) {
  constexpr double kWeightsShare = 0.55;
  const double weights = static_cast<double>(perf::weight_bytes(placement));
  const double memory = kWeightsShare * static_cast<double>(placement.system.memory_bytes);
  std::uint32_t tensor = 1;
  while (weights > memory * tensor && tensor * 2 <= gpus) tensor *= 2;
  return tensor;
}

}  // namespace servecast::fit
