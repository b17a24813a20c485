// SPDX-License-Identifier: Apache-2.0
// Whole documents and files from a finished report.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"
#include "report/collector_state.hpp"
#include "report/report.hpp"
#include "report/rows.hpp"

namespace servecast::report {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{1} << 18;
constexpr std::string_view kCanonicalSchema = "aisim.offline-replay.v1";

using Kept = Collector::State::Kept;

// Where a kept record stands among the rows (replay.md 21 and case 25 of 32).
struct Order {
  std::string_view authored;  // request name, else the session's, else none
  std::int64_t arrival_ns;
  std::uint64_t ordinal;
  const Kept* kept;
  friend bool operator<(const Order& a, const Order& b) {
    if (a.authored != b.authored) return a.authored < b.authored;
    if (a.arrival_ns != b.arrival_ns) return a.arrival_ns < b.arrival_ns;
    return a.ordinal < b.ordinal;
  }
};

std::string_view authored_name(const replay::RequestRecord& record, const Names& names) {
  if (names.request && record.row != replay::kNoIndex) {
    if (const std::string_view name = names.request(record.row); !name.empty()) return name;
  }
  return names.session ? names.session(record.session) : std::string_view{};
}

std::span<const replay::Admission> history_of(const Collector::State& state, const Kept& kept) {
  return std::span(state.history).subspan(kept.history_first, kept.history_count);
}

Object with(Object object, Object more) {
  for (Member& member : more) object.push_back(std::move(member));
  return object;
}

}  // namespace

std::string uuid_text(std::uint64_t ordinal) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "00000000-0000-0000-0000-000000000000";
  SERVECAST_CHECK(ordinal < UINT64_MAX);
  std::uint64_t id = ordinal + 1;
  for (std::size_t i = text.size(); id > 0;) {
    --i;
    if (text[i] == '-') continue;
    text[i] = kHex[id & 15U];
    id >>= 4U;
  }
  return text;
}

std::string_view to_string(replay::Status status) {
  switch (status) {
    case replay::Status::Completed:
      return "completed";
    case replay::Status::Rejected:
      return "rejected";
    case replay::Status::Canceled:
      return "canceled";
    case replay::Status::Failed:
      return "failed";
  }
  SERVECAST_CHECK(false);
}

std::string_view to_string(replay::Reason reason) {
  switch (reason) {
    case replay::Reason::None:
      return "none";
    case replay::Reason::ModelLength:
      return "model_length";
    case replay::Reason::PoolTooSmall:
      return "pool_too_small";
    case replay::Reason::PromptExceedsStepBudget:
      return "prompt_exceeds_step_budget";
    case replay::Reason::KvCapacity:
      return "kv_capacity";
  }
  SERVECAST_CHECK(false);
}

std::string prediction_json(const Report& report) {
  std::string text = to_json(with(report.summary, report.sections), Layout::Indented);
  text += '\n';
  return text;
}

std::string summary_json(const Report& report) {
  return to_json(report.summary, Layout::Compact);
}

Object host_cost(const Report& report, const HostCost& cost) {
  const auto tokens = [&](std::string_view key) {
    const Value* value = find(report.summary, key);
    SERVECAST_CHECK(value != nullptr && value->number());
    return *value->number();
  };
  const bool measured = std::isfinite(cost.wall_time_ms) && cost.wall_time_ms > 0;
  const auto per_second = [&](double count) {
    return measured ? count / (cost.wall_time_ms / 1000) : 0.0;
  };
  const double output = tokens("total_output_tokens");
  return {{"peak_rss_bytes", cost.peak_rss_bytes},
          {"processed_output_tokens_per_s", per_second(output)},
          {"processed_tokens_per_s", per_second(tokens("total_input_tokens") + output)},
          {"wall_time_ms", cost.wall_time_ms}};
}

Result<void> write_requests(const Collector& collector, const Names& names, const Write& write) {
  const Collector::State& state = collector.state();
  SERVECAST_CHECK(state.options.keep_requests);
  std::vector<Order> rows;
  rows.reserve(state.kept.size());
  for (const Kept& kept : state.kept) {
    rows.push_back(
        {authored_name(kept.record, names), kept.record.arrival.ns, kept.record.ordinal, &kept});
  }
  std::sort(rows.begin(), rows.end());
  std::string text;
  text.reserve(kWriteBytes + kWriteBytes / 4);
  for (const Order& order : rows) {
    append_row(text, order.kept->record, history_of(state, *order.kept), names, state.options.sla);
    text += '\n';
    if (text.size() < kWriteBytes) continue;
    write(text);
    text.clear();
  }
  if (!text.empty()) write(text);
  return {};
}

Result<void> write_passes(Collector& collector, const Write& write) {
  SERVECAST_CHECK(collector.state().options.keep_passes);
  return collector.state().passes.write(write);
}

Result<void> write_kv_events(Collector& collector, const Write& write) {
  SERVECAST_CHECK(collector.state().options.keep_kv_events);
  Collector::State& state = collector.state();
  if (state.kv_batches) state.kv_batches->finish(state.kv_events.buffer());
  return state.kv_events.write(write);
}

std::string canonical_line(const Report& report, const Collector& collector, const Names& names) {
  const Collector::State& state = collector.state();
  const Object coverage{{"capture_canonical_evidence", false},
                        {"capture_per_request", state.options.keep_requests},
                        {"capture_planner_details", false},
                        {"per_request_records", state.kept.size()}};
  const Array exclusions{"/summary/wall_time_ms", "/summary/processed_tokens_per_s",
                         "/summary/processed_output_tokens_per_s", "/planner/html_report_path"};
  const Object metadata = with(
      report.sections, {{"result_exclusions", exclusions}, {"schema_version", kCanonicalSchema}});

  // Roots in the order of the schema, which is also that of their names.
  std::string line = "{\"coverage\":";
  append_json(line, coverage, Layout::Compact);
  line += ",\"metadata\":";
  append_json(line, metadata, Layout::Compact);
  line += ",\"per_request\":[";
  // uuid texts sort as the ordinals do.
  std::vector<const Kept*> rows;
  rows.reserve(state.kept.size());
  for (const Kept& kept : state.kept) rows.push_back(&kept);
  std::sort(rows.begin(), rows.end(),
            [](const Kept* a, const Kept* b) { return a->record.ordinal < b->record.ordinal; });
  for (const Kept* kept : rows) {
    if (line.back() != '[') line += ',';
    append_row(line, kept->record, history_of(state, *kept), names, state.options.sla);
  }
  line += "],\"planner\":null,\"summary\":";
  append_json(line, report.summary, Layout::Compact);
  line += "}\n";
  return line;
}

}  // namespace servecast::report
