// SPDX-License-Identifier: Apache-2.0
// Bytes and rates of stored numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "catalog/kinds.hpp"
#include "catalog/system_card.hpp"

namespace servecast::perf {

// Bytes of `elements` numbers, rounded up. Exact: 4-bit formats take 9/16 or 17/32 byte a number
// with their scales. Block scales of fp8_block (0.02 %) are left out, as perfmodel.md 2.2 does.
std::uint64_t bytes_of(catalog::Precision precision, std::uint64_t elements);
double bytes_per_element(catalog::Precision precision);

// Peak FLOP/s of matrices whose weights are stored in `precision`. mxfp4 is multiplied in bfloat16
// (perfmodel.md 2.2: w4a16). Nothing: the GPU has no rate for it.
std::optional<std::uint64_t> peak_flops(const catalog::SystemCard& system,
                                        catalog::Precision precision);

// As peak_flops, for attention and dense matrices: there nvfp4 weights run on a GPU below compute
// capability 10.0 too, multiplied in bfloat16.
std::optional<std::uint64_t> peak_flops_linear(const catalog::SystemCard& system,
                                               catalog::Precision precision);

}  // namespace servecast::perf
