// SPDX-License-Identifier: Apache-2.0
// Mooncake JSON Lines: one row is one request or one session turn, its prompt spelled in block ids
// (replay.md 11.1, 11.7).
#pragma once

#include "workload/line_reader.hpp"
#include "workload/trace.hpp"

namespace servecast::workload {

// Hands every row or its problem to `builder`.
void read_mooncake(LineReader& lines, const TraceSource& source, TraceBuilder& builder);

}  // namespace servecast::workload
