// SPDX-License-Identifier: Apache-2.0
// Usual shares of the physical bound by precision and head size: what one efficiency says of
// another (perfmodel.md 5.2).
#pragma once

#include "catalog/kinds.hpp"
#include "perf/ops/quant.hpp"

namespace servecast::perf {

double gemm_level(Quant quant);
double expert_level(Quant quant);

inline constexpr std::int64_t kReferenceHead = 128;
// Of prefill attention with heads of this size, relative to kReferenceHead.
double prefill_head_ratio(catalog::EngineKind engine, std::int64_t head_dim);

}  // namespace servecast::perf
