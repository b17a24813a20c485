// SPDX-License-Identifier: Apache-2.0
#include "workload/trace.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "workload/azure.hpp"
#include "workload/mooncake.hpp"
#include "workload/trace_file.hpp"

namespace servecast::workload {

Place RowProblems::place(std::uint64_t line) const {
  return {path_, static_cast<int>(std::min<std::uint64_t>(line, INT32_MAX)), 0};
}

void RowProblems::add(std::uint64_t line, std::string code, std::string message, std::string hint) {
  if (++count_ > kReportedMax) return;
  rows_.push_back({std::move(code), std::move(message), place(line), std::move(hint)});
}

Problems RowProblems::take() {
  Problems all = std::move(file_problems_);
  std::move(rows_.begin(), rows_.end(), std::back_inserter(all));
  if (count_ > kReportedMax) {
    all.push_back(
        {"trace.more", fmt::format("{} more rows are wrong", count_ - kReportedMax), place(0), ""});
  }
  return all;
}

TraceBuilder::TraceBuilder(const TraceSource& source, const Load& load)
    : source_(source), load_(load), problems_(source.path) {
  trace_.block_size = source.block_size;
}

std::uint32_t TraceBuilder::session_of(const std::optional<std::string_view>& name) {
  const auto next = static_cast<std::uint32_t>(sessions_.size());
  if (name) {
    if (const auto known = session_index_.find(*name); known != session_index_.end()) {
      return known->second;
    }
    session_index_.emplace(*name, next);
    trace_.session_names.set(next, *name);
  }
  sessions_.emplace_back();
  return next;
}

void TraceBuilder::skip(std::string_view session) {
  ++sessions_[session_of(session)].rows;
}

void TraceBuilder::add(const TraceRow& row) {
  if (trace_.turns.size() == kNone) {
    problems_.add(row.line, "trace.too_many_rows",
                  fmt::format("the trace has more than {} rows", kNone));
    return;
  }
  const std::uint32_t index = session_of(row.session);
  SessionState& session = sessions_[index];
  Turn turn = row.turn;
  turn.row = static_cast<std::uint32_t>(trace_.turns.size());
  const bool kept = set_time(row, session, turn);
  ++session.rows;
  if (!kept) return;
  const std::uint64_t total = std::uint64_t{turn.input_tokens} + turn.output_tokens;
  if (total > UINT32_MAX) {
    problems_.add(row.line, "trace.range",
                  fmt::format("input and output together have {} tokens: must be at most {}", total,
                              UINT32_MAX));
    return;
  }
  if (!row.request_name.empty()) trace_.request_names.set(turn.row, row.request_name);
  if (!row.metadata.empty()) trace_.metadata.set(turn.row, row.metadata);
  if (!row.images.empty()) trace_.images.set(turn.row, row.images);
  trace_.input_tokens_max = std::max(trace_.input_tokens_max, turn.input_tokens);
  trace_.total_tokens_max = std::max(trace_.total_tokens_max, static_cast<std::uint32_t>(total));
  trace_.turns.push_back(turn);
  session_of_row_.push_back(index);
}

// Arrival of a first turn, delay of a later one (replay.md 11.1, decisions.md 9b).
bool TraceBuilder::set_time(const TraceRow& row, SessionState& session, Turn& turn) {
  const bool first = session.rows == 0;
  if (row.time_ns) {
    timed_ = true;
    if (*row.time_ns < row_before_ns_) ++trace_.notes.rows_out_of_order;
    row_before_ns_ = *row.time_ns;
  }
  if (first) {
    if (row.delay_ns.value_or(0) != 0) {
      problems_.add(row.line, "trace.delay",
                    fmt::format("delay is {} ms: must be 0 or absent in the first row of a session",
                                ms_from_ns(*row.delay_ns)),
                    row.session ? "" : "rows of one session have the same session_id");
      return false;
    }
    if (!row.time_ns) ++trace_.notes.rows_without_time;
    session.arrival_ns = row_before_ns_;
    session.last_ns = row_before_ns_;
    return true;
  }
  std::int64_t elapsed_ns = 0;
  if (row.time_ns) {
    elapsed_ns = *row.time_ns - session.last_ns;
    if (elapsed_ns < 0) {
      problems_.add(
          row.line, "trace.time_decreases",
          fmt::format("timestamp is {} ms in session \"{}\": must not be before the session's row "
                      "before, which is at {} ms",
                      ms_from_ns(*row.time_ns), *row.session, ms_from_ns(session.last_ns)));
      return false;
    }
    session.last_ns = *row.time_ns;
  }
  turn.delay.ns = row.delay_ns.value_or(elapsed_ns);
  return true;
}

Result<Trace> TraceBuilder::finish() {
  if (problems_.empty() && trace_.turns.empty()) {
    problems_.add({"trace.empty", "the trace has no rows", problems_.place(0), ""});
  }
  if (problems_.empty() && load_.kind == Load::Kind::TraceTimestamps && !timed_) {
    problems_.add({"trace.no_times",
                   "no row has a timestamp: traffic.load.type trace_timestamps needs them",
                   problems_.place(0), "use load type concurrency"});
  }
  if (!problems_.empty()) return tl::unexpected(problems_.take());
  if (!timed_) trace_.notes.rows_without_time = 0;
  order_by_session();
  if (!move_times()) return tl::unexpected(problems_.take());
  set_plan_offsets();
  note_delta_suspects();
  return std::move(trace_);
}

// Brings the turns of each session together; sessions and turns keep file order.
void TraceBuilder::order_by_session() {
  trace_.sessions.resize(sessions_.size() + 1);
  std::uint64_t first_turn = 0;
  for (std::size_t s = 0; s < sessions_.size(); ++s) {
    trace_.sessions[s].first_turn = first_turn;
    first_turn += sessions_[s].rows;
  }
  trace_.sessions.back().first_turn = first_turn;
  SERVECAST_CHECK(first_turn == trace_.turns.size());
  if (sessions_.size() == trace_.turns.size()) return;
  std::vector<std::uint64_t> next(sessions_.size());
  for (std::size_t s = 0; s < next.size(); ++s) next[s] = trace_.sessions[s].first_turn;
  std::vector<Turn> turns(trace_.turns.size());
  for (const Turn& turn : trace_.turns) turns[next[session_of_row_[turn.row]]++] = turn;
  trace_.turns = std::move(turns);
}

std::optional<std::int64_t> TraceBuilder::sped_up(std::int64_t ns) const {
  if (load_.kind != Load::Kind::TraceTimestamps || load_.speedup == 1) return ns;
  return ns_from_ms(ms_from_ns(ns) / load_.speedup);
}

// Moves the earliest arrival to 0, divides by the speed-up and finds the order of arrivals.
bool TraceBuilder::move_times() {
  std::int64_t start_ns = 0;
  if (!source_.start_as_given) {
    start_ns =
        std::min_element(sessions_.begin(), sessions_.end(), [](const auto& a, const auto& b) {
          return a.arrival_ns < b.arrival_ns;
        })->arrival_ns;
  }
  bool in_range = true;
  for (std::size_t s = 0; s < sessions_.size(); ++s) {
    const auto ns = sped_up(sessions_[s].arrival_ns - start_ns);
    in_range = in_range && ns.has_value();
    trace_.sessions[s].arrival.ns = ns.value_or(0);
  }
  for (Turn& turn : trace_.turns) {
    const auto ns = sped_up(turn.delay.ns);
    in_range = in_range && ns.has_value();
    turn.delay.ns = ns.value_or(0);
    trace_.cancels |= turn.cancel_after != kForever;  // a client's patience is not sped up
  }
  if (!in_range) {
    problems_.add(
        {"workload.arrival_out_of_range",
         fmt::format("traffic.load.speedup is {}: the trace's times divided by it pass the "
                     "range of simulated time",
                     load_.speedup),
         {},
         "the longest simulated time is 146 years"});
    return false;
  }
  if (load_.kind == Load::Kind::Concurrency) return true;
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(trace_.sessions[a].arrival, a) < std::pair(trace_.sessions[b].arrival, b);
  };
  std::vector<std::uint32_t> order(sessions_.size());
  std::iota(order.begin(), order.end(), 0U);
  if (std::is_sorted(order.begin(), order.end(), earlier)) return true;
  std::sort(order.begin(), order.end(), earlier);
  trace_.order = std::move(order);
  return true;
}

