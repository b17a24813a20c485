// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "conformance/mismatch.hpp"
#include "conformance/shared_sglang.hpp"

namespace servecast::test {
namespace {

using Rows = Mismatch::Rows;
constexpr std::uint64_t kNone = UINT64_MAX;

std::string_view kind_of(const replay::PassRecord& pass) {
  if (pass.prefill_requests > 0) return "prefill";
  return pass.decode_requests > 0 ? "decode" : "empty";
}

Rows spans_of(const std::vector<replay::PassRecord::Scheduled>& list) {
  Rows out;
  for (const auto& item : list) out.push_back({item.request, item.from, item.to});
  return out;
}

Rows requests_of(const std::vector<std::uint64_t>& list) {
  Rows out;
  for (const std::uint64_t request : list) out.push_back({request});
  return out;
}

// Requests of a list of records.
template <class T>
Rows requests_of(const std::vector<T>& list) {
  Rows out;
  for (const T& item : list) out.push_back({item.request});
  return out;
}

std::optional<std::string> pass_mismatch(const SglangPass& want, const replay::PassRecord& got,
                                         std::uint32_t page) {
  Mismatch m(fmt::format("worker {} pass {}", want.worker, want.pass));
  m.exact("worker", got.worker, want.worker);
  m.exact("pass", got.pass, want.pass);
  m.moment("start_ms", got.start, want.start);
  m.word("kind", kind_of(got), want.kind);
  m.rows("retracted", requests_of(got.preempted), requests_of(want.retracted));
  if (want.kind == "prefill") m.rows("batch", spans_of(got.scheduled), spans_of(want.batch));
  if (want.kind == "decode") {
    m.rows("rows", requests_of(got.scheduled), requests_of(want.rows));
    m.exact("sum_len", got.total_length, want.sum_len);
  }
  m.milliseconds("device time", got.prefill + got.decode, want.device);
  m.moment("end_ms", got.end, want.end);
  m.exact("running", got.running, want.running);
  m.exact("waiting", got.waiting, want.waiting);
  m.exact("available", std::uint64_t{got.blocks_free} * page, want.available);
  m.exact("evictable", std::uint64_t{got.blocks_inactive} * page, want.evictable);
  if (got.new_token_ratio) m.number("ratio", *got.new_token_ratio, want.ratio);
  return m.take();
}

// What the summary says of passes that the file may not have.
std::optional<std::string> pass_counts_mismatch(const SharedSglangCase& expected,
                                                const Recording& run) {
  std::map<std::string_view, std::uint64_t> kinds;
  std::map<std::uint32_t, const replay::PassRecord*> last;
  for (const replay::PassRecord& pass : run.passes) {
    ++kinds[kind_of(pass)];
    last[pass.worker] = &pass;
  }
  Mismatch m("summary");
  m.exact("prefill_passes", kinds["prefill"], expected.prefill_passes);
  m.exact("decode_passes", kinds["decode"], expected.decode_passes);
  for (const auto& [worker, pass] : last) {
    if (pass->new_token_ratio)
      m.number(fmt::format("final_ratio[{}]", worker), *pass->new_token_ratio,
               expected.final_ratios.at(worker));
  }
  return m.take();
}

std::optional<std::string> event_mismatch(const SglangEvent& expected,
                                          const replay::KvEventRecord& got) {
  const replay::KvEventRecord& want = expected.event;
  Mismatch m(fmt::format("worker {} KV event {}", want.worker, want.event));
  m.exact("worker", got.worker, want.worker);
  m.exact("event_id", got.event, want.event);
  m.moment("time_ms", got.at, expected.time);
  m.word("type", got.stored ? "stored" : "removed", want.stored ? "stored" : "removed");
  m.exact("session", got.session.value_or(UINT32_MAX), want.session.value_or(UINT32_MAX));
  m.exact("parent_hash", got.has_parent ? got.parent : kNone,
          want.has_parent ? want.parent : kNone);
  Rows got_blocks, want_blocks;
  for (const auto& block : got.blocks) got_blocks.push_back({block.hash, block.tokens_hash});
  for (const auto& block : want.blocks) want_blocks.push_back({block.hash, block.tokens_hash});
  m.rows("blocks", got_blocks, want_blocks);
  return m.take();
}

// Gaps between the tokens of completed requests, in whole nanoseconds.
std::map<std::int64_t, std::uint64_t> gaps_of(const SharedSglangCase& expected) {
  std::map<std::int64_t, std::uint64_t> gaps;
  const auto ns = [](double ms) { return std::llround(ms * 1e6); };
  for (std::size_t row = 0; row < expected.histories.size(); ++row) {
    const std::vector<double>& tokens = expected.histories[row].tokens;
    if (expected.common.requests[row].status != "completed") continue;
    for (std::size_t i = 1; i < tokens.size(); ++i) ++gaps[ns(tokens[i]) - ns(tokens[i - 1])];
  }
  return gaps;
}

std::optional<std::string> history_mismatch(std::size_t row, const SharedSglangCase& expected,
                                            const RecordedRequest& got) {
  const SglangHistory& want = expected.histories[row];
  Mismatch m(fmt::format("row {}", row));
  std::vector<Time> admitted;
  Rows reused, want_reused;
  for (const replay::Admission& admission : got.history) {
    admitted.push_back(admission.at);
    reused.push_back({admission.reused_tokens});
  }
  const std::uint32_t input = expected.common.requests[row].input_tokens;
  for (const std::uint32_t tokens : want.reused) want_reused.push_back({std::min(tokens, input)});
  m.moments("admit_ms", admitted, want.admitted);
  m.rows("reused tokens", reused, want_reused);
  return m.take();
}

}  // namespace

std::optional<std::string> sglang_passes_mismatch(const SharedSglangCase& expected,
                                                  const Recording& run) {
  const std::uint32_t page = expected.common.deployment.rank.block_tokens;
  const std::size_t common = std::min(expected.passes.size(), run.passes.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (auto found = pass_mismatch(expected.passes[i], run.passes[i], page)) return found;
  }
  if (!expected.passes.empty() && run.passes.size() != expected.passes.size())
    return fmt::format("the run told {} passes, expected {}", run.passes.size(),
                       expected.passes.size());
  return pass_counts_mismatch(expected, run);
}

std::optional<std::string> sglang_events_mismatch(const SharedSglangCase& expected,
                                                  const Recording& run) {
  const std::size_t common = std::min(expected.events.size(), run.events.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (auto found = event_mismatch(expected.events[i], run.events[i])) return found;
  }
  Mismatch m("summary");
  m.exact("kv_events", run.events.size(), expected.events.size());
  std::uint64_t stored = 0, removed = 0;
  for (const replay::KvEventRecord& event : run.events)
    (event.stored ? stored : removed) += event.blocks.size();
  m.exact("stored_blocks", stored, expected.stored_blocks);
  m.exact("removed_blocks", removed, expected.removed_blocks);
  return m.take();
}

std::optional<std::string> sglang_histories_mismatch(const SharedSglangCase& expected,
                                                     const Recording& run) {
  std::map<std::uint64_t, std::vector<Time>> tokens;  // by request
  for (const replay::PassRecord& pass : run.passes) {
    for (const auto& output : pass.outputs)
      tokens[output.request].insert(tokens[output.request].end(), output.tokens, pass.end);
  }
  for (const RecordedRequest& request : run.requests) {
    const std::size_t row = request.record.row;
    if (row >= expected.histories.size()) return fmt::format("a record names row {}", row);
    if (run.has_history) {
      if (auto found = history_mismatch(row, expected, request)) return found;
    }
    if (!run.has_passes) continue;
    Mismatch m(fmt::format("row {}", row));
    m.moments("token_ms", tokens[request.record.ordinal], expected.histories[row].tokens);
    if (auto found = m.take()) return found;
  }
  const auto want = gaps_of(expected);
  const std::map<std::int64_t, std::uint64_t> got(run.totals.gaps.gaps_ns.begin(),
                                                  run.totals.gaps.gaps_ns.end());
  if (got == want) return std::nullopt;
  const auto parts = std::mismatch(got.begin(), got.end(), want.begin(), want.end());
  const auto text = [](auto at, auto end) {
    return at == end ? std::string("nothing") : fmt::format("{} x {} ns", at->second, at->first);
  };
  return fmt::format("gaps: {}, expected {}", text(parts.first, got.end()),
                     text(parts.second, want.end()));
}

}  // namespace servecast::test
