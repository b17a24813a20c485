// SPDX-License-Identifier: Apache-2.0
// One record as one JSON line, written by hand: a run may have tens of millions. Keys sorted.
// Private to the room.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "replay/records.hpp"
#include "report/report.hpp"

namespace servecast::report {

// Milliseconds, the same bytes as append_double(ms_from_ns(ns)).
void append_ms(std::string& out, std::int64_t ns);

// With the newline.
void append_row(std::string& out, const replay::PassRecord& record);
void append_row(std::string& out, const replay::KvEventRecord& record);

// Without the newline. `sla_ok` is written when a bound is set.
void append_row(std::string& out, const replay::RequestRecord& record,
                std::span<const replay::Admission> history, const Names& names, const Sla& sla);

}  // namespace servecast::report