// Authored outputs take no words of the plan (replay.md 10.5).
void TraceBuilder::set_plan_offsets() {
  std::uint64_t offset = 0;
  for (std::size_t s = 0; s < sessions_.size(); ++s) {
    trace_.sessions[s].plan_offset = offset;
    for (std::uint64_t t = trace_.sessions[s].first_turn; t < trace_.sessions[s + 1].first_turn;
         ++t) {
      if (!trace_.turns[t].authored) offset += trace_.turns[t].output_tokens;
    }
  }
}

// Rows here are whole prompts. A file whose later turns never begin as the turn before did holds,
// in all likelihood, only what each turn adds.
void TraceBuilder::note_delta_suspects() {
  std::uint64_t compared = 0;
  for (std::size_t s = 0; s < sessions_.size(); ++s) {
    for (std::uint64_t t = trace_.sessions[s].first_turn + 1; t < trace_.sessions[s + 1].first_turn;
         ++t) {
      const Turn& before = trace_.turns[t - 1];
      const Turn& turn = trace_.turns[t];
      const std::uint32_t whole_blocks = before.input_tokens / source_.block_size;
      if (before.ids_count == 0 || turn.ids_count == 0 || whole_blocks == 0) continue;
      ++compared;
      const auto begin = trace_.ids.begin();
      const auto first = begin + static_cast<std::ptrdiff_t>(before.ids_first);
      const auto second = begin + static_cast<std::ptrdiff_t>(turn.ids_first);
      const bool repeats =
          turn.ids_count >= whole_blocks &&
          std::equal(first, first + static_cast<std::ptrdiff_t>(whole_blocks), second);
      if (!repeats) ++trace_.notes.rows_delta_suspect;
    }
  }
  if (compared > 0 && trace_.notes.rows_delta_suspect == compared) {
    trace_.notes.warnings.push_back(fmt::format(
        "{}: no later turn of a session begins with the prompt of the turn before; each row is "
        "taken as a whole prompt, not as what the turn adds",
        source_.path));
  }
}

