// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>

#include "base/check.hpp"
#include "workload/trace.hpp"

namespace servecast::workload {

// Parses `text` and checks what every trace promises, or that its problems are stated.
inline void check_trace_rules(std::string_view text, const TraceSource& source, const Load& load) {
  const Result<Trace> trace = parse_trace(text, source, load);
  if (!trace) {
    SERVECAST_CHECK(!trace.error().empty());
    SERVECAST_CHECK(trace.error().size() <= RowProblems::kReportedMax + 2);
    for (const Problem& problem : trace.error()) SERVECAST_CHECK(!problem.message.empty());
    return;
  }
  SERVECAST_CHECK(!trace->turns.empty());
  SERVECAST_CHECK(trace->sessions.back().first_turn == trace->turns.size());
  std::uint64_t plan_offset = 0;
  for (std::uint32_t s = 0; s < trace->session_count(); ++s) {
    const TraceSession& session = trace->sessions[s];
    SERVECAST_CHECK(session.first_turn < trace->sessions[s + 1].first_turn);
    SERVECAST_CHECK(session.plan_offset == plan_offset);
    SERVECAST_CHECK(session.arrival.ns >= 0);
    SERVECAST_CHECK(trace->turns[session.first_turn].delay.ns == 0);
    for (std::uint64_t t = session.first_turn; t < trace->sessions[s + 1].first_turn; ++t) {
      const Turn& turn = trace->turns[t];
      SERVECAST_CHECK(turn.input_tokens > 0 && turn.input_tokens <= trace->input_tokens_max);
      SERVECAST_CHECK(turn.delay.ns >= 0);
      SERVECAST_CHECK(turn.ids_first + turn.ids_count <= trace->ids.size());
      SERVECAST_CHECK(turn.ids_count == 0 ||
                      turn.ids_count == (turn.input_tokens - 1) / source.block_size + 1);
      SERVECAST_CHECK(!turn.authored ||
                      turn.authored_first + turn.output_tokens <= trace->authored.size());
      if (!turn.authored) plan_offset += turn.output_tokens;
    }
  }
  SERVECAST_CHECK(std::is_sorted(trace->order.begin(), trace->order.end(), [&](auto a, auto b) {
    return trace->sessions[a].arrival < trace->sessions[b].arrival;
  }));
}

}  // namespace servecast::workload
