// SPDX-License-Identifier: Apache-2.0
// Bytes and rates of stored numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "catalog/kinds.hpp"
#include "catalog/system_card.hpp"

namespace servecast::perf {

// Bytes of `elements` numbers with their scales, rounded up. Exact for catalog::Precision, but for
// the block scales of fp8_block (0.02 %), which perfmodel.md 2.2 leaves out too.
std::uint64_t bytes_of(catalog::Precision precision, std::uint64_t elements);
double bytes_per_element(catalog::Precision precision);

// Peak FLOP/s of matrices whose weights are stored in `precision` (perfmodel.md 2.2). Nothing: the
// GPU has no rate for it.
std::optional<std::uint64_t> peak_flops(const catalog::SystemCard& system,
                                        catalog::Precision precision);

// As peak_flops, for attention and dense matrices: there nvfp4 weights run on a GPU below compute
// capability 10.0 too, multiplied in bfloat16.
std::optional<std::uint64_t> peak_flops_linear(const catalog::SystemCard& system,
                                               catalog::Precision precision);

}  // namespace servecast::perf
