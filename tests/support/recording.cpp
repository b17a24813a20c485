// SPDX-License-Identifier: Apache-2.0
#include "support/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text.hpp"

namespace servecast::test {
namespace {

class Recorder final : public replay::RecordSink {
 public:
  explicit Recorder(Recording& out) : out_(out) {}
  void on_request(const replay::RequestRecord& record) override {
    RecordedRequest& kept = out_.requests.emplace_back();
    kept.record = record;
    kept.history.assign(record.history.begin(), record.history.end());
    kept.record.history = {};
  }
  void on_pass(const replay::PassRecord& pass) override { out_.passes.push_back(pass); }
  void on_kv_event(const replay::KvEventRecord& event) override { out_.events.push_back(event); }

 private:
  Recording& out_;
};

std::string text(std::uint64_t value) {
  return fmt::format("{}", value);
}
std::string text(std::uint32_t value) {
  return fmt::format("{}", value);
}
std::string text(bool value) {
  return value ? "true" : "false";
}
std::string text(Time time) {
  if (time == kNever) return "never";
  std::string out;
  append_double(out, to_ms(time));
  return out + " ms";
}
std::string text(Duration duration) {
  return text(Time{} + duration);
}
std::string text(replay::Status status) {
  return std::string(to_string(status));
}
std::string text(replay::Reason reason) {
  return std::string(to_string(reason));
}
std::string text(UInt128 value) {
  std::string out;
  do {
    out.insert(out.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value != 0);
  return out;
}
std::string text(double value) {
  return fmt::format("{}", value);
}
std::string text(const replay::PassRecord::Scheduled& s) {
  return fmt::format("[{}, {}, {}]", s.request, s.from, s.to);
}
std::string text(const replay::PassRecord::Admitted& a) {
  return fmt::format("[{}, {}]", a.request, a.reused_tokens);
}
std::string text(const replay::PassRecord::Output& o) {
  return fmt::format("[{}, {}, {}]", o.request, o.tokens, o.completed);
}
std::string text(const replay::PassRecord::Preempted& p) {
  return fmt::format("[{}, {}]", p.request, p.blocks);
}
std::string text(const replay::KvEventRecord::Block& b) {
  return fmt::format("[{}, {}]", b.hash, b.tokens_hash);
}
std::string text(const replay::Admission& a) {
  return fmt::format("[{}, {}]", text(a.at), a.reused_tokens);
}
std::string text(const replay::PoolState& p) {
  return fmt::format("[active {}, inactive {}, free {}, bytes {} + {} of {}]", p.active, p.inactive,
                     p.free, p.used_bytes, p.cached_bytes, p.capacity_bytes);
}
std::string text(const std::pair<std::int64_t, std::uint64_t>& gap) {
  return fmt::format("[{} ns, {} times]", gap.first, gap.second);
}
template <class T>
std::string text(const std::vector<T>& list) {
  std::string out = "[";
  for (const T& item : list) {
    if (out.size() > 1) out += ", ";
    if (out.size() > 400) return out + "...]";
    out += text(item);
  }
  return out + "]";
}

template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}
bool same(const replay::PassRecord::Scheduled& a, const replay::PassRecord::Scheduled& b) {
  return std::tie(a.request, a.from, a.to) == std::tie(b.request, b.from, b.to);
}
bool same(const replay::PassRecord::Admitted& a, const replay::PassRecord::Admitted& b) {
  return std::tie(a.request, a.reused_tokens) == std::tie(b.request, b.reused_tokens);
}
bool same(const replay::PassRecord::Output& a, const replay::PassRecord::Output& b) {
  return std::tie(a.request, a.tokens, a.completed) == std::tie(b.request, b.tokens, b.completed);
}
bool same(const replay::PassRecord::Preempted& a, const replay::PassRecord::Preempted& b) {
  return std::tie(a.request, a.blocks) == std::tie(b.request, b.blocks);
}
bool same(const replay::KvEventRecord::Block& a, const replay::KvEventRecord::Block& b) {
  return std::tie(a.hash, a.tokens_hash) == std::tie(b.hash, b.tokens_hash);
}
bool same(const replay::Admission& a, const replay::Admission& b) {
  return std::tie(a.at, a.reused_tokens) == std::tie(b.at, b.reused_tokens);
}
bool same(const replay::PoolState& a, const replay::PoolState& b) {
  return std::tie(a.active, a.inactive, a.free, a.used_bytes, a.cached_bytes, a.capacity_bytes) ==
         std::tie(b.active, b.inactive, b.free, b.used_bytes, b.cached_bytes, b.capacity_bytes);
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return same(x, y); });
}

