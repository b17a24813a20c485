// SPDX-License-Identifier: Apache-2.0
#include "report/rows.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/text.hpp"
#include "report/collector_state.hpp"

namespace servecast::report {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;
// Below this a count of nanoseconds has at most 15 digits, and a decimal of 15 digits is the
// shortest text of its double.
constexpr std::int64_t kExactNs = 1'000'000'000'000'000;

void append_number(std::string& out, std::uint64_t value) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), end.ptr);
}

// Writes the members of one object; keys are given as `,"key":` literals so that a member costs two
// appends.
class Row {
 public:
  explicit Row(std::string& out) : out_(out) {}

  Row& key(std::string_view literal) {
    out_ += literal;
    return *this;
  }
  Row& null() { return key("null"); }
  Row& number(std::uint64_t value) {
    append_number(out_, value);
    return *this;
  }
  Row& ms(std::int64_t ns) {
    append_ms(out_, ns);
    return *this;
  }
  Row& ms(Time time) { return time == kNever ? null() : ms(time.ns); }
  // From one moment to a later one, null when either did not happen.
  Row& ms_between(Time from, Time to) {
    return from == kNever || to == kNever ? null() : ms(std::max<std::int64_t>(0, (to - from).ns));
  }
  Row& text(std::string_view value) {
    append_json_string(out_, value);
    return *this;
  }
  template <class Items, class Print>
  Row& array(const Items& items, Print print) {
    out_ += '[';
    bool first = true;
    for (const auto& item : items) {
      if (!first) out_ += ',';
      first = false;
      print(item);
    }
    out_ += ']';
    return *this;
  }

 private:
  std::string& out_;
};

// Rows of workers that have a single rank do not name it.
void append_rank(Row& row, std::uint32_t rank, std::uint32_t ranks) {
  if (ranks > 1) row.key(",\"dp_rank\":").number(rank);
}

// Each rank of each worker is one scheduler, numbered through (replay.md 7).
std::uint64_t scheduler_id(const replay::RequestRecord& record) {
  return std::uint64_t{record.worker} * record.ranks + record.rank;
}

// One placement, at the arrival; no router keeps requests back or looks for cached prefixes.
void append_routing(Row& row, const replay::RequestRecord& record) {
  row.key("[{\"best_available_overlap_blocks\":null,\"dp_rank\":").number(record.rank);
  row.key(",\"logical_worker_id\":").number(record.worker);
  row.key(",\"outcome\":\"immediate\",\"overlap_regret_blocks\":null");
  row.key(",\"placement_replica_id\":null,\"pool\":\"agg\",\"queue_entered_at_ms\":null");
  row.key(",\"queue_wait_ms\":0.0,\"released_at_ms\":null,\"reported_overlap_tokens\":null");
  row.key(",\"scheduler_id\":").number(scheduler_id(record));
  row.key(",\"selected_overlap_blocks\":null}]");
}

void append_history(Row& row, std::span<const replay::Admission> history) {
  std::uint64_t ordinal = 0;
  row.array(history, [&](const replay::Admission& admission) {
    row.key("{\"admission_ordinal\":").number(ordinal);
    row.key(",\"at_ms\":").ms(admission.at);
    row.key(",\"is_readmission\":").key(ordinal > 0 ? "true" : "false");
    row.key(",\"pool\":\"agg\",\"pool_admission_ordinal\":").number(ordinal);
    row.key(",\"reused_input_tokens\":").number(admission.reused_tokens).key("}");
    ++ordinal;
  });
}

}  // namespace

void append_ms(std::string& out, std::int64_t ns) {
  // Below one millisecond the shortest text may be an exponent.
  if (ns < kNsPerMs || ns >= kExactNs) return append_double(out, ms_from_ns(ns));
  append_number(out, static_cast<std::uint64_t>(ns / kNsPerMs));
  auto fraction = static_cast<std::uint32_t>(ns % kNsPerMs);
  std::array<char, 7> digits{'.', '0', '0', '0', '0', '0', '0'};
  for (std::size_t i = 6; i > 0; --i) {
    digits[i] = static_cast<char>('0' + fraction % 10);
    fraction /= 10;
  }
  std::size_t size = 7;
  while (size > 2 && digits[size - 1] == '0') --size;
  out.append(digits.data(), size);
}

