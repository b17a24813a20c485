// SPDX-License-Identifier: Apache-2.0
// The public Azure LLM inference traces: CSV with TIMESTAMP, ContextTokens, GeneratedTokens
// (replay.md 11.8).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "workload/line_reader.hpp"
#include "workload/trace.hpp"

namespace servecast::workload {

// Hands every row or its problem to `builder`. Prompts share nothing.
void read_azure(LineReader& lines, TraceBuilder& builder);

// Nanoseconds since 1970 of "YYYY-MM-DD HH:MM:SS", with up to 7 decimals and an offset ("Z",
// "+HH:MM") if there is one; nothing when the text is anything else.
std::optional<std::int64_t> azure_time_ns(std::string_view text);

}  // namespace servecast::workload