// Remembers the first field that differs; later calls do nothing.
class Difference {
 public:
  // `subject` names what is compared; asked only when something differs.
  explicit Difference(std::function<std::string()> subject) : subject_(std::move(subject)) {}
  template <class T>
  void field(std::string_view name, const T& a, const T& b) {
    if (found_ || same(a, b)) return;
    found_ = fmt::format("{}: {} {} against {}", subject_(), name, text(a), text(b));
  }
  // Long lists: says where they part instead of printing both.
  template <class T>
  void list(std::string_view name, const std::vector<T>& a, const std::vector<T>& b) {
    const std::size_t common = std::min(a.size(), b.size());
    for (std::size_t i = 0; i < common && !found_; ++i) {
      if (!same(a[i], b[i])) field(fmt::format("{}[{}]", name, i), a[i], b[i]);
    }
    field(fmt::format("number of {}", name), a.size(), b.size());
  }
  std::optional<std::string> take() { return std::move(found_); }

 private:
  std::function<std::string()> subject_;
  std::optional<std::string> found_;
};

std::optional<std::string> difference(const RecordedRequest& a, const RecordedRequest& b,
                                      bool history) {
  const replay::RequestRecord& x = a.record;
  const replay::RequestRecord& y = b.record;
  Difference d([&x] { return fmt::format("request {}", x.ordinal); });
  d.field("ordinal", x.ordinal, y.ordinal);
  d.field("session", x.session, y.session);
  d.field("turn", x.turn, y.turn);
  d.field("row", x.row, y.row);
  d.field("worker", x.worker, y.worker);
  d.field("rank", x.rank, y.rank);
  d.field("ranks", x.ranks, y.ranks);
  d.field("arrival", x.arrival, y.arrival);
  d.field("first_admit", x.first_admit, y.first_admit);
  d.field("first_token", x.first_token, y.first_token);
  d.field("second_token", x.second_token, y.second_token);
  d.field("last_token", x.last_token, y.last_token);
  d.field("terminal", x.terminal, y.terminal);
  d.field("status", x.status, y.status);
  d.field("reason", x.reason, y.reason);
  d.field("input_tokens", x.input_tokens, y.input_tokens);
  d.field("requested_output_tokens", x.requested_output_tokens, y.requested_output_tokens);
  d.field("output_tokens", x.output_tokens, y.output_tokens);
  d.field("reused_tokens", x.reused_tokens, y.reused_tokens);
  d.field("reused_tokens_first", x.reused_tokens_first, y.reused_tokens_first);
  d.field("admissions", x.admissions, y.admissions);
  d.field("preemptions", x.preemptions, y.preemptions);
  d.field("kv_needed", x.kv_needed, y.kv_needed);
  d.field("kv_available", x.kv_available, y.kv_available);
  d.field("kv_in_bytes", x.kv_in_bytes, y.kv_in_bytes);
  if (history) d.field("history", a.history, b.history);
  return d.take();
}

std::optional<std::string> difference(const replay::PassRecord& a, const replay::PassRecord& b) {
  Difference d([&a] { return fmt::format("worker {} rank {} pass {}", a.worker, a.rank, a.pass); });
  d.field("worker", a.worker, b.worker);
  d.field("pass", a.pass, b.pass);
  d.field("rank", a.rank, b.rank);
  d.field("start", a.start, b.start);
  d.field("admitted", a.admitted, b.admitted);
  d.field("preempted", a.preempted, b.preempted);
  d.field("rejected", a.rejected, b.rejected);
  d.field("scheduled", a.scheduled, b.scheduled);
  d.field("prefill_requests", a.prefill_requests, b.prefill_requests);
  d.field("decode_requests", a.decode_requests, b.decode_requests);
  d.field("total_isl", a.total_isl, b.total_isl);
  d.field("total_prefix", a.total_prefix, b.total_prefix);
  d.field("total_length", a.total_length, b.total_length);
  d.field("images", a.images, b.images);
  d.field("vision", a.vision, b.vision);
  d.field("prefill", a.prefill, b.prefill);
  d.field("decode", a.decode, b.decode);
  d.field("end", a.end, b.end);
  d.field("outputs", a.outputs, b.outputs);
  d.field("blocks_active", a.blocks_active, b.blocks_active);
  d.field("blocks_inactive", a.blocks_inactive, b.blocks_inactive);
  d.field("blocks_free", a.blocks_free, b.blocks_free);
  d.field("running", a.running, b.running);
  d.field("waiting", a.waiting, b.waiting);
  d.field("kv_used_bytes", a.kv_used_bytes, b.kv_used_bytes);
  d.field("kv_cached_bytes", a.kv_cached_bytes, b.kv_cached_bytes);
  d.field("kv_capacity_bytes", a.kv_capacity_bytes, b.kv_capacity_bytes);
  d.field("new_token_ratio", a.new_token_ratio.value_or(-1), b.new_token_ratio.value_or(-1));
  return d.take();
}

