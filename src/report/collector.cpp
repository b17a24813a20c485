// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/check.hpp"
#include "report/collector_state.hpp"
#include "report/rows.hpp"

namespace servecast::report {
namespace {

constexpr std::uint64_t kMicroPerNanosecond = 1'000'000'000'000'000;  // 1e9 ns/s * 1e6

std::int64_t not_negative(Duration duration) {
  return std::max<std::int64_t>(0, duration.ns);
}

std::uint64_t samples(Duration duration) {
  return static_cast<std::uint64_t>(not_negative(duration));
}

UInt128 divide_half_up(UInt128 dividend, std::uint64_t divisor) {
  const UInt128 raised = dividend + divisor / 2;
  // The 128-bit division of the compiler's library costs ten times the 64-bit one.
  if (raised <= UINT64_MAX) return static_cast<std::uint64_t>(raised) / divisor;
  return raised / divisor;
}

// Bounds are given in double milliseconds and times are whole nanoseconds: the bound is rounded to
// them (decisions.md 18). A bound past the range of time always holds; one that is no number never
// does.
bool within(UInt128 value_ns, double bound_ms, std::uint32_t times) {
  if (!(bound_ms >= 0)) return false;
  const auto bound_ns = ns_from_ms(bound_ms);
  return !bound_ns || value_ns <= static_cast<UInt128>(*bound_ns) * times;
}

}  // namespace

UInt128 picoseconds_per_token(std::int64_t span_ns, std::uint32_t tokens) {
  SERVECAST_DCHECK(span_ns >= 0 && tokens >= 2);
  return divide_half_up(static_cast<UInt128>(span_ns) * 1000, tokens - 1);
}

bool is_counted(const replay::RequestRecord& record) {
  return record.status == replay::Status::Completed && record.first_admit != kNever;
}

bool meets(const Sla& sla, const replay::RequestRecord& record) {
  if (!is_counted(record)) return false;
  const std::uint32_t tokens = record.output_tokens;
  const Time last = tokens > 0 ? record.last_token : record.terminal;
  if (sla.ttft_ms &&
      (tokens == 0 || !within(samples(record.first_token - record.arrival), *sla.ttft_ms, 1)))
    return false;
  if (sla.e2e_ms && !within(samples(last - record.arrival), *sla.e2e_ms, 1)) return false;
  // Without a token only a bound on the whole request can be judged.
  if (sla.itl_ms && tokens == 0) return false;
  return !sla.itl_ms || tokens < 2 ||
         within(samples(record.last_token - record.first_token), *sla.itl_ms, tokens - 1);
}

Collector::State::State(CollectorOptions options_in)
    : options(std::move(options_in)),
      ttft_ns(options.samples_in_memory_max, options.temporary_directory),
      ttst_ns(options.samples_in_memory_max, options.temporary_directory),
      e2e_ns(options.samples_in_memory_max, options.temporary_directory),
      tpot_ps(options.samples_in_memory_max, options.temporary_directory),
      passes(options.spooled_bytes_in_memory_max, options.temporary_directory),
      kv_events(options.spooled_bytes_in_memory_max, options.temporary_directory) {
  if (options.kv_events_wire) kv_batches.emplace(*options.kv_events_wire);
}

void Collector::State::fold(const replay::RequestRecord& record) {
  const auto status = static_cast<std::size_t>(record.status);
  const auto reason = static_cast<std::size_t>(record.reason);
  SERVECAST_CHECK(status < kStatuses && reason < kReasons);
  ++by_status[status];
  ++by_reason[status][reason];
  if (is_counted(record)) {
    ++counted;
    input_tokens += record.input_tokens;
    output_tokens += record.output_tokens;
    reused_tokens += std::min(record.reused_tokens, record.input_tokens);
    reused_tokens_first += std::min(record.reused_tokens_first, record.input_tokens);
    last_completion = std::max(last_completion, record.terminal);
    context_limited += record.output_tokens < record.requested_output_tokens ? 1 : 0;
    if (options.sla.is_set() && meets(options.sla, record)) {
      ++good;
      good_output_tokens += record.output_tokens;
    }
    fold_latencies(record);
  }
  if (options.keep_requests) {
    kept.push_back({record, history.size(), static_cast<std::uint32_t>(record.history.size())});
    kept.back().record.history = {};
    history.insert(history.end(), record.history.begin(), record.history.end());
  }
}

void Collector::State::fold_latencies(const replay::RequestRecord& record) {
  const std::uint32_t tokens = record.output_tokens;
  if (tokens == 0) return;
  SERVECAST_DCHECK(record.first_token != kNever && record.last_token != kNever);
  ttft_ns.add(samples(record.first_token - record.arrival));
  e2e_ns.add(samples(record.last_token - record.arrival));
  if (tokens == 1) return;

  SERVECAST_DCHECK(record.second_token != kNever);
  ttst_ns.add(samples(record.second_token - record.first_token));
  const std::int64_t span = not_negative(record.last_token - record.first_token);
  gaps += tokens - 1;
  gaps_ns += static_cast<std::uint64_t>(span);
  const UInt128 tpot = picoseconds_per_token(span, tokens);
  if (tpot > INT64_MAX) {
    too_large = true;
    return;
  }
  tpot_ps.add(static_cast<std::uint64_t>(tpot));
  // A span of nothing has no rate, as a gap of nothing has none.
  if (span == 0) return;
  const UInt128 rate =
      divide_half_up(UInt128{tokens - 1} * kMicroPerNanosecond, static_cast<std::uint64_t>(span));
  if (rate > UINT64_MAX) {
    too_large = true;
    return;
  }
  output_micro_tps.add(static_cast<std::uint64_t>(rate));
}

Collector::Collector(CollectorOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
Collector::~Collector() = default;

void Collector::on_request(const replay::RequestRecord& record) {
  state_->fold(record);
}

void Collector::on_pass(const replay::PassRecord& record) {
  if (!state_->options.keep_passes) return;
  append_row(state_->passes.buffer(), record);
  state_->passes.settle();
}

void Collector::on_kv_event(const replay::KvEventRecord& record) {
  if (!state_->options.keep_kv_events) return;
  if (state_->kv_batches) {
    state_->kv_batches->add(record, state_->kv_events.buffer());
  } else {
    append_row(state_->kv_events.buffer(), record);
  }
  state_->kv_events.settle();
}

}  // namespace servecast::report
