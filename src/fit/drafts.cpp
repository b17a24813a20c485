// SPDX-License-Identifier: Apache-2.0
#include "fit/drafts.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "fit/widths.hpp"

namespace servecast::fit {
namespace {

bool is_model(const MeasuredRow& row, std::string_view name) {
  return row.model.find(name) != std::string::npos;
}

// What two runs of one configuration have in common.
using Configuration =
    std::tuple<std::string, std::string, std::string, std::uint32_t, std::uint32_t, std::uint32_t,
               std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
Configuration configuration_of(const MeasuredRow& row) {
  const perf::Parallelism p = real_widths(row.widths, true).parallelism;
  return {row.version,
          row.system,
          row.precision,
          row.input_tokens.value_or(0),
          row.output_tokens.value_or(0),
          row.concurrency.value_or(0),
          p.tensor,
          p.attention_data,
          p.moe_tensor,
          p.moe_expert};
}

// Rows that the rule may call speculative.
bool is_candidate(const MeasuredRow& row) {
  return is_model(row, "DeepSeek-R1") && !row.is_disaggregated() && row.engine == "trtllm" &&
         (row.version == "1.2.0rc6.post3" || row.version == "1.1.0rc2.post2") && !row.nextn;
}

Drafts inferred(const MeasuredRow& row, bool speculates) {
  Drafts drafts{.count = 0, .accepted = 0, .source = Drafts::Source::Inferred};
  if (!speculates) return drafts;
  const std::uint32_t ranks = real_widths(row.widths, true).parallelism.attention_data;
  drafts.count = row.concurrency.value_or(1) <= 32 * ranks ? 3 : 1;
  drafts.accepted = accepted_by_default(drafts.count);
  return drafts;
}

Drafts given(std::uint32_t count, std::optional<double> accepted) {
  const std::uint32_t drafts = std::min(count, 5U);
  const double mean = accepted.value_or(accepted_by_default(drafts));
  return {.count = drafts,
          .accepted = std::min(mean, static_cast<double>(drafts)),
          .source = Drafts::Source::Given};
}

// The least TPOT of each configuration among candidates without a twin of DeepSeek-V3.
using Fastest = std::map<Configuration, double>;

constexpr double kPairRatio = 1.35;  // accuracy-notes.md 1.8

}  // namespace

std::string_view to_string(Drafts::Source source) {
  switch (source) {
    case Drafts::Source::None:
      return "none";
    case Drafts::Source::Given:
      return "given";
    case Drafts::Source::Inferred:
      return "inferred";
  }
  return "";
}

double accepted_by_default(std::uint32_t drafts) {
  constexpr std::array<double, 6> kAccepted{0, 0.70, 0.95, 1.12, 1.20, 1.25};
  return kAccepted[std::min<std::size_t>(drafts, kAccepted.size() - 1)];
}

std::vector<Drafts> label_drafts(const std::vector<MeasuredRow>& rows,
                                 const std::vector<std::size_t>& twins,
                                 const DraftOptions& options) {
  std::set<std::size_t> plain;  // groups that hold a row of DeepSeek-V3
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (is_model(rows[i], "DeepSeek-V3")) plain.insert(twins[i]);
  }
  Fastest fastest;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!is_candidate(rows[i]) || plain.contains(twins[i]) || !rows[i].tpot_ms) continue;
    const auto [at, is_new] = fastest.try_emplace(configuration_of(rows[i]), *rows[i].tpot_ms);
    if (!is_new) at->second = std::min(at->second, *rows[i].tpot_ms);
  }
  std::vector<Drafts> labels;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const MeasuredRow& row = rows[i];
    const std::optional<std::uint32_t> said = row.nextn ? row.nextn : options.nextn;
    if (said) {
      labels.push_back(given(*said, row.nextn_accepted ? row.nextn_accepted : options.accepted));
    } else if (!is_model(row, "DeepSeek-R1") && !is_model(row, "DeepSeek-V3")) {
      labels.push_back({});
    } else {
      const auto best = is_candidate(row) && !plain.contains(twins[i])
                            ? fastest.find(configuration_of(row))
                            : fastest.end();
      labels.push_back(
          inferred(row, best != fastest.end() && *row.tpot_ms < kPairRatio * best->second));
    }
  }
  return labels;
}

}  // namespace servecast::fit