std::optional<std::string> difference(const replay::KvEventRecord& a,
                                      const replay::KvEventRecord& b) {
  Difference d(
      [&a] { return fmt::format("worker {} rank {} KV event {}", a.worker, a.rank, a.event); });
  d.field("worker", a.worker, b.worker);
  d.field("rank", a.rank, b.rank);
  d.field("event", a.event, b.event);
  d.field("at", a.at, b.at);
  d.field("stored", a.stored, b.stored);
  d.field("group", a.group.value_or(UINT32_MAX), b.group.value_or(UINT32_MAX));
  d.field("session", a.session.value_or(UINT32_MAX), b.session.value_or(UINT32_MAX));
  d.field("has_parent", a.has_parent, b.has_parent);
  d.field("parent", a.parent, b.parent);
  d.field("blocks", a.blocks, b.blocks);
  d.field("tokens", a.tokens, b.tokens);
  return d.take();
}

std::optional<std::string> difference(const replay::RunTotals& a, const replay::RunTotals& b) {
  Difference d([] { return std::string("totals"); });
  d.field("requests", a.requests, b.requests);
  d.field("incomplete_at_cap", a.incomplete_at_cap, b.incomplete_at_cap);
  d.field("first_arrival", a.first_arrival, b.first_arrival);
  d.field("end", a.end, b.end);
  d.field("passes", a.passes, b.passes);
  d.field("preemptions", a.preemptions, b.preemptions);
  d.field("evictions", a.evictions, b.evictions);
  d.field("prefix_queried_tokens", a.prefix_queried_tokens, b.prefix_queried_tokens);
  d.field("prefix_hit_tokens", a.prefix_hit_tokens, b.prefix_hit_tokens);
  d.list("pools", a.pools, b.pools);
  d.field("gap table exact", a.gaps.exact, b.gaps.exact);
  d.field("gaps counted", a.gaps.count, b.gaps.count);
  d.field("sum of gaps", a.gaps.sum_ns, b.gaps.sum_ns);
  d.field("sum of squared gaps", a.gaps.sum_squares_ns, b.gaps.sum_squares_ns);
  d.list("gaps", a.gaps.gaps_ns, b.gaps.gaps_ns);
  d.field("workers", a.workers, b.workers);
  d.field("ranks_per_worker", a.ranks_per_worker, b.ranks_per_worker);
  d.field("gpus_per_worker", a.gpus_per_worker, b.gpus_per_worker);
  d.field("fingerprint", a.fingerprint, b.fingerprint);
  return d.take();
}

template <class T, class... Extra>
std::optional<std::string> list_difference(std::string_view name, const std::vector<T>& a,
                                           const std::vector<T>& b, const Extra&... extra) {
  const std::size_t common = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (std::optional<std::string> found = difference(a[i], b[i], extra...)) return found;
  }
  if (a.size() == b.size()) return std::nullopt;
  return fmt::format("number of {}: {} against {}", name, a.size(), b.size());
}

std::string problem_text(const Problems& problems) {
  return problems.empty() ? "no problem" : to_text(problems.front());
}

}  // namespace

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
  return "?";
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
  return "?";
}

Recording record(const replay::Deployment& deployment, const workload::Workload& workload,
                 const replay::Options& options) {
  Recording out;
  out.has_passes = options.capture_passes;
  out.has_events = options.capture_kv_events;
  out.has_history = options.capture_requests;
  Recorder recorder(out);
  Result<replay::RunTotals> totals = replay::run(deployment, workload, options, recorder);
  if (totals) {
    out.totals = std::move(*totals);
  } else {
    out.problems = std::move(totals.error());
  }
  std::stable_sort(out.requests.begin(), out.requests.end(),
                   [](const RecordedRequest& a, const RecordedRequest& b) {
                     return a.record.ordinal < b.record.ordinal;
                   });
  std::stable_sort(out.passes.begin(), out.passes.end(),
                   [](const replay::PassRecord& a, const replay::PassRecord& b) {
                     return std::tuple(a.worker, a.pass, a.rank) <
                            std::tuple(b.worker, b.pass, b.rank);
                   });
  std::stable_sort(out.events.begin(), out.events.end(),
                   [](const replay::KvEventRecord& a, const replay::KvEventRecord& b) {
                     return std::tuple(a.worker, a.rank, a.event) <
                            std::tuple(b.worker, b.rank, b.event);
                   });
  return out;
}

std::optional<std::string> first_difference(const Recording& a, const Recording& b) {
  if (a.problems.empty() != b.problems.empty()) {
    return fmt::format("one run failed: {} against {}", problem_text(a.problems),
                       problem_text(b.problems));
  }
  // Passes first: where they part lies nearest to the cause.
  if (a.has_passes && b.has_passes) {
    if (auto found = list_difference("passes", a.passes, b.passes)) return found;
  }
  if (a.has_events && b.has_events) {
    if (auto found = list_difference("KV events", a.events, b.events)) return found;
  }
  const bool history = a.has_history && b.has_history;
  if (auto found = list_difference("request records", a.requests, b.requests, history)) {
    return found;
  }
  return difference(a.totals, b.totals);
}

}  // namespace servecast::test
