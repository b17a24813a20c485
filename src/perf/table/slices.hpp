// SPDX-License-Identifier: Apache-2.0
// Rows of measured tables, folded over their sources, as what interpolation works on. A slice is
// named by the values that no interpolation crosses, joined to a text: "bfloat16/fp8/8/128/0".
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "perf/ops/sol.hpp"
#include "perf/table/curve.hpp"
#include "perf/table/grid.hpp"
#include "perf/table/measured_table.hpp"
#include "perf/table/sites.hpp"

namespace servecast::perf {

// Sources in order of precedence: for one place the first that has it counts.
using Sources = std::vector<MeasuredTable>;
template <class Slice>
using Slices = std::map<std::string, Slice, std::less<>>;

// Joins the parts of a name.
std::string slice_name(std::initializer_list<std::string_view> words,
                       std::initializer_list<std::int64_t> numbers = {});

// By mode; matrices (n, k) with a curve over m. Durations below the physical bound are raised to
// it.
Slices<Sites> gemm_slices(const Sources& sources, const catalog::SystemCard& system);

// By math, cache, key-value heads (0: as many as query heads), head size and window; axes heads,
// tokens, batch.
Slices<Grid> context_attention_slices(const Sources& sources);
// By cache, key-value heads, head size and window; axes heads, batch, tokens. Raised to the
// physical bound.
Slices<Grid> generation_attention_slices(const Sources& sources, const catalog::SystemCard& system);
// By math and head size; axes heads, tokens, batch.
Slices<Grid> encoder_attention_slices(const Sources& sources);
// Latent attention. Context: by math, cache and, of modules, matrices' mode; axes heads, tokens,
// batch. Generation: by cache and mode; axes heads, batch, tokens.
Slices<Grid> mla_context_slices(const Sources& sources);
Slices<Grid> mla_generation_slices(const Sources& sources);
// By mode, "pre" or "post", and heads; over tokens.
Slices<Curve> mla_bmm_slices(const Sources& sources);
// By architecture, math, cache, matrices' mode and whether the indexer is skipped. Context: axes
// heads, cached tokens, new tokens, batch; generation: heads, batch, tokens.
Slices<Grid> dsa_context_slices(const Sources& sources);
Slices<Grid> dsa_generation_slices(const Sources& sources);
// By mode, distribution, topk, experts, hidden, inter, tp and ep; over tokens. `small` reads the
// kernel for few tokens.
Slices<Curve> expert_slices(const Sources& sources, bool small);
// By number of GPUs; over numbers of two bytes.
Slices<Curve> all_reduce_slices(const Sources& sources);
// By type, collective and number of GPUs; over numbers.
Slices<Curve> nccl_slices(const Sources& sources);
// Cost of quantising activations by type: axes rows and columns.
Slices<Grid> scale_slices(const Sources& sources);

}  // namespace servecast::perf