void append_row(std::string& out, const replay::PassRecord& record) {
  Row row(out);
  row.key("{\"admitted\":")
      .array(record.admitted, [&](const replay::PassRecord::Admitted& admitted) {
        row.key("[").number(admitted.request).key(",").number(admitted.reused_tokens).key("]");
      });
  row.key(",\"after\":{\"active\":").number(record.blocks_active);
  row.key(",\"free\":").number(record.blocks_free);
  row.key(",\"inactive\":").number(record.blocks_inactive);
  if (record.kv_capacity_bytes > 0) {
    row.key(",\"kv_cache_cached_bytes\":").number(record.kv_cached_bytes);
    row.key(",\"kv_cache_capacity_bytes\":").number(record.kv_capacity_bytes);
    row.key(",\"kv_cache_used_bytes\":").number(record.kv_used_bytes);
  }
  if (record.new_token_ratio) {
    row.key(",\"new_token_ratio\":");
    append_double(out, *record.new_token_ratio);
  }
  row.key(",\"running\":").number(record.running);
  row.key(",\"waiting\":").number(record.waiting);
  row.key("},\"decode_count\":").number(record.decode_requests);
  row.key(",\"decode_ms\":").ms(record.decode.ns);
  append_rank(row, record.rank, record.ranks);
  row.key(",\"end_ms\":").ms(record.end);
  if (record.images > 0) row.key(",\"images\":").number(record.images);
  row.key(",\"outputs\":").array(record.outputs, [&](const replay::PassRecord::Output& output) {
    row.key("[").number(output.request).key(",").number(output.tokens);
    row.key(output.completed ? ",1]" : ",0]");
  });
  row.key(",\"pass\":").number(record.pass);
  const auto request = [&](std::uint64_t ordinal) { row.number(ordinal); };
  row.key(",\"preempted\":")
      .array(record.preempted, [&](const replay::PassRecord::Preempted& victim) {
        row.key("[").number(victim.request).key(",").number(victim.blocks).key("]");
      });
  row.key(",\"prefill_count\":").number(record.prefill_requests);
  row.key(",\"prefill_ms\":").ms(record.prefill.ns);
  row.key(",\"rejected\":").array(record.rejected, request);
  row.key(",\"scheduled\":")
      .array(record.scheduled, [&](const replay::PassRecord::Scheduled& part) {
        row.key("[")
            .number(part.request)
            .key(",")
            .number(part.from)
            .key(",")
            .number(part.to)
            .key("]");
      });
  row.key(",\"start_ms\":").ms(record.start);
  row.key(",\"total_isl\":").number(record.total_isl);
  row.key(",\"total_length\":").number(record.total_length);
  row.key(",\"total_prefix\":").number(record.total_prefix);
  if (record.images > 0) row.key(",\"vision_ms\":").ms(record.vision.ns);
  row.key(",\"worker\":").number(record.worker).key("}\n");
}

void append_row(std::string& out, const replay::KvEventRecord& record) {
  Row row(out);
  if (record.stored) {
    row.key("{\"blocks\":").array(record.blocks, [&](const replay::KvEventRecord::Block& block) {
      row.key("{\"block_hash\":").number(block.hash);
      row.key(",\"tokens_hash\":").number(block.tokens_hash).key("}");
    });
  } else {
    row.key("{\"block_hashes\":")
        .array(record.blocks,
               [&](const replay::KvEventRecord::Block& block) { row.number(block.hash); });
  }
  append_rank(row, record.rank, record.ranks);
  row.key(",\"event_id\":").number(record.event);
  if (record.group) row.key(",\"group_idx\":").number(*record.group);
  if (record.stored) {
    row.key(",\"parent_hash\":");
    record.has_parent ? row.number(record.parent) : row.null();
    row.key(",\"session\":");
    record.session ? row.number(*record.session) : row.null();
  }
  row.key(",\"time_ms\":").ms(record.at);
  row.key(record.stored ? ",\"type\":\"stored\"" : ",\"type\":\"removed\"");
  row.key(",\"worker\":").number(record.worker).key("}\n");
}

