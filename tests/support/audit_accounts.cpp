// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string_view>

#include "support/audit_laws.hpp"

namespace servecast::test {
namespace {

struct Gaps {
  std::map<std::int64_t, std::uint64_t> count;
  UInt128 sum = 0, squares = 0;

  void add(const std::vector<Time>& times) {
    for (std::size_t i = 1; i < times.size(); ++i) {
      const std::int64_t gap = (times[i] - times[i - 1]).ns;
      count[gap] += 1;
      sum += static_cast<UInt128>(gap);
      squares += static_cast<UInt128>(gap) * static_cast<UInt128>(gap);
    }
  }
  void compare(const replay::GapTable& table, std::string_view what, Violations& v) const {
    if (!table.exact) return;
    v.expect(std::equal(count.begin(), count.end(), table.gaps_ns.begin(), table.gaps_ns.end(),
                        [](const auto& a, const auto& b) {
                          return a.first == b.first && a.second == b.second;
                        }),
             "gaps between {}: the gap table differs from the passes", what);
    v.expect(sum == table.sum_ns && squares == table.sum_squares_ns,
             "gaps between {}: the sums of the gap table differ from the passes", what);
  }
};

}  // namespace

void Account::admit(Time at, std::uint32_t reused_tokens) {
  if (admissions++ == 0) {
    first_admit = at;
    reused_first = reused_tokens;
  }
  reused = std::max(reused, reused_tokens);
}

void Account::give(Time at, std::uint32_t count) {
  if (count > 0) steps.push_back(at);
  tokens.insert(tokens.end(), count, at);
}

void compare_accounts(const replay::Deployment& deployment, const Recording& recording,
                      std::span<const std::pair<std::uint64_t, const Account*>> accounts,
                      Violations& v) {
  std::uint64_t preemptions = 0;
  for (const auto& [id, account] : accounts) {
    preemptions += account->preemptions;
    if (account->record == nullptr) {
      v.expect(false, "request {} ran but has no record", id);
      continue;
    }
    const replay::RequestRecord& r = *account->record;
    const std::vector<Time>& tokens = account->tokens;
    v.expect(tokens.size() == r.output_tokens, "request {}: {} tokens in passes, {} in its record",
             id, tokens.size(), r.output_tokens);
    v.expect(account->first_admit == r.first_admit, "request {}: first admission differs", id);
    v.expect(account->admissions == r.admissions,
             "request {}: {} admissions in passes, {} in its record", id, account->admissions,
             r.admissions);
    v.expect(account->preemptions == r.preemptions,
             "request {}: {} preemptions in passes, {} in its record", id, account->preemptions,
             r.preemptions);
    v.expect(std::min(account->reused, r.input_tokens) == r.reused_tokens,
             "request {}: reuse {} in passes, {} in its record", id, account->reused,
             r.reused_tokens);
    v.expect(std::min(account->reused_first, r.input_tokens) == r.reused_tokens_first,
             "request {}: first reuse {} in passes, {} in its record", id, account->reused_first,
             r.reused_tokens_first);
    if (tokens.empty() || tokens.size() != r.output_tokens) continue;
    v.expect(tokens.front() == r.first_token, "request {}: first token differs", id);
    v.expect(tokens.back() == r.last_token, "request {}: last token differs", id);
    v.expect(tokens.size() < 2 || tokens[1] == r.second_token, "request {}: second token differs",
             id);
  }
  v.expect(preemptions == recording.totals.preemptions, "{} preemptions in passes, {} in totals",
           preemptions, recording.totals.preemptions);
  v.expect(recording.passes.size() == recording.totals.passes * deployment.ranks_per_worker,
           "{} parts of passes told, {} passes in totals", recording.passes.size(),
           recording.totals.passes);
}

void compare_gaps(const Recording& recording,
                  std::span<const std::pair<std::uint64_t, const Account*>> accounts, bool capped,
                  Violations& v) {
  Gaps tokens, steps;
  for (const auto& [id, account] : accounts) {
    const replay::RequestRecord* record = account->record;
    if (record == nullptr || record->status != replay::Status::Completed) continue;
    v.expect(!capped || account->tokens.size() == record->output_tokens,
             "request {}: {} tokens in passes, {} in its record", id, account->tokens.size(),
             record->output_tokens);
    tokens.add(account->tokens);
    steps.add(account->steps);
  }
  tokens.compare(recording.totals.gaps, "tokens", v);
  if (recording.totals.step_gaps) steps.compare(*recording.totals.step_gaps, "steps", v);
}

}  // namespace servecast::test