namespace {

Result<Trace> read_trace(LineReader& lines, const TraceSource& source, const Load& load,
                         const TraceFile* file) {
  TraceBuilder builder(source, load);
  switch (source.format) {
    case TraceFormat::Mooncake:
      read_mooncake(lines, source, builder);
      break;
    case TraceFormat::AzureCsv:
      read_azure(lines, builder);
      break;
  }
  if (lines.too_long()) {
    builder.problems().add(
        lines.number(), "trace.line_too_long",
        fmt::format("the line has more than {} bytes", LineReader::kLineBytesMax));
  }
  if (file != nullptr && file->failure()) {
    Problem problem = *file->failure();
    problem.place.line = builder.problems().place(lines.number()).line;
    builder.problems().add(std::move(problem));
  }
  return builder.finish();
}

}  // namespace

Result<Trace> load_trace(const TraceSource& source, const Load& load) {
  Result<TraceFile> file = TraceFile::open(source.path);
  if (!file) return tl::unexpected(std::move(file).error());
  LineReader lines([&](char* out, std::size_t capacity) { return file->read(out, capacity); });
  Result<Trace> trace = read_trace(lines, source, load, &*file);
  if (trace) trace->notes.source_sha256 = file->sha256();
  return trace;
}

Result<Trace> parse_trace(std::string_view text, const TraceSource& source, const Load& load) {
  LineReader lines(text);
  return read_trace(lines, source, load, nullptr);
}

}  // namespace servecast::workload