void append_row(std::string& out, const replay::RequestRecord& record,
                std::span<const replay::Admission> history, const Names& names, const Sla& sla) {
  using replay::Reason;
  const bool has_row = record.row != replay::kNoIndex;
  const std::string_view request_name =
      has_row && names.request ? names.request(record.row) : std::string_view{};
  const std::string_view metadata =
      has_row && names.metadata ? names.metadata(record.row) : std::string_view{};
  const std::string_view session_name =
      names.session ? names.session(record.session) : std::string_view{};
  const bool has_session = names.sessions || !session_name.empty();
  const std::uint32_t tokens = record.output_tokens;
  const std::uint32_t readmissions = record.admissions > 0 ? record.admissions - 1 : 0;

  Row row(out);
  row.key("{\"admission_count\":").number(record.admissions);
  row.key(",\"admission_history\":");
  append_history(row, history);
  row.key(",\"arrival_time_ms\":").ms(record.arrival);
  if (record.reason == Reason::PoolTooSmall || record.reason == Reason::KvCapacity) {
    row.key(record.kv_in_bytes ? ",\"bytes_available\":" : ",\"blocks_available\":")
        .number(record.kv_available);
    row.key(record.kv_in_bytes ? ",\"bytes_needed\":" : ",\"blocks_needed\":")
        .number(record.kv_needed);
  }
  row.key(",\"decode_admit_ms\":null,\"decode_ms\":")
      .ms_between(record.first_token, record.last_token);
  row.key(",\"decode_reused_input_tokens\":null,\"decode_route_overlap_tokens\":null");
  row.key(",\"decode_worker_idx\":").number(scheduler_id(record));
  row.key(
      ",\"destination_activated_ms\":null,\"destination_reserved_ms\":null,\"dispatched_at_ms\":"
      "null");
  row.key(",\"e2e_latency_ms\":").ms_between(record.arrival, record.last_token);
  row.key(",\"first_admission_reused_input_tokens\":");
  row.number(std::min(record.reused_tokens_first, record.input_tokens));
  row.key(",\"first_admit_ms\":").ms(record.first_admit);
  row.key(",\"first_token_ms\":").ms(record.first_token);
  row.key(",\"input_length\":").number(record.input_tokens);
  row.key(",\"itl_ms\":");
  if (tokens < 2) {
    row.null();
  } else {
    const std::int64_t span =
        std::max<std::int64_t>(0, (record.last_token - record.first_token).ns);
    append_double(out, static_cast<double>(picoseconds_per_token(span, tokens)) / 1e9);
  }
  row.key(",\"last_token_ms\":").ms(record.last_token);
  if (!metadata.empty()) row.key(",\"metadata\":").key(metadata);
  row.key(",\"output_length\":").number(tokens);
  row.key(",\"preemptions\":").number(record.preemptions);
  row.key(",\"prefill_admit_ms\":null,\"prefill_ms\":")
      .ms_between(record.first_admit, record.first_token);
  row.key(",\"prefill_route_overlap_tokens\":null,\"prefill_worker_idx\":null");
  row.key(",\"queue_ms\":").ms_between(record.arrival, record.first_admit);
  row.key(",\"readmission_count\":").number(readmissions);
  if (record.reason != Reason::None) row.key(",\"reason\":").text(to_string(record.reason));
  if (!request_name.empty()) row.key(",\"request_id\":").text(request_name);
  row.key(",\"requested_output_length\":").number(record.requested_output_tokens);
  row.key(",\"reused_input_tokens\":").number(std::min(record.reused_tokens, record.input_tokens));
  row.key(",\"routing_history\":");
  append_routing(row, record);
  row.key(",\"session_id\":");
  if (!session_name.empty()) {
    row.text(session_name);
  } else if (has_session) {
    row.key("\"").number(record.session).key("\"");
  } else {
    row.null();
  }
  if (sla.is_set()) row.key(",\"sla_ok\":").key(meets(sla, record) ? "true" : "false");
  row.key(",\"source_held_ms\":null,\"source_released_ms\":null");
  row.key(",\"terminal_status\":").text(to_string(record.status));
  row.key(",\"terminal_time_ms\":").ms(record.terminal);
  row.key(",\"ttft_ms\":").ms_between(record.arrival, record.first_token);
  row.key(",\"ttst_ms\":").ms_between(record.first_token, record.second_token);
  row.key(",\"turn_index\":");
  has_session ? row.number(record.turn) : row.null();
  row.key(",\"uuid\":\"").key(uuid_text(record.ordinal)).key("\"}");
}

}  // namespace servecast::report
