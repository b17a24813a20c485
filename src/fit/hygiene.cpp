// SPDX-License-Identifier: Apache-2.0
#include "fit/hygiene.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "fit/measured/layout.hpp"
#include "fit/measured/notes.hpp"

namespace servecast::fit {
namespace {

// GPUs of one NVLink domain: no aggregated worker of a served model is that wide.
constexpr std::uint32_t kWideTensor = 72;

std::size_t filled_fields(MeasuredRow row) {
  std::size_t filled = 0;
  for (const Field& field : fields()) {
    const bool is_filled = field.kind == FieldKind::Text    ? !field.text(row)->empty()
                           : field.kind == FieldKind::Whole ? field.whole(row)->has_value()
                                                            : field.real(row)->has_value();
    if (is_filled) ++filled;
  }
  return filled;
}

// Exports of one data base differ in the last digits of a number.
long nanoseconds(double ms) {
  return std::lround(std::min(ms, 1e12) * 1e6);
}

struct Judgement {
  Status status = Status::Use;
  std::string reason = {};
};

std::optional<Judgement> by_named_rule(const MeasuredRow& row, const std::vector<NamedRule>& rules,
                                       NamedRule::Verdict verdict) {
  for (const NamedRule& rule : rules) {
    if (rule.verdict != verdict || !applies(rule, row)) continue;
    return Judgement{verdict == NamedRule::Verdict::Exclude ? Status::Excluded : Status::Special,
                     rule.reason};
  }
  return std::nullopt;
}

// What the generator needs to be replayed.
std::string missing_in(const MeasuredRow& row, std::optional<Protocol> protocol) {
  if (!row.unreadable.empty()) return row.unreadable;
  if (!protocol) return fmt::format("unknown protocol {}", row.protocol);
  if (row.input_tokens.value_or(0) == 0) return "no input length";
  if (row.output_tokens.value_or(0) == 0) return "no output length";
  const bool needs_concurrency = *protocol != Protocol::Offline && *protocol != Protocol::OpenLoop;
  if (needs_concurrency && row.concurrency.value_or(0) == 0) return "neither concurrency nor batch";
  if (!row.ttft_ms && !row.ttft_p50_ms && !row.tpot_ms && !row.e2e_ms && !row.output_tok_s_per_gpu)
    return "nothing was measured";
  return {};
}

Judgement judgement_of(const MeasuredRow& row, const std::vector<NamedRule>& rules,
                       std::optional<Protocol> protocol, bool took_batch) {
  if (row.is_disaggregated())
    return {Status::Disaggregated, "separate prefill and decode workers are not simulated yet"};
  if (auto excluded = by_named_rule(row, rules, NamedRule::Verdict::Exclude)) return *excluded;
  if (row.widths.tensor.value_or(1) >= kWideTensor)
    return {Status::Excluded, "a disaggregated wide-EP run filed as aggregated"};
  if (std::string missing = missing_in(row, protocol); !missing.empty())
    return {Status::Unanswerable, std::move(missing)};
  if (took_batch) return {Status::Special, "no concurrency: that of the filed batch is taken"};
  if (auto special = by_named_rule(row, rules, NamedRule::Verdict::Special)) return *special;
  return {};
}

}  // namespace

std::string_view to_string(Status status) {
  switch (status) {
    case Status::Use:
      return "use";
    case Status::Special:
      return "special";
    case Status::Unanswerable:
      return "unanswerable";
    case Status::Duplicate:
      return "duplicate";
    case Status::Excluded:
      return "excluded";
    case Status::Impossible:
      return "impossible";
    case Status::Disaggregated:
      return "disaggregated";
  }
  return "";
}

std::vector<std::size_t> twins_of(const std::vector<MeasuredRow>& rows) {
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::string, long, long>;
  std::map<Key, std::vector<std::size_t>> groups;
  std::vector<std::size_t> kept(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const MeasuredRow& row = rows[i];
    kept[i] = i;
    if (!row.ttft_ms || !row.tpot_ms) continue;
    groups[{row.input_tokens.value_or(0), row.output_tokens.value_or(0),
            row.concurrency.value_or(0), row.system, nanoseconds(*row.ttft_ms),
            nanoseconds(*row.tpot_ms)}]
        .push_back(i);
  }
  for (const auto& [key, group] : groups) {
    if (group.size() == 1) continue;
    std::size_t best = group.front(), best_filled = filled_fields(rows[best]);
    for (const std::size_t i : group) {
      const std::size_t filled = filled_fields(rows[i]);
      if (filled > best_filled) std::tie(best, best_filled) = std::pair(i, filled);
    }
    for (const std::size_t i : group) kept[i] = best;
  }
  return kept;
}

std::vector<JudgedRow> judge(std::vector<MeasuredRow> rows, const std::vector<NamedRule>& rules,
                             const DraftOptions& options) {
  const std::vector<std::size_t> kept = twins_of(rows);
  std::vector<bool> took_batch(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    MeasuredRow& row = rows[i];
    if (row.concurrency || !row.batch || row.is_disaggregated()) continue;
    row.concurrency = *row.batch * std::max(row.widths.attention_data.value_or(1), 1U);
    took_batch[i] = true;
  }
  const std::vector<Drafts> drafts = label_drafts(rows, kept, options);
  std::vector<JudgedRow> judged;
  judged.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::optional<Protocol> protocol = protocol_of(rows[i]);
    Judgement judgement = judgement_of(rows[i], rules, protocol, took_batch[i]);
    if (kept[i] != i) judgement = {Status::Duplicate, fmt::format("repeats {}", rows[kept[i]].id)};
    const bool assumed =
        rows[i].is_disaggregated() && (!rows[i].prefill.workers || !rows[i].decode.workers);
    judged.push_back({.row = {},
                      .status = judgement.status,
                      .reason = std::move(judgement.reason),
                      .drafts = drafts[i],
                      .protocol = protocol.value_or(Protocol::Fixed),
                      .assumed_pools = assumed,
                      .assumed_concurrency = took_batch[i]});
  }
  for (std::size_t i = 0; i < rows.size(); ++i) judged[i].row = std::move(rows[i]);
  return judged;
}

}  // namespace servecast::fit
