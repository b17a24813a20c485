// SPDX-License-Identifier: Apache-2.0
// Rows that a collector is known to have got wrong.
#pragma once

#include <cstddef>

#include "perf/table/measured_table.hpp"

namespace servecast::perf {

// SGLang's prefill attention over the whole context that ran more than 5 % faster than the GPU can
// multiply: the collector passed 0 where that runtime wants -1 and measured a window of nearly
// nothing (perfdata.md 6).
bool is_suspect(const MeasuredTable& table, std::size_t row);

}  // namespace servecast::perf
