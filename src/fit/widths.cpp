// SPDX-License-Identifier: Apache-2.0
#include "fit/widths.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace servecast::fit {
namespace {

std::uint32_t one_or(const std::optional<std::uint32_t>& width) {
  return std::max(width.value_or(1), 1U);
}

bool is_square_of(std::uint32_t width, std::uint32_t root) {
  return width == std::uint64_t{root} * root;
}

}  // namespace

RealWidths real_widths(const FiledWidths& filed, bool has_experts) {
  RealWidths real{.parallelism = {.tensor = one_or(filed.tensor),
                                  .pipeline = one_or(filed.pipeline),
                                  .attention_data = one_or(filed.attention_data),
                                  .moe_tensor = one_or(filed.moe_tensor),
                                  .moe_expert = one_or(filed.moe_expert)},
                  .repaired = {},
                  .impossible = {}};
  perf::Parallelism& p = real.parallelism;
  if (!has_experts) {
    p.moe_tensor = p.moe_expert = 1;
    return real;
  }
  const std::uint32_t k = p.moe_tensor;
  // 2 by 2 on 4 GPUs is a layout of its own.
  constexpr std::uint32_t kRootMin = 4;
  if (k >= kRootMin && k == p.moe_expert && p.attention_data == 1 && is_square_of(p.tensor, k)) {
    real.repaired = "product of tensor";
    p.tensor = k;
    p.moe_tensor = 1;
  } else if (k >= kRootMin && k == p.moe_expert && p.tensor == 1 &&
             is_square_of(p.attention_data, k)) {
    real.repaired = "product of attention_data";
    p.attention_data = k;
    p.moe_tensor = 1;
  } else if (p.tensor > 1 && p.tensor == p.attention_data && k == 1 &&
             is_square_of(p.moe_expert, p.tensor)) {
    // The same curves stand in another export with tensor alone, and fill as much memory.
    real.repaired = "both axes filed";
    p.moe_expert = p.tensor;
    p.attention_data = 1;
  } else if (p.tensor > 1 && p.tensor == p.attention_data && k == 1 && p.moe_expert == p.tensor) {
    real.repaired = "both axes filed";
    p.moe_expert = p.tensor;
    p.tensor = 1;
  }
  if (std::uint64_t{p.moe_tensor} * p.moe_expert != std::uint64_t{p.tensor} * p.attention_data)
    real.impossible =
        fmt::format("moe_tensor {} * moe_expert {} is not tensor {} * attention_data {}",
                    p.moe_tensor, p.moe_expert, p.tensor, p.attention_data);
  return real;
}

}  // namespace servecast::fit
